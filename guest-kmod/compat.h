/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels 6.1 and 7.3, or with their configuration. No
 * other file tests a version or a CONFIG_ symbol.
 */
#ifndef TANDEM_COMPAT_H
#define TANDEM_COMPAT_H

#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched/topology.h>
#include <linux/version.h>

#define TANDEM_KERNEL_SINCE(major, minor) \
	(KERNEL_VERSION(LINUX_VERSION_MAJOR, LINUX_VERSION_PATCHLEVEL, 0) >= \
	 KERNEL_VERSION(major, minor, 0))

#if !IS_ENABLED(CONFIG_SMP) || !IS_ENABLED(CONFIG_CPUSETS)
#error "tandem needs a kernel with SMP and CPUSETS"
#endif

#if !IS_ENABLED(CONFIG_KPROBES) || !IS_ENABLED(CONFIG_KALLSYMS_ALL)
#error "tandem needs a kernel with KPROBES and KALLSYMS_ALL"
#endif

#if !IS_ENABLED(CONFIG_X86_64)
#error "tandem needs x86-64"
#endif

/* cpuid() is no longer in processor.h since 6.16. */
#if TANDEM_KERNEL_SINCE(6, 16)
#include <asm/cpuid/api.h>
#endif

/* Since 6.18 the mask function is told its level. */
#if TANDEM_KERNEL_SINCE(6, 18)
#define TANDEM_TL_MASK_ARGS \
	struct sched_domain_topology_level *tl __always_unused, int cpu
#else
#define TANDEM_TL_MASK_ARGS		int cpu
#endif

/**
 * tandem_tl_mask() - call the mask function of a level
 * @level: entry of the table in force
 * @cpu: an online CPU
 *
 * Return: the CPUs that the level puts together with @cpu.
 */
static inline const struct cpumask *
tandem_tl_mask(struct sched_domain_topology_level *level, int cpu)
{
#if TANDEM_KERNEL_SINCE(6, 18)
	return level->mask(level, cpu);
#else
	return level->mask(cpu);
#endif
}

/* Renamed in 6.9. */
#if TANDEM_KERNEL_SINCE(6, 9)
#define TANDEM_SD_SHARE_LLC	SD_SHARE_LLC
#else
#define TANDEM_SD_SHARE_LLC	SD_SHARE_PKG_RESOURCES
#endif

/* Before 6.16 levels had a name only with SCHED_DEBUG; Debian has it. */
#define TANDEM_TL_HAS_NAME \
	(TANDEM_KERNEL_SINCE(6, 16) || IS_ENABLED(CONFIG_SCHED_DEBUG))

/**
 * tandem_tl_name() - name of a level
 * @level: entry of a table
 *
 * Return: the name, or NULL where the kernel has none.
 */
static inline const char *
tandem_tl_name(const struct sched_domain_topology_level *level)
{
#if TANDEM_TL_HAS_NAME
	return level->name;
#else
	return NULL;
#endif
}

/**
 * tandem_tl_set_name() - set the name of a level, where it has one
 * @level: entry of a table
 * @name: outlives the table and the domains built from it
 */
static inline void tandem_tl_set_name(struct sched_domain_topology_level *level,
				      char *name)
{
#if TANDEM_TL_HAS_NAME
	level->name = name;
#endif
}

/*
 * Without NUMA the kernel never swaps the level table and does not keep
 * sched_domain_topology_saved.
 */
#define TANDEM_HAS_NUMA		IS_ENABLED(CONFIG_NUMA)

/**
 * tandem_mutex_owner() - owner word of a contended mutex
 * @lock: the struct mutex that the tracepoint named
 *
 * With PREEMPT_RT a mutex is an rtmutex and never reported as LCB_F_MUTEX.
 *
 * Return: the word with its flags; 0 if there is no owner.
 */
static inline unsigned long tandem_mutex_owner(const void *lock)
{
#if IS_ENABLED(CONFIG_PREEMPT_RT)
	return 0;
#else
	return (unsigned long)atomic_long_read(&((const struct mutex *)lock)->owner);
#endif
}

/**
 * tandem_rwsem_owner() - owner word of a contended rwsem
 * @lock: the struct rw_semaphore that the tracepoint named
 *
 * Return: the word with its flags; 0 if there is no owner.
 */
static inline unsigned long tandem_rwsem_owner(const void *lock)
{
#if IS_ENABLED(CONFIG_PREEMPT_RT)
	return 0;
#else
	return (unsigned long)atomic_long_read(&((const struct rw_semaphore *)lock)->owner);
#endif
}

#endif /* TANDEM_COMPAT_H */
