// SPDX-License-Identifier: GPL-2.0
/*
 * lockload: threads that contend for one lock. For the VM tests and the
 * benchmark only; never packaged.
 *
 *	insmod lockload.ko class=mutex threads=8 hold_us=50 gap_us=10 seconds=10
 *	cat /sys/kernel/debug/lockload/ops
 *
 * ops has the number of acquisitions so far, running tells whether the
 * threads are still at it. The module may be removed at any time.
 */
#define pr_fmt(fmt) "lockload: " fmt

#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define THREADS_MAX	1024
#define US_MAX		100000
#define SECONDS_MAX	86400

static char *class = "mutex";
module_param(class, charp, 0);
MODULE_PARM_DESC(class, "mutex, rwsem (writers) or spin");

static uint threads = 4;
module_param(threads, uint, 0444);
MODULE_PARM_DESC(threads, "Number of threads, 1 to 1024");

static uint hold_us = 20;
module_param(hold_us, uint, 0444);
MODULE_PARM_DESC(hold_us, "Time that the lock is held, a busy loop, in us, at most 100000");

static uint gap_us;
module_param(gap_us, uint, 0444);
MODULE_PARM_DESC(gap_us, "Busy loop between two acquisitions, in us, at most 100000");

static uint sleep_us;
module_param(sleep_us, uint, 0444);
MODULE_PARM_DESC(sleep_us, "Sleep between two acquisitions, after the busy loop, in us, at most 100000");

static uint seconds;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "Stop after so many seconds; 0: when the module is removed");

/**
 * struct lock_class - a kind of lock
 * @name: for the parameter
 * @take: acquire it
 * @give: release it
 */
struct lock_class {
	const char *name;
	void (*take)(void);
	void (*give)(void);
};

/* The lock that all threads of class mutex want. */
static DEFINE_MUTEX(the_mutex);
static DECLARE_RWSEM(the_rwsem);
/* The lock that all threads of class spin want. */
static DEFINE_SPINLOCK(the_spinlock);

static const struct lock_class *locks;
static struct task_struct **tasks;
static struct dentry *dir;
static DEFINE_PER_CPU(u64, ops);
static unsigned long deadline;

static void take_mutex(void)
{
	mutex_lock(&the_mutex);
}

static void give_mutex(void)
{
	mutex_unlock(&the_mutex);
}

static void take_rwsem(void)
{
	down_write(&the_rwsem);
}

static void give_rwsem(void)
{
	up_write(&the_rwsem);
}

static void take_spin(void)
	__acquires(&the_spinlock)
{
	spin_lock(&the_spinlock);
}

static void give_spin(void)
	__releases(&the_spinlock)
{
	spin_unlock(&the_spinlock);
}

static const struct lock_class classes[] = {
	{ "mutex", take_mutex, give_mutex },
	{ "rwsem", take_rwsem, give_rwsem },
	{ "spin", take_spin, give_spin },
};

static void busy(u64 us)
{
	u64 end = ktime_get_ns() + us * NSEC_PER_USEC;

	while (ktime_get_ns() < end)
		cpu_relax();
}

static bool time_is_up(void)
{
	return seconds && time_after(jiffies, READ_ONCE(deadline));
}

static int work(void *unused)
{
	while (!kthread_should_stop() && !time_is_up()) {
		locks->take();
		busy(hold_us);
		this_cpu_inc(ops);
		locks->give();
		busy(gap_us);
		if (sleep_us)
			usleep_range(sleep_us, 2 * sleep_us);
		else
			cond_resched();
	}
	/* The stopper wants to find the task alive. */
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ / 10);
	return 0;
}

static int ops_get(void *unused, u64 *value)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(ops, cpu));
	*value = sum;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(ops_fops, ops_get, NULL, "%llu\n");

static int running_get(void *unused, u64 *running)
{
	*running = !time_is_up();
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(running_fops, running_get, NULL, "%llu\n");

static int check_parameters(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(classes); i++)
		if (!strcmp(class, classes[i].name))
			locks = &classes[i];
	if (locks && threads && threads <= THREADS_MAX && hold_us <= US_MAX &&
	    gap_us <= US_MAX && sleep_us <= US_MAX && seconds <= SECONDS_MAX)
		return 0;
	pr_err("bad parameter; class: mutex rwsem spin, threads: 1 to %d, hold_us, gap_us and sleep_us: 0 to %d, seconds: 0 to %d\n",
	       THREADS_MAX, US_MAX, SECONDS_MAX);
	return -EINVAL;
}

static void stop_threads(void)
{
	uint i;

	for (i = 0; i < threads && tasks[i]; i++)
		kthread_stop(tasks[i]);
}

static int start_threads(void)
{
	struct task_struct *task;
	uint i;

	deadline = jiffies + seconds * HZ;
	for (i = 0; i < threads; i++) {
		task = kthread_run(work, NULL, "lockload/%u", i);
		if (IS_ERR(task)) {
			stop_threads();
			return PTR_ERR(task);
		}
		tasks[i] = task;
	}
	return 0;
}

static int __init lockload_init(void)
{
	int err;

	err = check_parameters();
	if (err)
		return err;
	tasks = kcalloc(threads, sizeof(*tasks), GFP_KERNEL);
	if (!tasks)
		return -ENOMEM;
	err = start_threads();
	if (err) {
		kfree(tasks);
		return err;
	}
	dir = debugfs_create_dir("lockload", NULL);
	debugfs_create_file_unsafe("ops", 0444, dir, NULL, &ops_fops);
	debugfs_create_file_unsafe("running", 0444, dir, NULL, &running_fops);
	return 0;
}

static void __exit lockload_exit(void)
{
	debugfs_remove(dir);
	stop_threads();
	kfree(tasks);
}

module_init(lockload_init);
module_exit(lockload_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Lock contention for the tests of tandem");
