/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The domains of a Xen host and their reports, as a thread finds them in xenstore. It tells
 * the event loop what is new domain by domain: the newest report and name of each, no queue.
 */
#ifndef TANDEM_XENSRC_H
#define TANDEM_XENSRC_H

#include <stdbool.h>
#include <stdint.h>

#include "guest.h"
#include "rate.h"
#include "xswork.h"

#define XENSRC_DOMAINS_MAX 4096

struct guest;

/* What is new about a domain. */
enum xen_news {
	XEN_FOUND = 1,		/* it is there, on this connection to xenstored */
	XEN_LOST = 2,		/* the connection is gone, and nothing is known */
	XEN_GONE = 4,		/* it was destroyed: the event loop frees it */
	XEN_NAME = 8,		/* @name */
	XEN_REPORT = 16,	/* @value */
	XEN_NO_REPORT = 32,	/* it has none any more */
	XEN_COUNTS = 64,	/* @limited, @oversized */
	XEN_ANSWERED = 128,	/* its report was looked for at least once */
};

/**
 * struct xen_dom - a domain
 * @domid: its number, which is not used again for long
 * @next: the next one with news; protected by the source's lock, as is all up to @guest
 * @queued: it is among those
 * @news: what is new, of enum xen_news
 * @name: its name
 * @value: its report, from malloc(), or NULL
 * @len: length of that
 * @limited: changes of its report that were not read, because there were too many
 * @oversized: reports that were too long
 * @guest: the event loop's
 * @index: in the source's table; the thread's, as is all below
 * @turn: counts watches, so that events of an older one are known as such
 * @watched: its report is watched
 * @due: the next one with something to do
 * @is_due: it is among those
 * @read_name: read its name
 * @read_report: read its report
 * @over: it has sent too much
 * @resume_ms: watch its report again then; 0 when that was not ended
 * @rate: bounds changes of its report
 * @print: of the last report, so that the same one is not new; 0 for none
 * @seen: it was in the last list of domains
 */
struct xen_dom {
	unsigned int domid;
	struct xen_dom *next;
	bool queued;
	unsigned int news;
	char name[GUEST_NAME_MAX];
	char *value;
	size_t len;
	uint64_t limited;
	uint64_t oversized;
	struct guest *guest;
	size_t index;
	uint64_t turn;
	bool watched;
	struct xen_dom *due;
	bool is_due;
	bool read_name;
	bool read_report;
	bool over;
	int64_t resume_ms;
	struct rate_bucket rate;
	uint64_t print;
	bool seen;
};

struct xensrc;

struct xensrc *xensrc_start(int64_t max_domains, int64_t reports_per_s);
void xensrc_stop(struct xensrc *xs);
int xensrc_fd(const struct xensrc *xs);
void xensrc_check(struct xensrc *xs);
void xensrc_noted(struct xensrc *xs);
struct xen_dom *xensrc_next(struct xensrc *xs, struct xen_dom *copy);
void xensrc_again(struct xensrc *xs);
void xensrc_dom_free(struct xen_dom *dom);
bool xensrc_settled(struct xensrc *xs);
bool xensrc_here(void);

#endif
