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
#define TANDEM_F_YIELD		BIT(4)
#define TANDEM_F_COUNT		5

/* What a vCPU is to the host's scheduler; numbered as Xen's RUNSTATE_*. */
enum tandem_vcpu_state {
	TANDEM_VCPU_RUNNING,
	TANDEM_VCPU_RUNNABLE,
	TANDEM_VCPU_BLOCKED,
	TANDEM_VCPU_OFFLINE,
	TANDEM_VCPU_STATES
};

/**
 * struct tandem_runstate - what became of a vCPU's time, as the host counts it
 * @state: at this moment
 * @ns: time spent in each state since the guest was made
 */
struct tandem_runstate {
	enum tandem_vcpu_state state;
	u64 ns[TANDEM_VCPU_STATES];
};

/**
 * struct tandem_hv - one hypervisor, or one kind of guest of it
 * @name: as shown in /sys/kernel/tandem/hypervisor
 * @trusts_topology: the topology may be true until steal was seen; if false,
 *	it is known to be invented, and is flattened at once in mode auto
 * @detect: are we running on this one? Does not sleep.
 * @features: mask of TANDEM_F_*; constant while the module is loaded
 * @preempted: does this vCPU want a pCPU and have none? Any context. It may
 *	also be true for a halted one: KVM hosts before 5.19 set the flag at
 *	every exit to the host's scheduler (at_instruction_boundary in x86.c
 *	came then).
 * @hint: run this vCPU instead of the calling one (TANDEM_F_SCHED_YIELD), or
 *	let any other vCPU run instead of the calling one (TANDEM_F_YIELD); any
 *	context, preemption off. Returns 0, or a negative number if the host
 *	refused.
 * @runstate: the host's account of a vCPU's time; process context. Returns
 *	false if the host did not answer. NULL where there is none.
 */
struct tandem_hv {
	const char *name;
	bool trusts_topology;
	bool (*detect)(void);
	u32 (*features)(void);
	bool (*preempted)(int cpu);
	int (*hint)(int cpu);
	bool (*runstate)(int cpu, struct tandem_runstate *rs);
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
