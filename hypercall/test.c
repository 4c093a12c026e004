// SPDX-License-Identifier: GPL-2.0
/*
 * Test build only (TANDEM_TEST_HV=1): a hypervisor that every machine has,
 * with its answers taken from module parameters.
 */
#include <linux/atomic.h>
#include <linux/kernel_stat.h>
#include <linux/module.h>

#include "hypercall.h"

static ulong test_preempted;
module_param(test_preempted, ulong, 0644);
MODULE_PARM_DESC(test_preempted, "Mask of the vCPUs that are said to be preempted");

static bool test_realtime;
module_param(test_realtime, bool, 0444);
MODULE_PARM_DESC(test_realtime, "The host promises dedicated pCPUs");

static bool test_no_yield;
module_param(test_no_yield, bool, 0444);
MODULE_PARM_DESC(test_no_yield, "The host has no directed yield");

static bool test_hint_fails;
module_param(test_hint_fails, bool, 0644);
MODULE_PARM_DESC(test_hint_fails, "The host refuses hints");

static int set_steal(const char *val, const struct kernel_param *kp)
{
	u64 ns;
	int err = kstrtou64(val, 10, &ns);

	if (!err)
		kcpustat_cpu(0).cpustat[CPUTIME_STEAL] += ns;
	return err;
}

static const struct kernel_param_ops steal_ops = { .set = set_steal };
module_param_cb(test_steal_ns, &steal_ops, NULL, 0200);
MODULE_PARM_DESC(test_steal_ns, "Write: add this to the steal time of CPU 0");

static bool test_detect(void)
{
	return true;
}

static u32 test_features(void)
{
	return TANDEM_F_STEAL_TIME | TANDEM_F_PREEMPTED |
	       (test_no_yield ? 0 : TANDEM_F_SCHED_YIELD) |
	       (test_realtime ? TANDEM_F_REALTIME : 0);
}

static bool test_is_preempted(int cpu)
{
	return cpu < BITS_PER_LONG && READ_ONCE(test_preempted) >> cpu & 1;
}

static int test_hint(int cpu)
{
	return READ_ONCE(test_hint_fails) ? -1 : 0;
}

static bool test_no_runstate;
module_param(test_no_runstate, bool, 0644);
MODULE_PARM_DESC(test_no_runstate, "The host does not answer about run states");

/* vCPU n is in state n, and was n seconds and so many ns in each. */
static bool test_runstate(int cpu, struct tandem_runstate *rs)
{
	int state;

	rs->state = cpu % TANDEM_VCPU_STATES;
	for (state = 0; state < TANDEM_VCPU_STATES; state++)
		rs->ns[state] = cpu * (u64)NSEC_PER_SEC + state;
	return !test_no_runstate;
}

/* Operations for the tests' hypervisor. */
const struct tandem_hv tandem_hv_test = {
	.name = "test",
	.trusts_topology = true,
	.detect = test_detect,
	.features = test_features,
	.preempted = test_is_preempted,
	.hint = test_hint,
	.runstate = test_runstate,
};
