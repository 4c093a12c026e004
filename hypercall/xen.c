// SPDX-License-Identifier: GPL-2.0
/*
 * Xen. Meanings: xen/include/public/{sched,vcpu}.h. A Xen guest's topology is
 * what leaks from the CPU that the vCPU booted on, so it is never true unless
 * the vCPUs are pinned.
 */
#include <linux/sched.h>
#include <xen/interface/sched.h>
#include <xen/interface/vcpu.h>
#include <xen/xen.h>
#include <xen/xen-ops.h>
#include <asm/xen/hypercall.h>

#include "hypercall.h"

static bool dom0_detect(void)
{
	return xen_domain() && xen_initial_domain();
}

static bool pv_detect(void)
{
	return xen_pv_domain();
}

static bool pvh_detect(void)
{
	return xen_domain() && xen_pvh_domain();
}

static bool hvm_detect(void)
{
	return xen_hvm_domain();
}

/*
 * Every Xen that Linux runs on has the runstate of a vCPU; the kernel takes
 * steal time and vcpu_is_preempted() from it. There is no directed yield.
 */
static u32 xen_offers(void)
{
	return TANDEM_F_STEAL_TIME | TANDEM_F_PREEMPTED | TANDEM_F_YIELD;
}

/* True exactly while the vCPU is runnable: a halted one is blocked. */
static bool xen_preempted(int cpu)
{
	return vcpu_is_preempted(cpu);
}

/* The scheduler cannot be told whom to run, only that the caller can wait. */
static int xen_hint(int cpu)
{
	return HYPERVISOR_sched_op(SCHEDOP_yield, NULL) ? -1 : 0;
}

/* The hypercall answers for any vCPU of the domain, online or not. */
static bool xen_runstate(int cpu, struct tandem_runstate *rs)
{
	struct vcpu_runstate_info info = { };
	int state;

	BUILD_BUG_ON(ARRAY_SIZE(info.time) != TANDEM_VCPU_STATES);
	BUILD_BUG_ON(RUNSTATE_running != TANDEM_VCPU_RUNNING ||
		     RUNSTATE_runnable != TANDEM_VCPU_RUNNABLE ||
		     RUNSTATE_blocked != TANDEM_VCPU_BLOCKED ||
		     RUNSTATE_offline != TANDEM_VCPU_OFFLINE);
	if (HYPERVISOR_vcpu_op(VCPUOP_get_runstate_info, xen_vcpu_nr(cpu),
			       &info))
		return false;
	if (info.state < 0 || info.state >= TANDEM_VCPU_STATES)
		return false;
	rs->state = info.state;
	for (state = 0; state < TANDEM_VCPU_STATES; state++)
		rs->ns[state] = info.time[state];
	return true;
}

/* Operations for the initial domain, PV or PVH. */
const struct tandem_hv tandem_hv_xen_dom0 = {
	.name = "xen-dom0",
	.detect = dom0_detect,
	.features = xen_offers,
	.preempted = xen_preempted,
	.hint = xen_hint,
	.runstate = xen_runstate,
};

/* Operations for PV guests. */
const struct tandem_hv tandem_hv_xen_pv = {
	.name = "xen-pv",
	.detect = pv_detect,
	.features = xen_offers,
	.preempted = xen_preempted,
	.hint = xen_hint,
	.runstate = xen_runstate,
};

/* Operations for PVH guests; they are HVM guests, too: detect them first. */
const struct tandem_hv tandem_hv_xen_pvh = {
	.name = "xen-pvh",
	.detect = pvh_detect,
	.features = xen_offers,
	.preempted = xen_preempted,
	.hint = xen_hint,
	.runstate = xen_runstate,
};

/* Operations for HVM guests. */
const struct tandem_hv tandem_hv_xen_hvm = {
	.name = "xen-hvm",
	.detect = hvm_detect,
	.features = xen_offers,
	.preempted = xen_preempted,
	.hint = xen_hint,
	.runstate = xen_runstate,
};
