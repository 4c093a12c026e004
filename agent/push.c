// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "push.h"

/* Did a number move by more than @permille of @scale? Becoming known is a move, too. */
static bool moved(int64_t before, int64_t now, int64_t scale, int64_t permille)
{
	int64_t by = now > before ? now - before : before - now;

	if (before == REPORT_UNKNOWN || now == REPORT_UNKNOWN)
		return before != now;
	return by * 1000 > scale * permille;
}

static bool module_changed(const struct report_module *a, const struct report_module *b)
{
	return a->present != b->present || strcmp(a->topology, b->topology) ||
	       strcmp(a->gate, b->gate) || strcmp(a->hints_state, b->hints_state);
}

static bool report_changed(const struct report *a, const struct report *b, int64_t permille)
{
	int64_t capacity = b->vcpus_online * 1000;

	return strcmp(a->group, b->group) || a->period_ms != b->period_ms ||
	       a->vcpus_online != b->vcpus_online || a->vcpus_present != b->vcpus_present ||
	       module_changed(&a->module, &b->module) ||
	       moved(a->used_mcpu, b->used_mcpu, capacity, permille) ||
	       moved(a->steal_mcpu, b->steal_mcpu, capacity, permille) ||
	       moved(a->demand_mcpu, b->demand_mcpu, capacity, permille) ||
	       moved(a->psi_avg10_centi, b->psi_avg10_centi, 10000, permille);
}

/**
 * push_due() - is it time to push a report?
 * @ps: what the host has
 * @now: the new sample
 * @now_ms: clock_ms()
 * @threshold_permille: a change up to this much of what the online vCPUs can
 *	use (of 100 percent, for the pressure) is not worth a report
 *
 * Counters are no reason of their own: they ride along, and the host takes the
 * rate over whatever time lies between two reports. The heartbeat is the one
 * that @now promises; it is counted a quarter of a period early, or a timer that fires a
 * millisecond too soon would delay it by a whole period.
 *
 * Return: why, or PUSH_NOT.
 */
enum push_reason push_due(const struct push_state *ps, const struct report *now, int64_t now_ms,
			  int64_t threshold_permille)
{
	if (!ps->valid)
		return PUSH_FIRST;
	if (report_changed(&ps->last, now, threshold_permille))
		return PUSH_CHANGE;
	if (now_ms - ps->sent_ms >= now->heartbeat_ms - now->period_ms / 4)
		return PUSH_HEARTBEAT;
	return PUSH_NOT;
}

/**
 * push_sent() - remember what the host has now
 * @ps: the state
 * @now: the report that was sent
 * @now_ms: clock_ms()
 */
void push_sent(struct push_state *ps, const struct report *now, int64_t now_ms)
{
	ps->valid = true;
	ps->sent_ms = now_ms;
	ps->last = *now;
}
