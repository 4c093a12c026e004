/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When is a hint worth a hypercall, and when is the host overcommitted: pure
 * decisions, without a clock, a lock or a call into the kernel.
 *
 * Rules of use:
 * - struct tandem_waiter belongs to one vCPU; only that vCPU touches it, and
 *   not re-entrantly.
 * - struct tandem_target is shared: any vCPU may use it at any time.
 * - struct tandem_gate is protected by its owner.
 * - Times are nanoseconds of any clock that is roughly the same on all vCPUs.
 *   Wrapping and steps in either direction are harmless: the worst is one
 *   window's worth of waiting, or of hints, too many.
 */
#ifndef TANDEM_POLICY_H
#define TANDEM_POLICY_H

#include "policy_shim.h"

#define TANDEM_NSEC_PER_SEC	1000000000ULL
#define TANDEM_NSEC_PER_MSEC	1000000ULL
#define TANDEM_NSEC_PER_USEC	1000ULL

/* Bounds and defaults; their reasons are in docs/ABI/sysfs-kernel-tandem. */
#define TANDEM_WINDOW_US_MIN	10U
#define TANDEM_WINDOW_US_MAX	10000000U
#define TANDEM_WINDOW_US_DEF	10000U
#define TANDEM_SUSTAIN_MIN	1U
#define TANDEM_SUSTAIN_MAX	1000U
#define TANDEM_SUSTAIN_DEF	2U
#define TANDEM_TRIES_MIN	1U
#define TANDEM_TRIES_MAX	100U
#define TANDEM_TRIES_DEF	3U
#define TANDEM_BUDGET_MIN	1U
#define TANDEM_BUDGET_MAX	100000U
#define TANDEM_BUDGET_DEF	200U

#define TANDEM_OPEN_PERMILLE_MIN	1U
#define TANDEM_OPEN_PERMILLE_MAX	1000U
#define TANDEM_OPEN_PERMILLE_DEF	20U
#define TANDEM_HOLD_MS_MIN		0U
#define TANDEM_HOLD_MS_MAX		3600000U
#define TANDEM_HOLD_MS_DEF		5000U
#define TANDEM_PERIOD_MS_MIN		10U
#define TANDEM_PERIOD_MS_MAX		60000U
#define TANDEM_PERIOD_MS_DEF		1000U

/**
 * enum tandem_verdict - what the policy says about one event
 * @TANDEM_SEND: tell the host
 * @TANDEM_SUPPRESSED_SUSTAIN: the contention is not sustained (yet)
 * @TANDEM_SUPPRESSED_TRIES: the holder had its tries, or another waiter won
 * @TANDEM_SUPPRESSED_BUDGET: the waiting vCPU used up its budget
 */
enum tandem_verdict {
	TANDEM_SEND,
	TANDEM_SUPPRESSED_SUSTAIN,
	TANDEM_SUPPRESSED_TRIES,
	TANDEM_SUPPRESSED_BUDGET,
};

/**
 * struct tandem_policy - the tunables of the hints
 * @window_ns: events farther apart than this are not one contention; also the
 *	time to stand back after the tries at one holder
 * @sustain: hints start with this event of a sustained contention, from 1
 * @tries: hints to one preempted holder within the window, from 1 to 255
 * @budget: hints by one waiting vCPU per second
 */
struct tandem_policy {
	u64 window_ns;
	u32 sustain;
	u32 tries;
	u32 budget;
};

/**
 * struct tandem_waiter - memory of one waiting vCPU; all zero at the start
 * @last_ns: time of the last event with a preempted holder
 * @second_ns: start of the second that the budget counts in
 * @run: events that followed each other within the window, 0 = none ever
 * @used: hints in this second
 */
struct tandem_waiter {
	u64 last_ns;
	u64 second_ns;
	u32 run;
	u32 used;
};

/**
 * struct tandem_target - memory of one lock holder's vCPU; all zero at start
 * @word: bits 63..8 the time of the first try of the window (low 56 bits of
 *	the clock, 2.3 years), bits 7..0 the tries since; 0 tries = no window.
 *	One word, so that one compare-and-exchange decides among all waiters.
 */
struct tandem_target {
	u64 word;
};

/**
 * struct tandem_gate_policy - the tunables of the overcommit gate
 * @open_permille: steal, in permille of the online vCPUs' time, that opens it
 * @hold_ns: it closes after steal stayed below that for this long
 */
struct tandem_gate_policy {
	u32 open_permille;
	u64 hold_ns;
};

/**
 * struct tandem_gate - state of the overcommit gate; all zero at the start
 * @steal_ns: steal of all vCPUs at the last sample
 * @sample_ns: time of the last sample
 * @below_ns: time of the sample since which steal is too low
 * @permille: steal of the last period
 * @sampled: there was a sample
 * @below: @below_ns counts
 * @open: the host is overcommitted
 */
struct tandem_gate {
	u64 steal_ns;
	u64 sample_ns;
	u64 below_ns;
	u32 permille;
	bool sampled;
	bool below;
	bool open;
};

const char *tandem_verdict_name(enum tandem_verdict verdict);
enum tandem_verdict tandem_policy_event(const struct tandem_policy *policy,
					struct tandem_waiter *waiter,
					struct tandem_target *target, u64 now);
void tandem_policy_running(struct tandem_target *target);
u32 tandem_steal_permille(u64 steal_ns, u64 elapsed_ns, u32 vcpus);
bool tandem_gate_sample(struct tandem_gate *gate,
			const struct tandem_gate_policy *policy,
			u64 steal_ns, u64 now, u32 vcpus);

#endif /* TANDEM_POLICY_H */
