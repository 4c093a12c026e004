/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The few primitives that the policy needs, for the kernel and for the unit
 * tests and the simulator. Nothing else may be included by policy.c.
 */
#ifndef TANDEM_POLICY_SHIM_H
#define TANDEM_POLICY_SHIM_H

#ifdef __KERNEL__

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/types.h>

#define tandem_load64(p)	READ_ONCE(*(p))
#define tandem_store64(p, v)	WRITE_ONCE(*(p), (v))

static inline bool tandem_cas64(u64 *p, u64 old, u64 new)
{
	return cmpxchg64(p, old, new) == old;
}

#else

#include <linux/types.h>
#include <stdbool.h>

typedef __u64 u64;
typedef __u32 u32;

#define tandem_load64(p)	__atomic_load_n((p), __ATOMIC_RELAXED)
#define tandem_store64(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELAXED)

static inline bool tandem_cas64(u64 *p, u64 old, u64 new)
{
	return __atomic_compare_exchange_n(p, &old, new, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

#endif /* __KERNEL__ */

#endif /* TANDEM_POLICY_SHIM_H */
