// SPDX-License-Identifier: GPL-2.0
/* The Xen domains among the guests: what xensrc.h finds, in the event loop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "groupd.h"

/* Domains whose news are taken before other guests get their turn. */
#define NEWS_AT_ONCE 64

static bool name_taken(struct groupd *gd, const struct guest *but, const char *name)
{
	struct guest *g = guest_find(gd, name);

	return g && g != but;
}

/*
 * A domain is what its number says. Two may have one name, for a while: the later one is
 * shown with its number behind the name until the name is free.
 */
static void show_name(struct groupd *gd, struct guest *but, const char *wanted, int64_t domid,
		      char *name)
{
	text_copy(name, GUEST_NAME_MAX, wanted);
	if (!name_taken(gd, but, name))
		return;
	snprintf(name, GUEST_NAME_MAX, "%.*s#%u", GUEST_NAME_MAX - 12, wanted,
		 (unsigned int)domid);
}

static void rename_guest(struct guest *g)
{
	char name[GUEST_NAME_MAX];

	show_name(g->groupd, g, g->wanted, g->now.domid, name);
	if (!strcmp(name, g->now.name) || name_taken(g->groupd, g, name))
		return;
	log_limited(&g->groupd->domains, LOG_INFO,
		    "guest %s: is domain %lld, and called %s now", g->now.name,
		    (long long)g->now.domid, name);
	text_copy(g->now.name, sizeof(g->now.name), name);
	guest_publish(g);
}

/* A name may have become free. */
static void rename_others(struct groupd *gd)
{
	struct guest *g;

	cds_list_for_each_entry(g, &gd->guests, node) {
		if (g->now.domid >= 0 && strcmp(g->wanted, g->now.name))
			rename_guest(g);
	}
}

static struct guest *new_guest(struct groupd *gd, const struct xen_dom *news)
{
	char name[GUEST_NAME_MAX];
	struct guest *g;

	show_name(gd, NULL, news->name, news->domid, name);
	g = guest_new(gd, name, "", false);
	if (!g)
		return NULL;
	g->now.domid = news->domid;
	text_copy(g->wanted, sizeof(g->wanted), news->name);
	return g;
}

static void set_connected(struct guest *g, bool connected)
{
	if (g->now.connected == connected)
		return;
	g->now.connected = connected;
	g->now.reported = false;
	g->now.since_ms = clock_ms();
	g->now.hints_per_s_milli = REPORT_UNKNOWN;
	guest_publish(g);
	if (connected)
		log_limited(&g->groupd->domains, LOG_INFO, "guest %s: found, domain %lld",
			    g->now.name, (long long)g->now.domid);
	else
		log_limited(&g->groupd->domains, LOG_INFO,
			    "guest %s: gone: the connection to xenstored was lost", g->now.name);
}

static void no_report(struct guest *g)
{
	if (!g->now.reported)
		return;
	g->now.reported = false;
	g->now.since_ms = clock_ms();
	g->now.hints_per_s_milli = REPORT_UNKNOWN;
	guest_publish(g);
	log_limited(&g->talk, LOG_INFO, "guest %s: its agent has taken its report away",
		    g->now.name);
}

static void take_counts(struct guest *g, const struct xen_dom *news)
{
	if (news->limited != g->now.limited)
		log_limited(&g->odd, LOG_WARNING,
			    "guest %s: writes too fast, what is over the rate is not read",
			    g->now.name);
	if (news->oversized != g->now.oversized)
		log_limited(&g->odd, LOG_WARNING,
			    "guest %s: a report of more than %d bytes is dropped", g->now.name,
			    LINE_BYTES_MAX - 1);
	g->now.limited = news->limited;
	g->now.oversized = news->oversized;
	g->dirty = true;
}

/* Of a domain that is there. */
static void take_news(struct guest *g, const struct xen_dom *news)
{
	if (news->news & XEN_LOST)
		set_connected(g, false);
	if (news->news & XEN_FOUND)
		set_connected(g, true);
	if ((news->news & XEN_NAME) && text_copy(g->wanted, sizeof(g->wanted), news->name)) {
		rename_guest(g);
		rename_others(g->groupd);
	}
	if (news->news & XEN_COUNTS)
		take_counts(g, news);
	if (news->news & XEN_ANSWERED)
		g->answered = true;
	if (news->news & XEN_NO_REPORT)
		no_report(g);
	if ((news->news & XEN_REPORT) && news->value)
		guest_take(g, news->value, news->len);
}

static void take_domain(struct groupd *gd, struct xen_dom *dom, struct xen_dom *news)
{
	if (news->news & XEN_GONE) {
		if (dom->guest) {
			log_limited(&gd->domains, LOG_INFO, "guest %s: domain %u is gone",
				    dom->guest->now.name, news->domid);
			guest_remove(dom->guest);
		}
		xensrc_dom_free(dom);
		rename_others(gd);
		return;
	}
	/* There may not have been room for it when it was found. */
	if (!dom->guest && !(news->news & XEN_LOST)) {
		dom->guest = new_guest(gd, news);
		news->news |= XEN_FOUND;
	}
	if (dom->guest)
		take_news(dom->guest, news);
}

static void xen_cb(struct ev_loop *loop, ev_io *w, int revents)
{
	struct groupd *gd = w->data;
	struct xen_dom *dom, news;
	int i;

	(void)loop;
	(void)revents;
	xensrc_noted(gd->xen);
	for (i = 0; i < NEWS_AT_ONCE && (dom = xensrc_next(gd->xen, &news)); i++) {
		take_domain(gd, dom, &news);
		free(news.value);
	}
	if (i == NEWS_AT_ONCE)
		xensrc_again(gd->xen);
	if (gd->changed)
		gd->changed(gd->changed_arg);
}

/**
 * guest_xen_start() - follow the domains of this host, if that is configured
 * @gd: the daemon
 *
 * Nothing happens when they are followed already.
 */
void guest_xen_start(struct groupd *gd)
{
	const char *mode = gd->conf.xenstore;

	if (gd->xen || !strcmp(mode, "off") || (!strcmp(mode, "auto") && !xensrc_here()))
		return;
	gd->xen = xensrc_start(gd->conf.max_guests, gd->conf.reports_per_s);
	if (!gd->xen)
		return;
	ev_io_init(&gd->xen_io, xen_cb, xensrc_fd(gd->xen), EV_READ);
	gd->xen_io.data = gd;
	ev_io_start(gd->loop, &gd->xen_io);
}

/**
 * guest_xen_stop() - follow them no more, and forget them
 * @gd: the daemon
 */
void guest_xen_stop(struct groupd *gd)
{
	struct guest *g, *next;

	if (!gd->xen)
		return;
	ev_io_stop(gd->loop, &gd->xen_io);
	cds_list_for_each_entry_safe(g, next, &gd->guests, node) {
		if (g->now.domid >= 0)
			guest_remove(g);
	}
	xensrc_stop(gd->xen);
	gd->xen = NULL;
}
