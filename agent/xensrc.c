// SPDX-License-Identifier: GPL-2.0
/*
 * What a domU can do here: change its report's node, and make nodes below it. Each of that is
 * one event, which costs a look into the list of events, and a token of the domain's. Without
 * a token the node is not watched any more until there is a full bucket again: then xenstored
 * sends nothing, whatever the domain writes. A report is read once for any number of events
 * that have come. No node that a domU may write is ever listed, and xenstored gives no more
 * than 4096 bytes of one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "line.h"
#include "sample.h"
#include "xensrc.h"

/* groupd's end waits so long for xenstored. */
#define STOP_MS 1000
/* Lists of domains: in a second, and at once. */
#define SCANS_PER_S 2
#define SCANS_AT_ONCE 5
/* A domain's nodes may go a little after the event that tells of its end. */
#define RESCAN_MS 2000
/* Notices the end of a connection on which nothing happens. */
#define IDLE_MS 5000
/* Domains that are served before events are looked for again. */
#define DUE_AT_ONCE 64
#define DOMAINS "/local/domain"

/**
 * struct xensrc - the thread, and the domains that it knows
 * @base: the thread
 * @first: the first domain with news; protected by @base.lock, as is all up to @doms
 * @last: the last one
 * @settled: every domain was found
 * @doms: table of domains; the thread's, as is all below
 * @max: its size
 * @reports_per_s: rate and burst of a domain
 * @due: the first domain with something to do
 * @paused: domains that are not watched for now
 * @scan_ms: list the domains then; 0 for not at all
 * @rescan: and once more, for a domain that was only half there or half gone
 * @scanned: it was done
 * @scans: bounds that
 * @turns: watches so far
 * @many: limit for the line about too many domains
 * @odd: limit for lines about what xenstored refuses
 */
struct xensrc {
	struct xswork base;
	struct xen_dom *first;
	struct xen_dom *last;
	bool settled;
	struct xen_dom **doms;
	size_t max;
	int64_t reports_per_s;
	struct xen_dom *due;
	size_t paused;
	int64_t scan_ms;
	bool rescan;
	bool scanned;
	struct rate_bucket scans;
	uint64_t turns;
	struct log_limit many;
	struct log_limit odd;
};

/* With the lock held. */
static void news_add(struct xensrc *xs, struct xen_dom *dom, unsigned int news)
{
	dom->news |= news;
	if (dom->queued)
		return;
	dom->queued = true;
	dom->next = NULL;
	if (xs->last)
		xs->last->next = dom;
	else
		xs->first = dom;
	xs->last = dom;
}

static void tell(struct xensrc *xs, struct xen_dom *dom, unsigned int news)
{
	pthread_mutex_lock(&xs->base.lock);
	news_add(xs, dom, news);
	pthread_mutex_unlock(&xs->base.lock);
	xswork_note(&xs->base);
}

static void make_due(struct xensrc *xs, struct xen_dom *dom)
{
	if (dom->is_due)
		return;
	dom->is_due = true;
	dom->due = xs->due;
	xs->due = dom;
}

static void scan_at(struct xensrc *xs, int64_t ms)
{
	if (!xs->scan_ms || ms < xs->scan_ms)
		xs->scan_ms = ms;
}

static void report_path(const struct xen_dom *dom, char *dst, size_t size)
{
	snprintf(dst, size, DOMAINS "/%u/data/tandem/report", dom->domid);
}

static void report_token(const struct xen_dom *dom, char *dst, size_t size)
{
	snprintf(dst, size, "r%zu.%llu", dom->index, (unsigned long long)dom->turn);
}

static void watch_report(struct xensrc *xs, struct xen_dom *dom)
{
	char path[96], token[64];

	dom->turn = ++xs->turns;
	report_path(dom, path, sizeof(path));
	report_token(dom, token, sizeof(token));
	dom->watched = xswork_watch(&xs->base, path, token);
	if (!dom->watched && !xswork_lost(&xs->base))
		log_limited(&xs->odd, LOG_WARNING, "xenstore: cannot watch %s: %s", path,
			    strerror(errno));
}

static void unwatch_report(struct xensrc *xs, struct xen_dom *dom)
{
	char path[96], token[64];

	if (!dom->watched)
		return;
	report_path(dom, path, sizeof(path));
	report_token(dom, token, sizeof(token));
	xswork_unwatch(&xs->base, path, token);
	dom->watched = false;
	/* What this watch has still to say is about a turn that is over. */
	dom->turn = ++xs->turns;
}

static void watch_name(struct xensrc *xs, struct xen_dom *dom, bool on)
{
	char path[96], token[64];

	snprintf(path, sizeof(path), DOMAINS "/%u/name", dom->domid);
	snprintf(token, sizeof(token), "n%zu.%u", dom->index, dom->domid);
	if (!on)
		xswork_unwatch(&xs->base, path, token);
	else if (!xswork_watch(&xs->base, path, token) && !xswork_lost(&xs->base))
		log_limited(&xs->odd, LOG_WARNING, "xenstore: cannot watch %s: %s", path,
			    strerror(errno));
}

static void set_name(struct xensrc *xs, struct xen_dom *dom, const char *name, size_t len)
{
	pthread_mutex_lock(&xs->base.lock);
	if (!len)
		snprintf(dom->name, sizeof(dom->name), "domain-%u", dom->domid);
	for (size_t i = 0; i < len && i < sizeof(dom->name) - 1; i++) {
		dom->name[i] = name[i] > 0x20 && name[i] < 0x7f ? name[i] : '?';
		dom->name[i + 1] = '\0';
	}
	news_add(xs, dom, XEN_NAME);
	pthread_mutex_unlock(&xs->base.lock);
	xswork_note(&xs->base);
}

static void read_name(struct xensrc *xs, struct xen_dom *dom)
{
	unsigned int len = 0;
	char path[96], *name;

	dom->read_name = false;
	snprintf(path, sizeof(path), DOMAINS "/%u/name", dom->domid);
	name = xswork_read(&xs->base, path, &len);
	if (!name && xswork_lost(&xs->base))
		return;
	/* It may have none yet: its watch tells when it gets one. Or it has none any more. */
	if (name || !*dom->name)
		set_name(xs, dom, name, name ? len : 0);
	else
		scan_at(xs, clock_ms());
	free(name);
}

/* FNV-1a. One that makes two reports look the same fools nobody but itself. */
static uint64_t fingerprint(const char *data, size_t len)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)data[i]) * UINT64_C(1099511628211);
	return hash ? hash : 1;
}

static void read_report(struct xensrc *xs, struct xen_dom *dom)
{
	unsigned int len = 0, news = XEN_ANSWERED;
	uint64_t print = 0;
	char path[96], *value;

	dom->read_report = false;
	report_path(dom, path, sizeof(path));
	value = xswork_read(&xs->base, path, &len);
	if (!value && xswork_lost(&xs->base))
		return;
	if (!value && errno != ENOENT)
		log_limited(&xs->odd, LOG_WARNING, "xenstore: cannot read %s: %s", path,
			    strerror(errno));
	if (value)
		print = fingerprint(value, len);
	pthread_mutex_lock(&xs->base.lock);
	if (print && print != dom->print && len >= LINE_BYTES_MAX) {
		dom->oversized++;
		news |= XEN_COUNTS;
	} else if (print && print != dom->print) {
		free(dom->value);
		dom->value = value;
		dom->len = len;
		value = NULL;
		news |= XEN_REPORT;
		dom->news &= ~(unsigned int)XEN_NO_REPORT;
	} else if (!print && dom->print) {
		news |= XEN_NO_REPORT;
		dom->news &= ~(unsigned int)XEN_REPORT;
	}
	dom->print = print;
	news_add(xs, dom, news);
	pthread_mutex_unlock(&xs->base.lock);
	xswork_note(&xs->base);
	free(value);
}

static struct xen_dom *dom_add(struct xensrc *xs, unsigned int domid)
{
	struct xen_dom *dom;
	size_t i;

	for (i = 0; i < xs->max && xs->doms[i]; i++)
		;
	dom = i < xs->max ? calloc(1, sizeof(*dom)) : NULL;
	if (!dom) {
		log_limited(&xs->many, LOG_WARNING,
			    "domain %u: more than %zu domains, not added", domid, xs->max);
		return NULL;
	}
	dom->domid = domid;
	dom->index = i;
	xs->doms[i] = dom;
	rate_init(&dom->rate, xs->reports_per_s, xs->reports_per_s, clock_ms());
	return dom;
}

/* From now on it is the event loop's. */
static void dom_gone(struct xensrc *xs, struct xen_dom *dom)
{
	unwatch_report(xs, dom);
	watch_name(xs, dom, false);
	if (dom->resume_ms)
		xs->paused--;
	for (struct xen_dom **p = &xs->due; *p; p = &(*p)->due) {
		if (*p == dom) {
			*p = dom->due;
			break;
		}
	}
	xs->doms[dom->index] = NULL;
	tell(xs, dom, XEN_GONE);
}

static struct xen_dom *dom_find(struct xensrc *xs, unsigned int domid)
{
	for (size_t i = 0; i < xs->max; i++) {
		if (xs->doms[i] && xs->doms[i]->domid == domid)
			return xs->doms[i];
	}
	return NULL;
}

/* Of a new domain, or of one that was there before the connection was lost. */
static void dom_seen(struct xensrc *xs, const char *name)
{
	const char *end = name + strlen(name);
	struct xen_dom *dom;
	uint64_t domid;

	if (!text_u64(&name, end, &domid) || name != end || domid > UINT16_MAX)
		return;
	dom = dom_find(xs, (unsigned int)domid);
	if (!dom)
		dom = dom_add(xs, (unsigned int)domid);
	if (!dom)
		return;
	dom->seen = true;
	if (dom->watched || dom->resume_ms)
		return;
	read_name(xs, dom);
	tell(xs, dom, XEN_FOUND);
	watch_name(xs, dom, true);
	/* Its first event comes by itself, and has the report read. */
	watch_report(xs, dom);
}

/* Lists the domains: a node that none of them can write. */
static void scan(struct xensrc *xs)
{
	unsigned int num = 0;
	char **names = xswork_directory(&xs->base, DOMAINS, &num);

	if (!names && xswork_lost(&xs->base))
		return;
	if (!names && errno != ENOENT) {
		log_limited(&xs->odd, LOG_WARNING,
			    "xenstore: cannot list " DOMAINS ": %s, trying again",
			    strerror(errno));
		scan_at(xs, clock_ms() + RESCAN_MS);
		return;
	}
	for (size_t i = 0; i < xs->max; i++) {
		if (xs->doms[i])
			xs->doms[i]->seen = false;
	}
	for (unsigned int i = 0; names && i < num; i++)
		dom_seen(xs, names[i]);
	free(names);
	/* A connection that was lost meanwhile is no reason to forget anybody. */
	if (xswork_lost(&xs->base))
		return;
	for (size_t i = 0; i < xs->max; i++) {
		if (xs->doms[i] && !xs->doms[i]->seen)
			dom_gone(xs, xs->doms[i]);
	}
	/* Nothing announces dom0 when a new xenstored gets its nodes. */
	if (!dom_find(xs, 0))
		scan_at(xs, clock_ms() + IDLE_MS);
	xs->scanned = true;
}

static void src_opened(struct xswork *w)
{
	struct xensrc *xs = (struct xensrc *)w;
	static const char *const special[] = { "@introduceDomain", "@releaseDomain" };

	for (int i = 0; i < 2; i++) {
		if (!xswork_watch(w, special[i], i ? "d" : "i") && !xswork_lost(w))
			log_limited(&xs->odd, LOG_WARNING,
				    "xenstore: cannot watch %s: %s: domains are followed in dom0 only",
				    special[i], strerror(errno));
	}
	scan_at(xs, clock_ms());
}

static void src_lost(struct xswork *w)
{
	struct xensrc *xs = (struct xensrc *)w;

	for (size_t i = 0; i < xs->max; i++) {
		struct xen_dom *dom = xs->doms[i];

		if (!dom)
			continue;
		dom->watched = false;
		dom->resume_ms = 0;
		dom->over = false;
		dom->read_report = false;
		dom->print = 0;
		dom->turn = ++xs->turns;
		pthread_mutex_lock(&w->lock);
		dom->news &= XEN_NAME | XEN_COUNTS;
		news_add(xs, dom, XEN_LOST);
		pthread_mutex_unlock(&w->lock);
	}
	xs->paused = 0;
	xs->scanned = false;
	xswork_note(w);
}

/* The domain that a token names; @after is set to what stands behind its number. */
static struct xen_dom *dom_of(struct xensrc *xs, const char *token, uint64_t *after)
{
	const char *p = token + 1, *end = token + strlen(token);
	uint64_t index;

	if (!text_u64(&p, end, &index) || !text_skip(&p, end, ".") ||
	    !text_u64(&p, end, after) || p != end || index >= xs->max)
		return NULL;
	return xs->doms[index];
}

static void report_event(struct xensrc *xs, struct xen_dom *dom, const char *path)
{
	char own[96];

	if (!rate_take(&dom->rate, 1, clock_ms())) {
		dom->over = true;
		pthread_mutex_lock(&xs->base.lock);
		dom->limited++;
		news_add(xs, dom, XEN_COUNTS);
		pthread_mutex_unlock(&xs->base.lock);
		xswork_note(&xs->base);
		make_due(xs, dom);
		return;
	}
	report_path(dom, own, sizeof(own));
	if (strcmp(path, own))
		return;
	dom->read_report = true;
	make_due(xs, dom);
}

static void src_event(struct xswork *w, const char *path, const char *token)
{
	struct xensrc *xs = (struct xensrc *)w;
	int64_t now_ms = clock_ms();
	struct xen_dom *dom;
	uint64_t after;

	switch (*token) {
	case 'd':
	case 'i':
		scan_at(xs, now_ms);
		xs->rescan = true;
		return;
	case 'n':
		dom = dom_of(xs, token, &after);
		if (!dom || dom->domid != after)
			return;
		dom->read_name = true;
		make_due(xs, dom);
		return;
	default:
		dom = dom_of(xs, token, &after);
		if (dom && dom->turn == after)
			report_event(xs, dom, path);
	}
}

static void dom_work(struct xensrc *xs, struct xen_dom *dom)
{
	if (dom->over) {
		dom->over = false;
		unwatch_report(xs, dom);
		if (!dom->resume_ms)
			xs->paused++;
		dom->resume_ms = clock_ms() + 1000;
	}
	if (dom->read_name)
		read_name(xs, dom);
	if (dom->read_report)
		read_report(xs, dom);
}

/* Watches those again that have a full bucket. Returns when to come back. */
static int64_t resume(struct xensrc *xs, int64_t now_ms)
{
	int64_t wait = IDLE_MS;

	for (size_t i = 0; i < xs->max && xs->paused; i++) {
		struct xen_dom *dom = xs->doms[i];

		if (!dom || !dom->resume_ms)
			continue;
		if (dom->resume_ms > now_ms) {
			if (dom->resume_ms - now_ms < wait)
				wait = dom->resume_ms - now_ms;
			continue;
		}
		dom->resume_ms = 0;
		xs->paused--;
		watch_report(xs, dom);
	}
	return wait;
}

/* Returns when to come back. */
static int64_t scan_due(struct xensrc *xs, int64_t now_ms)
{
	if (!xs->scan_ms)
		return IDLE_MS;
	if (xs->scan_ms > now_ms)
		return xs->scan_ms - now_ms;
	if (!rate_take(&xs->scans, 1, now_ms))
		return rate_wait_ms(&xs->scans, now_ms);
	xs->scan_ms = 0;
	scan(xs);
	if (xs->rescan)
		scan_at(xs, now_ms + RESCAN_MS);
	xs->rescan = false;
	return xs->scan_ms ? RESCAN_MS : IDLE_MS;
}

static int64_t src_work(struct xswork *w)
{
	struct xensrc *xs = (struct xensrc *)w;
	int64_t now_ms = clock_ms();
	int64_t wait = scan_due(xs, now_ms);
	int64_t pause = resume(xs, now_ms);
	bool settled;

	for (int i = 0; xs->due && i < DUE_AT_ONCE; i++) {
		struct xen_dom *dom = xs->due;

		xs->due = dom->due;
		dom->is_due = false;
		dom_work(xs, dom);
	}
	if (xs->due)
		return 0;
	pthread_mutex_lock(&w->lock);
	settled = xs->settled;
	xs->settled = xs->scanned;
	pthread_mutex_unlock(&w->lock);
	if (xs->scanned && !settled)
		xswork_note(w);
	return wait < pause ? wait : pause;
}

static void src_closing(struct xswork *w)
{
	(void)w;
}

static void src_free(struct xswork *w)
{
	struct xensrc *xs = (struct xensrc *)w;
	struct xen_dom *dom, *next;

	for (dom = xs->first; dom; dom = next) {
		next = dom->next;
		if (dom->news & XEN_GONE)
			xensrc_dom_free(dom);
	}
	for (size_t i = 0; i < xs->max; i++)
		xensrc_dom_free(xs->doms[i]);
	free(xs->doms);
	xswork_free(w);
	free(xs);
}

static const struct xswork_ops src_ops = {
	.opened = src_opened,
	.lost = src_lost,
	.event = src_event,
	.work = src_work,
	.closing = src_closing,
	.free = src_free,
};

/* The event loop's side from here on. */

/**
 * xensrc_start() - begin to follow the domains of this host
 * @max_domains: no more than so many
 * @reports_per_s: rate and burst of reports that are read of a domain
 *
 * Return: the source, or NULL after one log line.
 */
struct xensrc *xensrc_start(int64_t max_domains, int64_t reports_per_s)
{
	struct xensrc *xs = calloc(1, sizeof(*xs));

	if (xs)
		xs->doms = calloc((size_t)max_domains, sizeof(struct xen_dom *));
	if (!xs || !xs->doms) {
		log_err("xenstore: out of memory");
		free(xs);
		return NULL;
	}
	xs->max = (size_t)max_domains;
	xs->reports_per_s = reports_per_s;
	xs->many.interval_ms = 60000;
	xs->odd.interval_ms = 60000;
	rate_init(&xs->scans, SCANS_PER_S, SCANS_AT_ONCE, clock_ms());
	if (xswork_start(&xs->base, &src_ops))
		return xs;
	free(xs->doms);
	free(xs);
	return NULL;
}

/**
 * xensrc_stop() - follow them no more
 * @xs: the source; gone afterwards, with its domains
 */
void xensrc_stop(struct xensrc *xs)
{
	xswork_stop(&xs->base, STOP_MS);
}

/**
 * xensrc_fd() - what becomes readable when there is news
 * @xs: the source
 *
 * Return: a descriptor.
 */
int xensrc_fd(const struct xensrc *xs)
{
	return xs->base.note_fd;
}

/**
 * xensrc_check() - one line when xenstored does not answer; call it on a tick
 * @xs: the source
 */
void xensrc_check(struct xensrc *xs)
{
	xswork_check(&xs->base);
}

/**
 * xensrc_noted() - the descriptor shall not be readable; call it before xensrc_next()
 * @xs: the source
 */
void xensrc_noted(struct xensrc *xs)
{
	xswork_noted(&xs->base);
}

/**
 * xensrc_again() - not all news were taken: the descriptor shall be readable
 * @xs: the source
 */
void xensrc_again(struct xensrc *xs)
{
	xswork_note(&xs->base);
}

/**
 * xensrc_next() - take the next domain with news
 * @xs: the source
 * @copy: set to it as it is now; @copy->value is to be freed
 *
 * Return: the domain, of which only @guest may be used; NULL when there is none. One that is
 * gone is to be freed with xensrc_dom_free().
 */
struct xen_dom *xensrc_next(struct xensrc *xs, struct xen_dom *copy)
{
	struct xen_dom *dom;

	pthread_mutex_lock(&xs->base.lock);
	dom = xs->first;
	if (dom) {
		xs->first = dom->next;
		if (!xs->first)
			xs->last = NULL;
		copy->domid = dom->domid;
		copy->news = dom->news;
		memcpy(copy->name, dom->name, sizeof(copy->name));
		copy->value = dom->value;
		copy->len = dom->len;
		copy->limited = dom->limited;
		copy->oversized = dom->oversized;
		dom->value = NULL;
		dom->news = 0;
		dom->queued = false;
	}
	pthread_mutex_unlock(&xs->base.lock);
	return dom;
}

/**
 * xensrc_dom_free() - free a domain
 * @dom: the domain, or NULL
 */
void xensrc_dom_free(struct xen_dom *dom)
{
	if (!dom)
		return;
	free(dom->value);
	free(dom);
}

/**
 * xensrc_settled() - were the domains found that there are?
 * @xs: the source
 *
 * Return: true when they were, on this connection.
 */
bool xensrc_settled(struct xensrc *xs)
{
	bool settled;

	pthread_mutex_lock(&xs->base.lock);
	settled = xs->settled;
	pthread_mutex_unlock(&xs->base.lock);
	return settled;
}

/**
 * xensrc_here() - is this a dom0?
 *
 * Return: true when there is a xenstored here, or the kernel says so.
 */
bool xensrc_here(void)
{
	struct buf text = BUF_INIT(256);
	bool here;

	here = file_read(AT_FDCWD, "/proc/xen/capabilities", &text) &&
	       strstr(text.data, "control_d");
	buf_free(&text);
	return here || xswork_by_socket();
}
