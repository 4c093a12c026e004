// SPDX-License-Identifier: GPL-2.0
/*
 * Hints from the tracepoints contention_begin and contention_end.
 *
 * The probes are registered only while hints are active, so a guest whose
 * hints are off or gated pays only the tracepoint's own NOP.
 *
 * Rules for everything below "probes": any context including NMI, no lock, no
 * allocation, no printk. An event that interrupts the probe on the same CPU
 * is not looked at and not counted, so each vCPU's state has one writer.
 */
#define pr_fmt(fmt) "tandem: " fmt

#include <linux/hash.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/tracepoint.h>
#include <trace/events/lock.h>

#include "compat.h"
#include "gate.h"
#include "hypercall.h"
#include "lockhint.h"
#include "policy.h"
#include "symbols.h"
#include "trace.h"

/* Low bits of the owner words: kernel/locking/mutex.h and rwsem.c. */
#define MUTEX_OWNER_FLAGS	0x07UL
#define RWSEM_OWNER_FLAGS	0x03UL
#define RWSEM_OWNED_BY_READERS	0x01UL

#define SLOTS_BITS	10
#define SLOT_CPU_BITS	14	/* NR_CPUS is at most 8192 */
#define SLOT_CPU_MASK	((1U << SLOT_CPU_BITS) - 1)

/**
 * struct hint_cpu - what the probe remembers of the vCPU it runs on
 * @waiter: for the policy
 * @nesting: the probe is at work
 */
struct hint_cpu {
	struct tandem_waiter waiter;
	int nesting;
};

/**
 * struct hints - state of the hints; protected by tandem_mutex
 * @mode: what is asked for
 * @active: the probes are registered
 * @obstacle: why hints are unsupported, or NULL
 * @begin: the kernel's tracepoint contention_begin
 * @end: the kernel's tracepoint contention_end
 * @policy: the tunables; read by the probes, field by field, at any time
 */
struct hints {
	enum tandem_mode mode;
	bool active;
	const char *obstacle;
	struct tracepoint *begin;
	struct tracepoint *end;
	struct tandem_policy policy;
};

static struct hints hints = {
	.mode = TANDEM_OFF,
	.policy = {
		.window_ns = TANDEM_WINDOW_US_DEF * TANDEM_NSEC_PER_USEC,
		.sustain = TANDEM_SUSTAIN_DEF,
		.tries = TANDEM_TRIES_DEF,
		.budget = TANDEM_BUDGET_DEF,
	},
};

static DEFINE_PER_CPU(struct hint_cpu, hint_cpu);
/* Written by all vCPUs: a cache line for each. */
static DEFINE_PER_CPU_SHARED_ALIGNED(struct tandem_target, hint_target);

/*
 * Who acquired a contended lock last: the lock's address without its topmost
 * and its two lowest bits (always zero), and the CPU, in one word, so that a
 * reader never sees half of an update. A slot may be stale (the lock was
 * released, or taken since without contention), may be overwritten by another
 * lock, and addresses may collide in their top bits. All that is harmless: a
 * hint also needs that vCPU preempted and not idle, and at worst the host
 * runs another vCPU that has work.
 */
static u64 slots[1 << SLOTS_BITS];

/* ---- probes ---- */

static u64 slot_tag(const void *lock)
{
	return (u64)(unsigned long)lock >> 2 << SLOT_CPU_BITS;
}

static u64 *slot_of(const void *lock)
{
	return &slots[hash_ptr(lock, SLOTS_BITS)];
}

static enum tandem_class class_of(unsigned int flags)
{
	if (flags & LCB_F_MUTEX)
		return TANDEM_CLASS_MUTEX;
	if (flags & LCB_F_SPIN)
		return TANDEM_CLASS_SPIN;
	if (flags & (LCB_F_PERCPU | LCB_F_RT))
		return TANDEM_CLASS_OTHER;
	if (flags & (LCB_F_READ | LCB_F_WRITE))
		return TANDEM_CLASS_RWSEM;
	return TANDEM_CLASS_OTHER;
}

static int spin_holder(const void *lock, enum tandem_counter *outcome)
{
	u64 slot = READ_ONCE(*slot_of(lock));

	*outcome = TANDEM_HOLDER_UNKNOWN;
	if (!slot || (slot & ~(u64)SLOT_CPU_MASK) != slot_tag(lock))
		return -1;
	return slot & SLOT_CPU_MASK;
}

/*
 * The owner may release the lock and exit meanwhile, but its task_struct is
 * freed after an RCU grace period only, and preemption is off from before the
 * owner is read: mutex_spin_on_owner() in kernel/locking/mutex.c relies on the
 * same. No rcu_read_lock(): its unlock may have work to do, and the probe may
 * run inside of RCU, which has locks, too.
 */
static int owner_cpu(unsigned long owner, enum tandem_counter *outcome)
{
	struct task_struct *task = (struct task_struct *)owner;

	*outcome = TANDEM_HOLDER_UNKNOWN;
	if (!task)
		return -1;
	*outcome = TANDEM_HOLDER_ASLEEP;
	return READ_ONCE(task->on_cpu) ? (int)task_cpu(task) : -1;
}

/* The holder's CPU, or -1 with the outcome set. */
static int find_holder(const void *lock, enum tandem_class class,
		       enum tandem_counter *outcome)
{
	unsigned long owner;

	if (class == TANDEM_CLASS_SPIN)
		return spin_holder(lock, outcome);
	if (class == TANDEM_CLASS_MUTEX) {
		owner = tandem_mutex_owner(lock) & ~MUTEX_OWNER_FLAGS;
		return owner_cpu(owner, outcome);
	}
	owner = tandem_rwsem_owner(lock);
	if (owner & RWSEM_OWNED_BY_READERS)
		owner = 0;
	return owner_cpu(owner & ~RWSEM_OWNER_FLAGS, outcome);
}

static enum tandem_counter ask_policy(int holder)
{
	struct tandem_policy policy = {
		.window_ns = READ_ONCE(hints.policy.window_ns),
		.sustain = READ_ONCE(hints.policy.sustain),
		.tries = READ_ONCE(hints.policy.tries),
		.budget = READ_ONCE(hints.policy.budget),
	};
	struct tandem_waiter *waiter = this_cpu_ptr(&hint_cpu.waiter);
	struct tandem_target *target = per_cpu_ptr(&hint_target, holder);

	switch (tandem_policy_event(&policy, waiter, target, local_clock())) {
	case TANDEM_SUPPRESSED_SUSTAIN:
		return TANDEM_HINT_SUSTAIN;
	case TANDEM_SUPPRESSED_TRIES:
		return TANDEM_HINT_TRIES;
	case TANDEM_SUPPRESSED_BUDGET:
		return TANDEM_HINT_BUDGET;
	case TANDEM_SEND:
		break;
	}
	return tandem_hv->hint(holder) ? TANDEM_HINT_FAILED : TANDEM_HINT_SENT;
}

/*
 * A halted vCPU may read as preempted, see struct tandem_hv. The holder of a
 * sleeping lock was seen on its CPU, so it is not halted; for a spinlock ask
 * the run queue.
 */
static enum tandem_counter judge(enum tandem_class class, int holder)
{
	if (holder == smp_processor_id())
		return TANDEM_HOLDER_SELF;
	if (!tandem_hv->preempted(holder)) {
		tandem_policy_running(per_cpu_ptr(&hint_target, holder));
		return TANDEM_HOLDER_RUNNING;
	}
	if (class == TANDEM_CLASS_SPIN && tandem_idle_cpu(holder))
		return TANDEM_HOLDER_IDLE;
	tandem_count(TANDEM_HOLDER_PREEMPTED);
	return ask_policy(holder);
}

static void contended(const void *lock, enum tandem_class class)
{
	static const char * const words[] = {
		[TANDEM_CLASS_MUTEX] = "mutex",
		[TANDEM_CLASS_RWSEM] = "rwsem",
		[TANDEM_CLASS_SPIN] = "spin",
	};
	static const enum tandem_counter events[] = {
		[TANDEM_CLASS_MUTEX] = TANDEM_CONTENDED_MUTEX,
		[TANDEM_CLASS_RWSEM] = TANDEM_CONTENDED_RWSEM,
		[TANDEM_CLASS_SPIN] = TANDEM_CONTENDED_SPIN,
		[TANDEM_CLASS_OTHER] = TANDEM_CONTENDED_OTHER,
	};
	enum tandem_counter outcome;
	int holder;

	tandem_count(events[class]);
	if (class == TANDEM_CLASS_OTHER)
		return;
	holder = find_holder(lock, class, &outcome);
	if (holder >= 0)
		outcome = judge(class, holder);
	tandem_count(outcome);
	trace_tandem_hint(lock, words[class], holder,
			  tandem_counter_names[outcome]);
}

/* Newer kernels call probes with preemption on. */
static void probe_begin(void *data, void *lock, unsigned int flags)
{
	preempt_disable_notrace();
	if (this_cpu_inc_return(hint_cpu.nesting) == 1)
		contended(lock, class_of(flags));
	this_cpu_dec(hint_cpu.nesting);
	preempt_enable_notrace();
}

/*
 * This tracepoint does not tell the class, so sleeping locks leave slots, too.
 * Nobody asks for those.
 */
static void probe_end(void *data, void *lock, int ret)
{
	if (ret)
		return;
	preempt_disable_notrace();
	WRITE_ONCE(*slot_of(lock), slot_tag(lock) | smp_processor_id());
	preempt_enable_notrace();
}

/* ---- on and off ---- */

static void note_tracepoint(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "contention_begin"))
		hints.begin = tp;
	else if (!strcmp(tp->name, "contention_end"))
		hints.end = tp;
}

static bool wanted(void)
{
	if (hints.obstacle)
		return false;
	if (hints.mode == TANDEM_AUTO)
		return tandem_gate_is_open();
	return hints.mode == TANDEM_ON;
}

/* The table is filled before anybody asks it. */
static void activate(void)
{
	if (tracepoint_probe_register(hints.end, probe_end, NULL))
		goto refused;
	if (tracepoint_probe_register(hints.begin, probe_begin, NULL))
		goto unregister;
	hints.active = true;
	return;

unregister:
	tracepoint_probe_unregister(hints.end, probe_end, NULL);
	tracepoint_synchronize_unregister();
refused:
	hints.obstacle = "the kernel refused the probes";
	pr_warn("hints: the kernel refused to register the probes\n");
}

static void deactivate(void)
{
	tracepoint_probe_unregister(hints.begin, probe_begin, NULL);
	tracepoint_probe_unregister(hints.end, probe_end, NULL);
	tracepoint_synchronize_unregister();
	hints.active = false;
}

/**
 * tandem_hints_update() - make the probes follow mode and gate
 */
void tandem_hints_update(void)
{
	if (wanted() == hints.active)
		return;
	if (hints.active)
		deactivate();
	else
		activate();
}

/**
 * tandem_hints_init() - find the tracepoints, see what the host offers
 *
 * Hints stay off until tandem_hints_set_mode().
 */
void tandem_hints_init(void)
{
	hints.obstacle = tandem_hv_hint_obstacle(tandem_hv);
	for_each_kernel_tracepoint(note_tracepoint, NULL);
	if (!hints.obstacle && (!hints.begin || !hints.end))
		hints.obstacle = "the kernel has no lock contention tracepoints";
}

/**
 * tandem_hints_stop() - hints off, for good
 *
 * When it returns no probe runs and none will.
 */
void tandem_hints_stop(void)
{
	tandem_hints_set_mode(TANDEM_OFF);
}

/**
 * tandem_hints_mode() - the mode asked for
 *
 * Context: any.
 * Return: the mode, whether or not it can be had.
 */
enum tandem_mode tandem_hints_mode(void)
{
	return READ_ONCE(hints.mode);
}

/**
 * tandem_hints_set_mode() - set the mode
 * @mode: new mode
 */
void tandem_hints_set_mode(enum tandem_mode mode)
{
	WRITE_ONCE(hints.mode, mode);
	tandem_hints_update();
}

/**
 * tandem_hints_state() - the state in words
 * @buf: for the words
 * @size: of @buf
 *
 * Return: length of the text.
 */
int tandem_hints_state(char *buf, size_t size)
{
	if (hints.obstacle)
		return scnprintf(buf, size, "unsupported: %s", hints.obstacle);
	if (hints.mode == TANDEM_OFF)
		return scnprintf(buf, size, "off");
	if (!hints.active)
		return scnprintf(buf, size, "gated");
	return scnprintf(buf, size, "active%s", tandem_symbols.have_idle_cpu ?
			 "" : " (not for spinlocks: symbol idle_cpu not found)");
}

/**
 * tandem_hints_tunable() - read a tunable
 * @tunable: which
 *
 * Context: any.
 * Return: its value in the unit of its name.
 */
u32 tandem_hints_tunable(enum tandem_tunable tunable)
{
	switch (tunable) {
	case TANDEM_WINDOW_US:
		return (u32)(READ_ONCE(hints.policy.window_ns) /
			     TANDEM_NSEC_PER_USEC);
	case TANDEM_SUSTAIN:
		return READ_ONCE(hints.policy.sustain);
	case TANDEM_TRIES:
		return READ_ONCE(hints.policy.tries);
	case TANDEM_BUDGET:
		return READ_ONCE(hints.policy.budget);
	}
	return 0;
}

/**
 * tandem_hints_set_tunable() - set a tunable; takes effect at once
 * @tunable: which
 * @value: within its bounds, see policy.h
 */
void tandem_hints_set_tunable(enum tandem_tunable tunable, u32 value)
{
	switch (tunable) {
	case TANDEM_WINDOW_US:
		WRITE_ONCE(hints.policy.window_ns,
			   value * TANDEM_NSEC_PER_USEC);
		break;
	case TANDEM_SUSTAIN:
		WRITE_ONCE(hints.policy.sustain, value);
		break;
	case TANDEM_TRIES:
		WRITE_ONCE(hints.policy.tries, value);
		break;
	case TANDEM_BUDGET:
		WRITE_ONCE(hints.policy.budget, value);
		break;
	}
}
