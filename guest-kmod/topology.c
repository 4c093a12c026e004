// SPDX-License-Identifier: GPL-2.0
/*
 * Flatten the sched domains, and put them back.
 *
 * The scheduler builds its domains from a table of levels, found through the
 * pointer sched_domain_topology (kernel/sched/topology.c). We edit that table
 * in place and have all domains rebuilt. In place, because NUMA hotplug
 * (sched_reset_numa()) passes the pointer's target to kfree().
 *
 * Who protects the table: building reads it under sched_domains_mutex;
 * sched_update_numa() replaces it from CPU hotplug *without* that mutex. So
 * editing takes the CPU hotplug lock (read) and then the mutex.
 *
 * NUMA hotplug: when the last CPU of a node leaves or the first one comes,
 * the kernel frees the table that we edited and makes a fresh, native one,
 * perhaps at the same address. So:
 *
 * - Nothing is concluded from a pointer to a table. A table is ours if and
 *   only if its level 0 has our mask function, tested under the locks.
 * - The saved levels are written only into a table that is ours, and they
 *   always belong to the latest one, as saving and editing are one step.
 * - Our level is never copied into another table: sched_init_numa() copies
 *   the default table, which is in force only while sched_domain_topology_saved
 *   is NULL (sched_init_numa() ran out of memory), and then we do not edit;
 *   else the copy is in force, we edit that, and sched_reset_numa() frees it
 *   before anything is copied.
 *
 * Domains that were built from our level name functions and strings of this
 * module, and they may outlive a table: NUMA hotplug rebuilds only the root
 * domains that changed. "tainted" says that such domains may exist; only a
 * complete rebuild from a native table clears it, and the module does not
 * leave before.
 */
#define pr_fmt(fmt) "tandem: " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/delay.h>
#include <linux/kallsyms.h>
#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/topology.h>

#include "compat.h"
#include "hypercall.h"
#include "symbols.h"
#include "topology.h"
#include "trace.h"

#define LEVELS_MAX	32	/* levels of a table; real ones have below 10 */
#define RETRY_MS	20
#define RETRIES_WARN	(10 * 1000 / RETRY_MS)

enum topology_state {
	STATE_NATIVE,
	STATE_FLAT,
	STATE_ALREADY_FLAT,
	STATE_UNSUPPORTED,
};

/**
 * struct topology - all state of flattening; protected by tandem_mutex
 * @mode: what is asked for
 * @variant: which flat level is asked for
 * @host: what the host says of the topology
 * @state: what was found or done last
 * @reason: why
 * @obstacle: why it is unsupported, in STATE_UNSUPPORTED
 * @steal_seen: some vCPU lost time to the host since boot
 * @tainted: domains built from our level may exist
 * @stopping: hotplug is no longer followed
 * @hotplug_state: of the CPU hotplug callbacks
 * @hotplug_work: looks at the table after CPU hotplug
 * @flatten_ns: duration of the last flattening with its rebuild
 * @restore_ns: duration of the last restoring with its rebuild
 * @rebuilds: complete rebuilds that we caused
 * @nr_saved: levels in @saved
 * @saved: the native levels of the table that is edited now
 */
struct topology {
	enum tandem_mode mode;
	enum tandem_variant variant;
	enum tandem_host_word host;
	enum topology_state state;
	const char *reason;
	char obstacle[96];
	bool steal_seen;
	bool tainted;
	bool stopping;
	enum cpuhp_state hotplug_state;
	struct work_struct hotplug_work;
	u64 flatten_ns;
	u64 restore_ns;
	u64 rebuilds;
	unsigned int nr_saved;
	struct sched_domain_topology_level saved[LEVELS_MAX];
};

static struct topology topo = {
	.mode = TANDEM_OFF,
	.reason = "not yet looked at",
};

const char * const tandem_variant_words[] = { "flat", "flat-llc" };
const char * const tandem_host_words[] = { "none", "pinned", "trusted" };

static const struct cpumask *flat_mask(TANDEM_TL_MASK_ARGS)
{
	return cpumask_of_node(cpu_to_node(cpu));
}

static int flat_flags(void)
{
	return 0;
}

static int flat_llc_flags(void)
{
	return TANDEM_SD_SHARE_LLC;
}

static sched_domain_flags_f wanted_flags(void)
{
	return topo.variant == TANDEM_FLAT_LLC ? flat_llc_flags : flat_flags;
}

static bool is_ours(const struct sched_domain_topology_level *table)
{
	return table[0].mask == flat_mask;
}

static bool is_numa(const struct sched_domain_topology_level *level)
{
	return !strcmp(tandem_tl_name(level), "NUMA");
}

static bool is_known_name(const char *name)
{
	static const char * const known[] = {
		"SMT", "CLS", "MC", "DIE", "PKG", "NODE", "NUMA",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (name && !strcmp(name, known[i]))
			return true;
	return false;
}

/* Is it the very begin of one of the kernel's own functions, not a module's? */
static bool is_known_mask(sched_domain_mask_f mask)
{
	static const char * const known[] = {
		"cpu_smt_mask+0x0/", "cpu_clustergroup_mask+0x0/",
		"cpu_coregroup_mask+0x0/", "cpu_cpu_mask+0x0/",
		"tl_smt_mask+0x0/", "tl_cls_mask+0x0/", "tl_mc_mask+0x0/",
		"tl_pkg_mask+0x0/", "sd_numa_mask+0x0/",
	};
	char symbol[KSYM_SYMBOL_LEN];
	size_t i;

	sprint_symbol(symbol, (unsigned long)mask);
	if (strchr(symbol, '['))
		return false;
	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (!strncmp(symbol, known[i], strlen(known[i])))
			return true;
	return false;
}

/*
 * Is this a table that we understand? Sets the obstacle if not, the number of
 * its levels if so.
 */
static bool check_table(const struct sched_domain_topology_level *table,
			unsigned int *nr)
{
	unsigned int i, nr_below_numa = 0;

	for (i = 0; table[i].mask; i++) {
		if (i == LEVELS_MAX) {
			strscpy(topo.obstacle, "too many topology levels",
				sizeof(topo.obstacle));
			return false;
		}
		if (!is_known_name(tandem_tl_name(&table[i])) ||
		    !is_known_mask(table[i].mask)) {
			snprintf(topo.obstacle, sizeof(topo.obstacle),
				 "topology level %u is not one of the kernel's own", i);
			return false;
		}
		nr_below_numa += !is_numa(&table[i]);
	}
	if (!nr_below_numa) {
		strscpy(topo.obstacle, "no topology level below NUMA",
			sizeof(topo.obstacle));
		return false;
	}
	*nr = i;
	return true;
}

/* See "never copied" at the top. */
static bool check_allocated(void)
{
	if (!TANDEM_HAS_NUMA || *tandem_symbols.topology_saved)
		return true;
	strscpy(topo.obstacle, "the kernel has no NUMA levels (out of memory)",
		sizeof(topo.obstacle));
	return false;
}

/*
 * The CPUs that a level would put in one domain with @cpu.
 *
 * The kernel calls mask through this very pointer when it builds domains, so
 * the function keeps its ENDBR and an indirect call is fine with IBT. Except
 * for NODE, whose function answers for the level built last before 6.18; that
 * level is the node by definition (distance LOCAL_DISTANCE).
 */
static const struct cpumask *level_span(struct sched_domain_topology_level *level,
					int cpu)
{
	if (!strcmp(tandem_tl_name(level), "NODE"))
		return cpumask_of_node(cpu_to_node(cpu));
	return tandem_tl_mask(level, cpu);
}

/*
 * Would the domains of this CPU be what ours would be? Domains of one CPU
 * are not built; an equal one above with no flags of its own is folded into
 * the one below (sd_parent_degenerate()).
 */
static bool cpu_is_flat(struct sched_domain_topology_level *table, int cpu)
{
	const struct cpumask *node = cpumask_of_node(cpu_to_node(cpu));
	const struct cpumask *span;
	int want = wanted_flags()();
	bool lowest = true;
	int flags;

	if (cpumask_weight(node) <= 1)
		return true;
	for (; table->mask; table++) {
		if (is_numa(table))
			continue;
		span = level_span(table, cpu);
		if (cpumask_weight(span) <= 1)
			continue;
		if (!cpumask_equal(span, node))
			return false;
		flags = table->sd_flags ? table->sd_flags() : 0;
		if (lowest ? flags != want : flags & ~want)
			return false;
		lowest = false;
	}
	return !lowest;
}

static bool is_flat_already(struct sched_domain_topology_level *table)
{
	int cpu;

	for_each_online_cpu(cpu)
		if (!cpu_is_flat(table, cpu))
			return false;
	return true;
}

/* The table has room: it had @nr levels, at least one of them not NUMA. */
static void edit_table(struct sched_domain_topology_level *table,
		       unsigned int nr)
{
	unsigned int i, to = 1;

	memcpy(topo.saved, table, nr * sizeof(*table));
	topo.nr_saved = nr;
	memset(table, 0, nr * sizeof(*table));
	table[0].mask = flat_mask;
	table[0].sd_flags = wanted_flags();
	tandem_tl_set_name(&table[0], "FLAT");
	for (i = 0; i < nr; i++)
		if (is_numa(&topo.saved[i]))
			table[to++] = topo.saved[i];
}

/* Returns true if the domains have to be rebuilt. Both locks held. */
static bool flatten_locked(struct sched_domain_topology_level *table)
{
	unsigned int nr;

	if (is_ours(table)) {
		topo.state = STATE_FLAT;
		if (table[0].sd_flags == wanted_flags())
			return false;
		table[0].sd_flags = wanted_flags();
		return true;
	}
	if (!check_table(table, &nr) || !check_allocated()) {
		topo.state = STATE_UNSUPPORTED;
		return topo.tainted;
	}
	if (is_flat_already(table)) {
		topo.state = STATE_ALREADY_FLAT;
		return topo.tainted;
	}
	edit_table(table, nr);
	topo.state = STATE_FLAT;
	topo.tainted = true;
	return true;
}

/* Returns true if the domains have to be rebuilt. Both locks held. */
static bool restore_locked(struct sched_domain_topology_level *table)
{
	topo.state = STATE_NATIVE;
	if (is_ours(table))
		memcpy(table, topo.saved, topo.nr_saved * sizeof(*table));
	return topo.tainted;
}

static void lock_table(void)
{
	cpus_read_lock();
	mutex_lock(tandem_symbols.domains_mutex);
}

static void unlock_table(void)
{
	mutex_unlock(tandem_symbols.domains_mutex);
	cpus_read_unlock();
}

static bool rebuild_pending(void)
{
	bool pending;

	mutex_lock(tandem_symbols.domains_mutex);
	pending = READ_ONCE(*tandem_symbols.topology_update);
	mutex_unlock(tandem_symbols.domains_mutex);
	return pending;
}

/*
 * rebuild_sched_domains() returns without a word when it meets a CPU hotplug
 * whose cpuset work is still to come (always asynchronous in 6.1). The proof
 * of a complete rebuild is that x86_topology_update, set together with the
 * edit, was consumed: partition_sched_domains_locked() does that, and then
 * destroys every domain, under the mutex that we look at it with.
 */
static void rebuild_fully(void)
{
	unsigned int tries = 0;

	for (;;) {
		tandem_rebuild_sched_domains();
		if (!rebuild_pending())
			break;
		if (++tries == RETRIES_WARN)
			pr_warn("the kernel does not rebuild its sched domains; waiting until it does\n");
		msleep(RETRY_MS);
	}
	topo.rebuilds++;
}

static void account(bool flat, u64 ns)
{
	if (flat)
		topo.flatten_ns = ns;
	else
		topo.restore_ns = ns;
	trace_tandem_topology(flat, topo.reason, ns);
}

static void apply(bool want)
{
	u64 start = ktime_get_ns();
	bool todo, flat;

	lock_table();
	if (want)
		todo = flatten_locked(*tandem_symbols.topology);
	else
		todo = restore_locked(*tandem_symbols.topology);
	flat = topo.state == STATE_FLAT;
	if (todo)
		WRITE_ONCE(*tandem_symbols.topology_update, true);
	unlock_table();
	if (!todo)
		return;

	rebuild_fully();
	/* A native table stays native while we hold tandem_mutex. */
	if (!flat)
		topo.tainted = false;
	account(flat, ktime_get_ns() - start);
}

/* What the mode means now, and why, in words. */
static bool want_flat(const char **reason)
{
	if (topo.mode == TANDEM_ON) {
		*reason = "asked for";
		return true;
	}
	if (topo.mode == TANDEM_OFF) {
		*reason = "switched off";
		return false;
	}
	if (tandem_hv->features() & TANDEM_F_REALTIME) {
		*reason = "auto: the host promises dedicated pCPUs (realtime)";
		return false;
	}
	if (topo.host == TANDEM_HOST_PINNED) {
		*reason = "auto: the host says that the vCPUs are pinned";
		return false;
	}
	if (topo.host == TANDEM_HOST_TRUSTED) {
		*reason = "auto: the host says that the topology is true";
		return false;
	}
	if (!tandem_hv->trusts_topology) {
		*reason = "auto: this host's topology cannot be trusted";
		return true;
	}
	*reason = topo.steal_seen ? "auto: steal was seen" : "auto: no steal seen yet";
	return topo.steal_seen;
}

static void update(void)
{
	bool want = want_flat(&topo.reason);

	if (tandem_symbols.topology_missing) {
		topo.state = want ? STATE_UNSUPPORTED : STATE_NATIVE;
		snprintf(topo.obstacle, sizeof(topo.obstacle),
			 "symbol %s not found", tandem_symbols.topology_missing);
		return;
	}
	apply(want);
}

static void hotplug_work_fn(struct work_struct *work)
{
	mutex_lock(&tandem_mutex);
	if (!topo.stopping)
		update();
	mutex_unlock(&tandem_mutex);
}

/*
 * Runs inside a hotplug operation, before (up) or after (down) the scheduler
 * looked at NUMA. The work waits for the hotplug lock, so it sees the result.
 */
static int hotplug_callback(unsigned int cpu)
{
	queue_work(tandem_wq, &topo.hotplug_work);
	return 0;
}

/**
 * tandem_topology_init() - begin to follow CPU hotplug; changes no domain
 *
 * Context: process, without tandem_mutex.
 * Return: 0 or a negative errno.
 */
int tandem_topology_init(void)
{
	int ret;

	INIT_WORK(&topo.hotplug_work, hotplug_work_fn);
	ret = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "tandem:online",
					hotplug_callback, hotplug_callback);
	if (ret < 0)
		return ret;
	topo.hotplug_state = ret;
	return 0;
}

/**
 * tandem_topology_stop() - stop following CPU hotplug
 *
 * Context: process, without tandem_mutex.
 */
void tandem_topology_stop(void)
{
	cpuhp_remove_state_nocalls(topo.hotplug_state);
	cancel_work_sync(&topo.hotplug_work);
}

/**
 * tandem_topology_restore() - native domains, for good
 *
 * When it returns, no domain and no table refers to this module, and no
 * reader under RCU does.
 */
void tandem_topology_restore(void)
{
	topo.stopping = true;
	topo.mode = TANDEM_OFF;
	update();
	synchronize_rcu();
}

/**
 * tandem_topology_mode() - the mode asked for
 *
 * Context: any.
 * Return: the mode, whether or not it can be had.
 */
enum tandem_mode tandem_topology_mode(void)
{
	return READ_ONCE(topo.mode);
}

/**
 * tandem_topology_variant() - the variant asked for
 *
 * Context: any.
 * Return: the variant, whether or not it is in force.
 */
enum tandem_variant tandem_topology_variant(void)
{
	return READ_ONCE(topo.variant);
}

/**
 * tandem_topology_configure() - set mode and variant in one step
 * @mode: new mode
 * @variant: new variant
 *
 * Returns when the domains are what they are to be; what came of it is in
 * tandem_topology_state(). May wait long for a CPU hotplug.
 */
void tandem_topology_configure(enum tandem_mode mode,
			       enum tandem_variant variant)
{
	WRITE_ONCE(topo.mode, mode);
	WRITE_ONCE(topo.variant, variant);
	update();
}

/**
 * tandem_topology_set_mode() - set the mode
 * @mode: new mode
 */
void tandem_topology_set_mode(enum tandem_mode mode)
{
	tandem_topology_configure(mode, topo.variant);
}

/**
 * tandem_topology_set_variant() - set the variant; flattens again if flat
 * @variant: new variant
 */
void tandem_topology_set_variant(enum tandem_variant variant)
{
	tandem_topology_configure(topo.mode, variant);
}

/**
 * tandem_topology_host() - what the host says of the topology
 *
 * Context: any.
 * Return: the word.
 */
enum tandem_host_word tandem_topology_host(void)
{
	return READ_ONCE(topo.host);
}

/**
 * tandem_topology_set_host() - the host says something of the topology
 * @word: what it says
 *
 * In mode auto native domains come back if it vouches for them.
 */
void tandem_topology_set_host(enum tandem_host_word word)
{
	WRITE_ONCE(topo.host, word);
	update();
}

/**
 * tandem_topology_steal_seen() - some vCPU lost time to the host
 *
 * Remembered; in mode auto the first call may flatten.
 */
void tandem_topology_steal_seen(void)
{
	if (topo.steal_seen)
		return;
	topo.steal_seen = true;
	if (topo.mode != TANDEM_AUTO)
		return;
	update();
	if (topo.state == STATE_FLAT)
		pr_info("topology: flat (%s)\n", topo.reason);
}

/*
 * A CPU hotplug that failed half way may have swapped the table twice without
 * calling us. Whoever looks then makes us look, too.
 */
static void recheck(void)
{
	bool ours;

	lock_table();
	ours = is_ours(*tandem_symbols.topology);
	unlock_table();
	if (!ours)
		queue_work(tandem_wq, &topo.hotplug_work);
}

/**
 * tandem_topology_state() - the state in words; rebuilds nothing
 * @buf: for the words
 * @size: of @buf
 *
 * Return: length of the text.
 */
int tandem_topology_state(char *buf, size_t size)
{
	static const char * const words[] = {
		[STATE_NATIVE] = "native",
		[STATE_FLAT] = "flat",
		[STATE_ALREADY_FLAT] = "already-flat",
	};

	if (topo.state == STATE_FLAT)
		recheck();
	if (topo.state == STATE_UNSUPPORTED)
		return scnprintf(buf, size, "unsupported: %s", topo.obstacle);
	return scnprintf(buf, size, "%s", words[topo.state]);
}

/**
 * tandem_topology_reason() - why the state is what it is, one line
 *
 * Return: a constant string.
 */
const char *tandem_topology_reason(void)
{
	return topo.reason;
}

/**
 * tandem_topology_flatten_ns() - duration of the last flattening, 0 if none
 *
 * Return: ns, with the rebuild.
 */
u64 tandem_topology_flatten_ns(void)
{
	return topo.flatten_ns;
}

/**
 * tandem_topology_restore_ns() - duration of the last restoring, 0 if none
 *
 * Return: ns, with the rebuild.
 */
u64 tandem_topology_restore_ns(void)
{
	return topo.restore_ns;
}

/**
 * tandem_topology_rebuilds() - complete rebuilds that the module caused
 *
 * Return: a count.
 */
u64 tandem_topology_rebuilds(void)
{
	return topo.rebuilds;
}
