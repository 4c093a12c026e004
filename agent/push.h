/* SPDX-License-Identifier: GPL-2.0 */
/* When is a sample worth a report? A pure function. */
#ifndef TANDEM_PUSH_H
#define TANDEM_PUSH_H

#include "report.h"

enum push_reason {
	PUSH_NOT,
	PUSH_FIRST,
	PUSH_CHANGE,
	PUSH_HEARTBEAT,
};

/**
 * struct push_state - the report that the host has
 * @valid: there is one
 * @sent_ms: clock_ms() when it was sent
 * @last: what it said
 */
struct push_state {
	bool valid;
	int64_t sent_ms;
	struct report last;
};

enum push_reason push_due(const struct push_state *ps, const struct report *now, int64_t now_ms,
			  int64_t threshold_permille);
void push_sent(struct push_state *ps, const struct report *now, int64_t now_ms);

#endif
