/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How to speak to the hypervisor. All tests for a particular hypervisor are
 * in this directory; the rest of the module sees only struct tandem_hv.
 */
#ifndef TANDEM_HYPERCALL_H
#define TANDEM_HYPERCALL_H

#include <linux/bits.h>
#include <linux/types.h>

/* What the host offers; the words are in tandem_hv_feature_word(). */
#define TANDEM_F_STEAL_TIME	BIT(0)
#define TANDEM_F_PREEMPTED	BIT(1)
#define TANDEM_F_SCHED_YIELD	BIT(2)
#define TANDEM_F_REALTIME	BIT(3)
#define TANDEM_F_COUNT		4

/**
 * struct tandem_hv - one hypervisor, or one kind of guest of it
 * @name: as shown in /sys/kernel/tandem/hypervisor
 * @trusts_topology: the topology may be true until steal was seen; if false,
 *	it is known to be invented, and is flattened at once in mode auto
 * @no_hints: why hints are impossible here; NULL if they may be possible
 * @detect: are we running on this one? Does not sleep.
 * @features: mask of TANDEM_F_*; constant while the module is loaded
 * @preempted: is this vCPU off its pCPU? Any context. May be NULL with
 *	@no_hints only.
 * @hint: run this vCPU instead of the calling one; any context, preemption
 *	off. Returns 0, or a negative number if the host refused. May be NULL
 *	with @no_hints only.
 */
struct tandem_hv {
	const char *name;
	bool trusts_topology;
	const char *no_hints;
	bool (*detect)(void);
	u32 (*features)(void);
	bool (*preempted)(int cpu);
	int (*hint)(int cpu);
};

extern const struct tandem_hv tandem_hv_kvm;
extern const struct tandem_hv tandem_hv_xen_dom0;
extern const struct tandem_hv tandem_hv_xen_pv;
extern const struct tandem_hv tandem_hv_xen_pvh;
extern const struct tandem_hv tandem_hv_xen_hvm;
#ifdef TANDEM_TEST_HV
extern const struct tandem_hv tandem_hv_test;
#endif

const struct tandem_hv *tandem_hv_detect(void);
const char *tandem_hv_feature_word(unsigned int bit);
const char *tandem_hv_hint_obstacle(const struct tandem_hv *hv);

#endif /* TANDEM_HYPERCALL_H */
