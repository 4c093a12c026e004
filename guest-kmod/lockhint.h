/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tell the host which vCPU to run when a task is about to wait for a lock
 * whose holder's vCPU is preempted. All functions: process context,
 * tandem_mutex held, unless said otherwise.
 */
#ifndef TANDEM_LOCKHINT_H
#define TANDEM_LOCKHINT_H

#include "stats.h"
#include "tandem.h"

/**
 * enum tandem_class - kinds of locks whose holder can be found
 * @TANDEM_CLASS_MUTEX: struct mutex
 * @TANDEM_CLASS_RWSEM: struct rw_semaphore
 * @TANDEM_CLASS_SPIN: qspinlock and qrwlock
 * @TANDEM_CLASS_OTHER: all others; counted only
 */
enum tandem_class {
	TANDEM_CLASS_MUTEX,
	TANDEM_CLASS_RWSEM,
	TANDEM_CLASS_SPIN,
	TANDEM_CLASS_OTHER,
};

/**
 * enum tandem_tunable - a number of the policy that can be set
 * @TANDEM_WINDOW_US: see struct tandem_policy
 * @TANDEM_SUSTAIN: see struct tandem_policy
 * @TANDEM_TRIES: see struct tandem_policy
 * @TANDEM_BUDGET: see struct tandem_policy
 */
enum tandem_tunable {
	TANDEM_WINDOW_US,
	TANDEM_SUSTAIN,
	TANDEM_TRIES,
	TANDEM_BUDGET,
};

void tandem_hints_init(void);
void tandem_hints_stop(void);
void tandem_hints_update(void);

enum tandem_mode tandem_hints_mode(void);
void tandem_hints_set_mode(enum tandem_mode mode);
int tandem_hints_state(char *buf, size_t size);

u32 tandem_hints_tunable(enum tandem_tunable tunable);
void tandem_hints_set_tunable(enum tandem_tunable tunable, u32 value);

#endif /* TANDEM_LOCKHINT_H */
