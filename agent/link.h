/* SPDX-License-Identifier: GPL-2.0 */
/* The way to the host: what a transport offers the agent, and what it tells it. */
#ifndef TANDEM_LINK_H
#define TANDEM_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "said.h"

struct link;

/**
 * struct link_events - what the owner wants to know
 * @opened: the host has begun to listen, and knows nothing yet
 * @line: a line from the host
 * @oversized: the host sends a line that is too long, which is dropped
 * @said: the host says something, or takes it back: see said_set()
 *
 * A transport calls those that it has a use for, in the event loop's thread.
 */
struct link_events {
	void (*opened)(void *arg);
	void (*line)(void *arg, char *line, size_t len);
	void (*oversized)(void *arg);
	void (*said)(void *arg, enum said_key key, const char *value, size_t len);
};

/**
 * struct link_ops - a transport
 * @look: see whether anything has changed; called on every tick
 * @ready: is anybody there to send to?
 * @send: send one report, of at most @max bytes; false when it was not taken. Never waits
 * @close: close it; @look would open it again
 */
struct link_ops {
	void (*look)(struct link *l);
	bool (*ready)(const struct link *l);
	bool (*send)(struct link *l, const char *text, size_t len);
	void (*close)(struct link *l);
};

/**
 * struct link - first member of each transport's structure
 * @ops: the transport
 * @events: the owner's functions
 * @arg: passed to them
 * @label: its name in the log
 * @max: longest report that it takes, in bytes
 * @dropped: reports that did not reach the host
 */
struct link {
	const struct link_ops *ops;
	const struct link_events *events;
	void *arg;
	char label[128];
	size_t max;
	uint64_t dropped;
};

#endif
