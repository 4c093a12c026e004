// SPDX-License-Identifier: GPL-2.0
/*
 * Samples steal for the gate, and tells hints and topology what it saw.
 *
 * Invariant: the work is queued, running or about to look at "sampling" under
 * tandem_mutex exactly while some mode is auto; without, there is no wake-up.
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "gate.h"
#include "lockhint.h"
#include "policy.h"
#include "topology.h"
#include "trace.h"

static void sample_fn(struct work_struct *work);

static DECLARE_DELAYED_WORK(sample_work, sample_fn);

/**
 * struct gate - protected by tandem_mutex
 * @gate: the state proper
 * @policy: its tunables
 * @period_ms: between samples
 * @opened: how often the gate opened
 * @sampling: some mode is auto
 */
struct gate {
	struct tandem_gate gate;
	struct tandem_gate_policy policy;
	u32 period_ms;
	u64 opened;
	bool sampling;
};

static struct gate gate = {
	.policy = {
		.open_permille = TANDEM_OPEN_PERMILLE_DEF,
		.hold_ns = TANDEM_HOLD_MS_DEF * TANDEM_NSEC_PER_MSEC,
	},
	.period_ms = TANDEM_PERIOD_MS_DEF,
};

static void queue(unsigned int delay_ms)
{
	queue_delayed_work(tandem_wq, &sample_work, msecs_to_jiffies(delay_ms));
}

static void sample(void)
{
	u64 steal = tandem_steal_total();

	if (steal)
		tandem_topology_steal_seen();
	if (!tandem_gate_sample(&gate.gate, &gate.policy, steal,
				ktime_get_ns(), num_online_cpus()))
		return;
	gate.opened += gate.gate.open;
	trace_tandem_gate(gate.gate.open, gate.gate.permille);
	tandem_hints_update();
}

static void sample_fn(struct work_struct *work)
{
	mutex_lock(&tandem_mutex);
	if (gate.sampling) {
		sample();
		queue(gate.period_ms);
	}
	mutex_unlock(&tandem_mutex);
}

static void start(void)
{
	gate.sampling = true;
	queue(0);
}

/* What is not looked at is closed. */
static void stop(void)
{
	gate.sampling = false;
	cancel_delayed_work(&sample_work);
	gate.gate = (struct tandem_gate){ };
	tandem_hints_update();
}

/**
 * tandem_gate_update() - sample if and only if some mode is auto
 *
 * To be called after every change of a mode.
 */
void tandem_gate_update(void)
{
	bool want = tandem_hints_mode() == TANDEM_AUTO ||
		    tandem_topology_mode() == TANDEM_AUTO;

	if (want && !gate.sampling)
		start();
	else if (!want && gate.sampling)
		stop();
}

/**
 * tandem_gate_cancel() - wait until no sample is being taken
 *
 * Context: process, without tandem_mutex; no mode is auto any more.
 */
void tandem_gate_cancel(void)
{
	cancel_delayed_work_sync(&sample_work);
}

/**
 * tandem_gate_is_open() - is the host overcommitted?
 *
 * Context: any.
 * Return: true while it is.
 */
bool tandem_gate_is_open(void)
{
	return READ_ONCE(gate.gate.open);
}

/**
 * tandem_gate_permille() - steal of the last period, permille of the online
 * vCPUs' time
 *
 * Context: any.
 * Return: 0 to 1000; 0 while nothing is sampled.
 */
u32 tandem_gate_permille(void)
{
	return READ_ONCE(gate.gate.permille);
}

/**
 * tandem_gate_opened() - how often the gate opened since load
 *
 * Context: any.
 * Return: a count.
 */
u64 tandem_gate_opened(void)
{
	return READ_ONCE(gate.opened);
}

/**
 * tandem_gate_tunable() - read a tunable
 * @tunable: which
 *
 * Context: any.
 * Return: its value in the unit of its name.
 */
u32 tandem_gate_tunable(enum tandem_gate_tunable tunable)
{
	switch (tunable) {
	case TANDEM_GATE_OPEN_PERMILLE:
		return READ_ONCE(gate.policy.open_permille);
	case TANDEM_GATE_HOLD_MS:
		return (u32)(READ_ONCE(gate.policy.hold_ns) /
			     TANDEM_NSEC_PER_MSEC);
	case TANDEM_GATE_PERIOD_MS:
		return READ_ONCE(gate.period_ms);
	}
	return 0;
}

static void set_period(u32 period_ms)
{
	WRITE_ONCE(gate.period_ms, period_ms);
	if (gate.sampling)
		mod_delayed_work(tandem_wq, &sample_work,
				 msecs_to_jiffies(period_ms));
}

/**
 * tandem_gate_set_tunable() - set a tunable; takes effect with the next sample
 * @tunable: which
 * @value: within its bounds, see policy.h
 */
void tandem_gate_set_tunable(enum tandem_gate_tunable tunable, u32 value)
{
	switch (tunable) {
	case TANDEM_GATE_OPEN_PERMILLE:
		WRITE_ONCE(gate.policy.open_permille, value);
		break;
	case TANDEM_GATE_HOLD_MS:
		WRITE_ONCE(gate.policy.hold_ns, value * TANDEM_NSEC_PER_MSEC);
		break;
	case TANDEM_GATE_PERIOD_MS:
		set_period(value);
		break;
	}
}
