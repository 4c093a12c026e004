// SPDX-License-Identifier: GPL-2.0
/*
 * Lookup of private symbols: see symbols.h.
 */
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/static_call.h>

#include "compat.h"
#include "symbols.h"

#define LOOKUP	"kallsyms_lookup_name"

/* Results of tandem_symbols_find(); constant afterwards. */
struct tandem_symbols tandem_symbols;

static unsigned long no_lookup(const char *name)
{
	return 0;
}

static void no_rebuild(void)
{
}

static int no_idle(int cpu)
{
	return 1;
}

DEFINE_STATIC_CALL(tandem_lookup, no_lookup);
DEFINE_STATIC_CALL(tandem_rebuild, no_rebuild);
DEFINE_STATIC_CALL(tandem_idle, no_idle);

/*
 * kallsyms_lookup_name() is not exported since 5.7, but a kprobe resolves its
 * name. Where the function begins with ENDBR the probe sits behind that
 * (arch_adjust_kprobe_addr()); a static call wants the begin, because with
 * call depth tracking the kernel looks at the padding before it.
 */
static bool find_lookup(void)
{
	struct kprobe probe = { .symbol_name = LOOKUP };
	char symbol[KSYM_SYMBOL_LEN];
	unsigned long offset;

	if (register_kprobe(&probe))
		return false;
	unregister_kprobe(&probe);
	sprint_symbol(symbol, (unsigned long)probe.addr);
	if (sscanf(symbol, LOOKUP "+%lx/", &offset) != 1)
		return false;
	static_call_update(tandem_lookup, (void *)probe.addr - offset);
	return true;
}

static unsigned long lookup(const char *name)
{
	return static_call(tandem_lookup)(name);
}

static unsigned long need(const char *name)
{
	unsigned long addr = lookup(name);

	if (!addr && !tandem_symbols.topology_missing)
		tandem_symbols.topology_missing = name;
	return addr;
}

/**
 * tandem_symbols_find() - look all private symbols up
 *
 * Missing ones are noted in tandem_symbols: they cost a function of the
 * module, not its load.
 *
 * Context: process, at load only.
 */
void tandem_symbols_find(void)
{
	struct tandem_symbols *s = &tandem_symbols;
	unsigned long rebuild, idle;

	if (!find_lookup()) {
		s->topology_missing = LOOKUP;
		return;
	}
	s->topology = (void *)need("sched_domain_topology");
	if (TANDEM_HAS_NUMA)
		s->topology_saved = (void *)need("sched_domain_topology_saved");
	s->domains_mutex = (void *)need("sched_domains_mutex");
	s->topology_update = (void *)need("x86_topology_update");
	rebuild = need("rebuild_sched_domains");
	if (rebuild)
		static_call_update(tandem_rebuild, (void *)rebuild);
	idle = lookup("idle_cpu");
	if (idle)
		static_call_update(tandem_idle, (void *)idle);
	s->have_idle_cpu = idle;
}

/**
 * tandem_rebuild_sched_domains() - the kernel's rebuild_sched_domains()
 *
 * May return without having rebuilt anything when it meets a CPU hotplug.
 *
 * Context: process; takes the CPU hotplug lock and sched_domains_mutex.
 */
void tandem_rebuild_sched_domains(void)
{
	static_call(tandem_rebuild)();
}

/**
 * tandem_idle_cpu() - the kernel's idle_cpu()
 * @cpu: a possible CPU
 *
 * Context: any. Reads the run queue without a lock.
 * Return: true if the CPU has nothing to run, or if the kernel's function was
 * not found.
 */
bool tandem_idle_cpu(int cpu)
{
	return static_call(tandem_idle)(cpu);
}
