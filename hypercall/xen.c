// SPDX-License-Identifier: GPL-2.0
/*
 * Xen: detection. A Xen guest's topology is what leaks from the CPU that the
 * vCPU booted on, so it is never true unless the vCPUs are pinned.
 */
#include <linux/sched.h>
#include <xen/xen.h>

#include "hypercall.h"

#define NO_XEN_HINTS	"hints on Xen are not built yet"

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
 * steal time and vcpu_is_preempted() from it.
 */
static u32 xen_features(void)
{
	return TANDEM_F_STEAL_TIME | TANDEM_F_PREEMPTED;
}

static bool xen_preempted(int cpu)
{
	return vcpu_is_preempted(cpu);
}

/* Operations for the initial domain, PV or PVH. */
const struct tandem_hv tandem_hv_xen_dom0 = {
	.name = "xen-dom0",
	.no_hints = NO_XEN_HINTS,
	.detect = dom0_detect,
	.features = xen_features,
	.preempted = xen_preempted,
};

/* Operations for PV guests. */
const struct tandem_hv tandem_hv_xen_pv = {
	.name = "xen-pv",
	.no_hints = NO_XEN_HINTS,
	.detect = pv_detect,
	.features = xen_features,
	.preempted = xen_preempted,
};

/* Operations for PVH guests; they are HVM guests, too: detect them first. */
const struct tandem_hv tandem_hv_xen_pvh = {
	.name = "xen-pvh",
	.no_hints = NO_XEN_HINTS,
	.detect = pvh_detect,
	.features = xen_features,
	.preempted = xen_preempted,
};

/* Operations for HVM guests. */
const struct tandem_hv tandem_hv_xen_hvm = {
	.name = "xen-hvm",
	.no_hints = NO_XEN_HINTS,
	.detect = hvm_detect,
	.features = xen_features,
	.preempted = xen_preempted,
};
