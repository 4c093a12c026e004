// SPDX-License-Identifier: GPL-2.0
/*
 * Which hypervisor is this, and what does it offer?
 */
#include <linux/kernel.h>

#include "hypercall.h"

/*
 * Xen before KVM: a KVM host that emulates Xen shows both signatures, and the
 * kernel then is a Xen guest. Dom0 before the kinds of guest that it also is.
 */
static const struct tandem_hv * const known[] = {
	&tandem_hv_xen_dom0,
	&tandem_hv_xen_pv,
	&tandem_hv_xen_pvh,
	&tandem_hv_xen_hvm,
	&tandem_hv_kvm,
#ifdef TANDEM_TEST_HV
	&tandem_hv_test,
#endif
};

/**
 * tandem_hv_detect() - find the hypervisor below
 *
 * Return: its operations, or NULL where there is none that tandem knows.
 */
const struct tandem_hv *tandem_hv_detect(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i]->detect())
			return known[i];
	return NULL;
}

/**
 * tandem_hv_feature_word() - name of one feature bit
 * @bit: number of the bit, below TANDEM_F_COUNT
 *
 * Return: the word for sysfs and the log; NULL if there is no such bit.
 */
const char *tandem_hv_feature_word(unsigned int bit)
{
	static const char * const words[TANDEM_F_COUNT] = {
		"steal-time", "preempted", "sched-yield", "realtime",
		"yield",
	};

	return bit < TANDEM_F_COUNT ? words[bit] : NULL;
}

/**
 * tandem_hv_hint_obstacle() - why hints cannot work here
 * @hv: the detected hypervisor
 *
 * Return: the reason in words, or NULL if they can work.
 */
const char *tandem_hv_hint_obstacle(const struct tandem_hv *hv)
{
	u32 features = hv->features();

	if (!(features & (TANDEM_F_SCHED_YIELD | TANDEM_F_YIELD)))
		return "the host does not offer a directed yield (sched-yield)";
	if (!(features & TANDEM_F_PREEMPTED))
		return "the host does not offer the preempted flag (steal-time)";
	return NULL;
}
