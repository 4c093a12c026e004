/* SPDX-License-Identifier: GPL-2.0 */
/* Xenstore as the way to the host, in a domU or in dom0 itself. */
#ifndef TANDEM_XENLINK_H
#define TANDEM_XENLINK_H

#include <stdbool.h>

#include <ev.h>

#include "link.h"

/* Relative to the domain's home, /local/domain/ID. */
#define XENLINK_DATA		"data/tandem"
#define XENLINK_REPORT		"data/tandem/report"
#define XENLINK_CONTROL		"control/tandem"
/*
 * xenstored lets a node of a domU have 2048 bytes (its quota for the size of an entry), of
 * which its header and up to four permissions take 24 and 32.
 */
#define XENLINK_REPORT_MAX	1984

struct xenlink_work;

/**
 * struct xenlink - xenstore
 * @link: what the agent sees of it; its @dropped counts reports that a newer one replaced
 *	before xenstored took them, and those that it refused
 * @loop: the event loop
 * @io: news from the thread
 * @work: the thread, or NULL while there is none
 * @connected: it has a connection
 * @failed: it could not be started
 */
struct xenlink {
	struct link link;
	struct ev_loop *loop;
	ev_io io;
	struct xenlink_work *work;
	bool connected;
	bool failed;
};

void xenlink_init(struct xenlink *x, struct ev_loop *loop, const struct link_events *events,
		  void *arg);
bool xenlink_here(int root_fd);

#endif
