// SPDX-License-Identifier: GPL-2.0
/*
 * KVM. Numbers and meanings: Documentation/virt/kvm/x86/cpuid.rst and
 * hypercalls.rst.
 */
#include <linux/kvm_para.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <asm/processor.h>

#include "compat.h"
#include "hypercall.h"

#define KVM_LEAF_FIRST	0x40000000U
#define KVM_LEAF_LAST	0x40010000U
#define KVM_LEAF_STEP	0x100U

static bool kvm_detect(void)
{
	return kvm_para_available();
}

/*
 * kvm_arch_para_features() is not exported. The kernel's helper for the base
 * leaf moved and was renamed in 6.16; the search is the one that KVM's
 * cpuid.rst prescribes.
 */
static u32 kvm_leaf_features(void)
{
	u32 base, eax, sig[3];

	for (base = KVM_LEAF_FIRST; base < KVM_LEAF_LAST; base += KVM_LEAF_STEP) {
		cpuid(base, &eax, &sig[0], &sig[1], &sig[2]);
		if (!memcmp(sig, KVM_SIGNATURE, sizeof(sig)))
			return cpuid_eax(base | KVM_CPUID_FEATURES);
	}
	return 0;
}

static u32 kvm_features(void)
{
	u32 leaf = kvm_leaf_features();
	u32 features = 0;

	/* The preempted flag is a byte of the steal-time record. */
	if (leaf & BIT(KVM_FEATURE_STEAL_TIME))
		features |= TANDEM_F_STEAL_TIME | TANDEM_F_PREEMPTED;
	if (leaf & BIT(KVM_FEATURE_PV_SCHED_YIELD))
		features |= TANDEM_F_SCHED_YIELD;
	if (kvm_para_has_hint(KVM_HINTS_REALTIME))
		features |= TANDEM_F_REALTIME;
	return features;
}

static bool kvm_preempted(int cpu)
{
	return vcpu_is_preempted(cpu);
}

/*
 * Stock KVM answers 0 even if it did not yield, and -KVM_ENOSYS where the
 * hypercall does not exist.
 */
static int kvm_hint(int cpu)
{
	long ret = kvm_hypercall1(KVM_HC_SCHED_YIELD, cpu_physical_id(cpu));

	return ret < 0 ? -1 : 0;
}

/* Operations for guests of KVM. */
const struct tandem_hv tandem_hv_kvm = {
	.name = "kvm",
	.trusts_topology = true,
	.detect = kvm_detect,
	.features = kvm_features,
	.preempted = kvm_preempted,
	.hint = kvm_hint,
};
