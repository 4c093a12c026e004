/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The overcommit gate: open while the host takes pCPU time from this guest.
 * All functions: process context, tandem_mutex held, unless said otherwise.
 */
#ifndef TANDEM_GATE_H
#define TANDEM_GATE_H

#include <linux/types.h>

/**
 * enum tandem_gate_tunable - a number of the gate that can be set
 * @TANDEM_GATE_OPEN_PERMILLE: see struct tandem_gate_policy
 * @TANDEM_GATE_HOLD_MS: see struct tandem_gate_policy
 * @TANDEM_GATE_PERIOD_MS: between samples
 */
enum tandem_gate_tunable {
	TANDEM_GATE_OPEN_PERMILLE,
	TANDEM_GATE_HOLD_MS,
	TANDEM_GATE_PERIOD_MS,
};

void tandem_gate_update(void);
void tandem_gate_cancel(void);
bool tandem_gate_is_open(void);
u32 tandem_gate_permille(void);
u64 tandem_gate_opened(void);
u32 tandem_gate_tunable(enum tandem_gate_tunable tunable);
void tandem_gate_set_tunable(enum tandem_gate_tunable tunable, u32 value);

#endif /* TANDEM_GATE_H */
