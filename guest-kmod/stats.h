/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters per vCPU, and their place in sysfs.
 */
#ifndef TANDEM_STATS_H
#define TANDEM_STATS_H

#include <linux/kobject.h>
#include <linux/percpu.h>

/**
 * enum tandem_counter - index of a counter
 * @TANDEM_CONTENDED_MUTEX: waits for a mutex
 * @TANDEM_CONTENDED_RWSEM: waits for an rwsem
 * @TANDEM_CONTENDED_SPIN: waits for a spinlock or rwlock
 * @TANDEM_CONTENDED_OTHER: waits for anything else; no outcome
 * @TANDEM_HOLDER_UNKNOWN: outcome: no holder was found
 * @TANDEM_HOLDER_ASLEEP: outcome: the holder is not on a vCPU
 * @TANDEM_HOLDER_SELF: outcome: the holder's vCPU is the waiter's
 * @TANDEM_HOLDER_RUNNING: outcome: the holder's vCPU runs
 * @TANDEM_HOLDER_IDLE: outcome: the holder's vCPU is halted
 * @TANDEM_HOLDER_PREEMPTED: outcome: one of the following
 * @TANDEM_HINT_SUSTAIN: no hint, the contention is not sustained
 * @TANDEM_HINT_TRIES: no hint, the holder had its tries
 * @TANDEM_HINT_BUDGET: no hint, the waiting vCPU's budget is used up
 * @TANDEM_HINT_SENT: the host took the hint
 * @TANDEM_HINT_FAILED: the host refused it
 * @TANDEM_NR_COUNTERS: their number
 */
enum tandem_counter {
	TANDEM_CONTENDED_MUTEX,
	TANDEM_CONTENDED_RWSEM,
	TANDEM_CONTENDED_SPIN,
	TANDEM_CONTENDED_OTHER,
	TANDEM_HOLDER_UNKNOWN,
	TANDEM_HOLDER_ASLEEP,
	TANDEM_HOLDER_SELF,
	TANDEM_HOLDER_RUNNING,
	TANDEM_HOLDER_IDLE,
	TANDEM_HOLDER_PREEMPTED,
	TANDEM_HINT_SUSTAIN,
	TANDEM_HINT_TRIES,
	TANDEM_HINT_BUDGET,
	TANDEM_HINT_SENT,
	TANDEM_HINT_FAILED,
	TANDEM_NR_COUNTERS
};

extern const char * const tandem_counter_names[TANDEM_NR_COUNTERS];

/**
 * struct tandem_counters - counters of one vCPU
 * @count: only that vCPU writes, with operations that an NMI cannot tear
 */
struct tandem_counters {
	u64 count[TANDEM_NR_COUNTERS];
};

DECLARE_PER_CPU(struct tandem_counters, tandem_counters);

/**
 * tandem_count() - count one event on this vCPU
 * @counter: which
 *
 * Context: any, including NMI.
 */
static inline void tandem_count(enum tandem_counter counter)
{
	this_cpu_inc(tandem_counters.count[counter]);
}

u64 tandem_steal_total(void);
int tandem_stats_add(struct kobject *root);
void tandem_stats_remove(void);

#endif /* TANDEM_STATS_H */
