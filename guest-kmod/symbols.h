/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel symbols that are not exported to modules.
 *
 * Functions are called through static calls only, never through a pointer:
 * on CPUs with IBT the ENDBR of a function whose address the kernel does not
 * take is sealed, and an indirect call to it faults. A static call is patched
 * into a direct call.
 */
#ifndef TANDEM_SYMBOLS_H
#define TANDEM_SYMBOLS_H

#include <linux/types.h>

struct mutex;
struct sched_domain_topology_level;

/**
 * struct tandem_symbols - addresses of the scheduler's private data
 * @topology: the pointer to the level table in force; protected by the CPU
 *	hotplug lock
 * @topology_saved: the pointer to the default table while the one in force is
 *	an allocated copy with NUMA levels; NULL without NUMA
 * @domains_mutex: protects the building of domains from the table
 * @topology_update: makes the next rebuild of the domains a complete one, and
 *	is cleared by it; protected by @domains_mutex
 * @topology_missing: the symbol that flattening cannot do without, or NULL
 * @have_idle_cpu: tandem_idle_cpu() works
 */
struct tandem_symbols {
	struct sched_domain_topology_level **topology;
	struct sched_domain_topology_level **topology_saved;
	struct mutex *domains_mutex;	/* the kernel's */
	bool *topology_update;
	const char *topology_missing;
	bool have_idle_cpu;
};

extern struct tandem_symbols tandem_symbols;

void tandem_symbols_find(void);
void tandem_rebuild_sched_domains(void);
bool tandem_idle_cpu(int cpu);

#endif /* TANDEM_SYMBOLS_H */
