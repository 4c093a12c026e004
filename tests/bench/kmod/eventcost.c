// SPDX-License-Identifier: GPL-2.0
/*
 * eventcost: what one contended lock event costs. For the benchmark only;
 * never packaged. The kernel has to export the lock contention tracepoints
 * (6.12 and later do).
 *
 *	insmod eventcost.ko events=20000 batches=5 holder_cpu=1
 *	taskset 1 cat /sys/kernel/debug/eventcost/free
 *
 * An event is what the kernel does around a wait, without the wait: the
 * tracepoints contention_begin and contention_end, for a mutex of this module.
 * Each file is measured when it is read, and has one line:
 *
 *	EVENTS NS NS_EMPTY
 *
 * the shortest time that EVENTS events took, and that as many turns of an
 * empty loop took, out of as many batches of each, taken by turns. The files:
 *
 *	free	nobody holds the mutex
 *	spin	a thread on holder_cpu holds it, and spins
 *	lock	no event: a free mutex is locked and unlocked, as a yardstick
 *	yield	no event: KVM's hypercall for a directed yield to holder_cpu, which
 *		is idle
 */
#define pr_fmt(fmt) "eventcost: " fmt

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/kvm_para.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <trace/events/lock.h>

#define EVENTS_MAX	1000000
#define BATCHES_MAX	1000
#define SETTLE_MS_MAX	1000

static uint events = 20000;
module_param(events, uint, 0644);
MODULE_PARM_DESC(events, "Events of a batch, 1 to 1000000");

static uint batches = 5;
module_param(batches, uint, 0644);
MODULE_PARM_DESC(batches, "Batches, of which the shortest counts, 1 to 1000");

static uint settle_ms;
module_param(settle_ms, uint, 0644);
MODULE_PARM_DESC(settle_ms, "Busy loop before the first batch, 0 to 1000");

static uint holder_cpu = 1;
module_param(holder_cpu, uint, 0444);
MODULE_PARM_DESC(holder_cpu, "CPU of the thread that holds the mutex");

/**
 * struct kind - what is measured
 * @name: of the file
 * @batch: do it so many times
 * @hold: one step of the holder while it holds the mutex; NULL: no holder
 */
struct kind {
	const char *name;
	void (*batch)(uint count);
	void (*hold)(void);
};

/**
 * struct holder - the thread that holds the mutex
 * @kind: says how
 * @task: the thread
 * @has_it: it has the mutex
 */
struct holder {
	const struct kind *kind;
	struct task_struct *task;
	struct completion has_it;
};

/* The mutex that the events name. */
static DEFINE_MUTEX(contended);
/* Locked and unlocked for the yardstick. */
static DEFINE_MUTEX(yardstick);
/* One measurement at a time. */
static DEFINE_MUTEX(measuring);

static struct dentry *dir;

static void empty_batch(uint count)
{
	while (count--)
		barrier();
}

static void event_batch(uint count)
{
	while (count--) {
		trace_contention_begin(&contended, LCB_F_MUTEX);
		trace_contention_end(&contended, 0);
	}
}

static void lock_batch(uint count)
{
	while (count--) {
		mutex_lock(&yardstick);
		mutex_unlock(&yardstick);
	}
}

static void yield_batch(uint count)
{
	while (count--)
		kvm_hypercall1(KVM_HC_SCHED_YIELD, cpu_physical_id(holder_cpu));
}

static void hold_spinning(void)
{
	cpu_relax();
}

static const struct kind kinds[] = {
	{ "free", event_batch, NULL },
	{ "spin", event_batch, hold_spinning },
	{ "lock", lock_batch, NULL },
	{ "yield", yield_batch, NULL },
};

static int hold(void *data)
{
	struct holder *holder = data;

	mutex_lock(&contended);
	complete(&holder->has_it);
	while (!kthread_should_stop()) {
		holder->kind->hold();
		cond_resched();
	}
	mutex_unlock(&contended);
	return 0;
}

static int holder_start(struct holder *holder)
{
	init_completion(&holder->has_it);
	holder->task = kthread_create(hold, holder, "eventcost");
	if (IS_ERR(holder->task))
		return PTR_ERR(holder->task);
	kthread_bind(holder->task, holder_cpu);
	wake_up_process(holder->task);
	wait_for_completion(&holder->has_it);
	return 0;
}

static u64 time_of(void (*batch)(uint count))
{
	u64 start = ktime_get_ns();

	batch(events);
	return ktime_get_ns() - start;
}

/*
 * The holder woke the reader and may just have lost its pCPU to it. A few of
 * the host's time slices later nothing is left of that.
 */
static void settle(void)
{
	u64 end = ktime_get_ns() + settle_ms * NSEC_PER_MSEC;

	while (ktime_get_ns() < end)
		cpu_relax();
}

static void measure(struct seq_file *m, const struct kind *kind)
{
	u64 empty = U64_MAX, full = U64_MAX;
	uint i;

	settle();
	for (i = 0; i < batches; i++) {
		empty = min(empty, time_of(empty_batch));
		full = min(full, time_of(kind->batch));
		cond_resched();
	}
	seq_printf(m, "%u %llu %llu\n", events, full, empty);
}

static bool parameters_are_good(const struct kind *kind)
{
	if (!events || events > EVENTS_MAX || !batches ||
	    batches > BATCHES_MAX || settle_ms > SETTLE_MS_MAX) {
		pr_err("events: 1 to %d, batches: 1 to %d, settle_ms: 0 to %d\n",
		       EVENTS_MAX, BATCHES_MAX, SETTLE_MS_MAX);
		return false;
	}
	if (kind->batch == yield_batch && !kvm_para_available()) {
		pr_err("yield: this is no guest of KVM\n");
		return false;
	}
	if (kind->hold && holder_cpu == raw_smp_processor_id()) {
		pr_err("pin the reader to another CPU than holder_cpu\n");
		return false;
	}
	return true;
}

static int eventcost_show(struct seq_file *m, void *unused)
{
	struct holder holder = { .kind = m->private };
	int err = 0;

	if (!parameters_are_good(holder.kind))
		return -EINVAL;
	mutex_lock(&measuring);
	if (holder.kind->hold)
		err = holder_start(&holder);
	if (!err)
		measure(m, holder.kind);
	if (holder.kind->hold && !err)
		kthread_stop(holder.task);
	mutex_unlock(&measuring);
	return err;
}
DEFINE_SHOW_ATTRIBUTE(eventcost);

static int __init eventcost_init(void)
{
	size_t i;

	if (holder_cpu >= nr_cpu_ids || !cpu_online(holder_cpu)) {
		pr_err("holder_cpu: %u is not online\n", holder_cpu);
		return -EINVAL;
	}
	dir = debugfs_create_dir("eventcost", NULL);
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		debugfs_create_file(kinds[i].name, 0400, dir,
				    (void *)&kinds[i], &eventcost_fops);
	return 0;
}

static void __exit eventcost_exit(void)
{
	debugfs_remove(dir);
}

module_init(eventcost_init);
module_exit(eventcost_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Cost of a lock contention event, for the benchmark of tandem");
