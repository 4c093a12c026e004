// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics: stats/ (sums) and vcpu/cpuN/ in /sys/kernel/tandem.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kernel_stat.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "hypercall.h"
#include "stats.h"
#include "tandem.h"

DEFINE_PER_CPU(struct tandem_counters, tandem_counters);

/* Names of the files, and of the verdicts in trace events. */
const char * const tandem_counter_names[TANDEM_NR_COUNTERS] = {
	[TANDEM_CONTENDED_MUTEX] = "contended_mutex",
	[TANDEM_CONTENDED_RWSEM] = "contended_rwsem",
	[TANDEM_CONTENDED_SPIN] = "contended_spin",
	[TANDEM_CONTENDED_OTHER] = "contended_other",
	[TANDEM_HOLDER_UNKNOWN] = "holder_unknown",
	[TANDEM_HOLDER_ASLEEP] = "holder_asleep",
	[TANDEM_HOLDER_SELF] = "holder_self",
	[TANDEM_HOLDER_RUNNING] = "holder_running",
	[TANDEM_HOLDER_IDLE] = "holder_idle",
	[TANDEM_HOLDER_PREEMPTED] = "holder_preempted",
	[TANDEM_HINT_SUSTAIN] = "suppressed_sustain",
	[TANDEM_HINT_TRIES] = "suppressed_tries",
	[TANDEM_HINT_BUDGET] = "suppressed_budget",
	[TANDEM_HINT_SENT] = "sent",
	[TANDEM_HINT_FAILED] = "failed",
};

/**
 * struct counter_file - file of one counter, of all vCPUs or of one
 * @attr: the file
 * @counter: which counter
 */
struct counter_file {
	struct kobj_attribute attr;
	enum tandem_counter counter;
};

/**
 * struct stats_dir - directory vcpu/ or vcpu/cpuN/
 * @kobj: the directory
 * @released: nobody refers to @kobj any more
 * @cpu: the vCPU; meaningless for vcpu/
 */
struct stats_dir {
	struct kobject kobj;
	struct completion released;
	int cpu;
};

static struct kobject *stats_root;
static struct stats_dir *vcpu_dir;
/* One for each possible CPU, those that were added come first. */
static struct stats_dir *cpu_dirs;
static unsigned int nr_cpu_dirs;

static struct stats_dir *to_dir(struct kobject *kobj)
{
	return container_of(kobj, struct stats_dir, kobj);
}

static enum tandem_counter to_counter(struct kobj_attribute *attr)
{
	return container_of(attr, struct counter_file, attr)->counter;
}

static u64 cpu_count(int cpu, enum tandem_counter counter)
{
	return READ_ONCE(per_cpu(tandem_counters, cpu).count[counter]);
}

static u64 cpu_steal(int cpu)
{
	return READ_ONCE(kcpustat_cpu(cpu).cpustat[CPUTIME_STEAL]);
}

/**
 * tandem_steal_total() - time stolen from all vCPUs since boot, in ns
 *
 * Context: any.
 * Return: the sum over all possible CPUs.
 */
u64 tandem_steal_total(void)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += cpu_steal(cpu);
	return sum;
}

static ssize_t sum_show(struct kobject *kobj, struct kobj_attribute *attr,
			char *buf)
{
	enum tandem_counter counter = to_counter(attr);
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += cpu_count(cpu, counter);
	return sysfs_emit(buf, "%llu\n", sum);
}

static ssize_t cpu_show(struct kobject *kobj, struct kobj_attribute *attr,
			char *buf)
{
	return sysfs_emit(buf, "%llu\n",
			  cpu_count(to_dir(kobj)->cpu, to_counter(attr)));
}

static ssize_t steal_ns_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%llu\n", cpu_steal(to_dir(kobj)->cpu));
}

/* An offline vCPU's record is stale: it neither runs nor is preempted. */
static ssize_t preempted_show(struct kobject *kobj,
			      struct kobj_attribute *attr, char *buf)
{
	int cpu = to_dir(kobj)->cpu;
	bool preempted = cpu_online(cpu) && tandem_hv->preempted(cpu);

	return sysfs_emit(buf, "%d\n", preempted);
}

static struct kobj_attribute steal_ns_file = __ATTR_RO(steal_ns);
static struct kobj_attribute preempted_file = __ATTR_RO(preempted);

/**
 * struct runstate_file - a file of vcpu/cpuN/runstate
 * @attr: the file
 * @state: time in which state
 */
struct runstate_file {
	struct kobj_attribute attr;
	enum tandem_vcpu_state state;
};

static ssize_t state_show(struct kobject *kobj, struct kobj_attribute *attr,
			  char *buf)
{
	static const char * const words[TANDEM_VCPU_STATES] = {
		"running", "runnable", "blocked", "offline",
	};
	struct tandem_runstate rs;

	if (!tandem_hv->runstate(to_dir(kobj)->cpu, &rs))
		return -EIO;
	return sysfs_emit(buf, "%s\n", words[rs.state]);
}

static ssize_t runstate_ns_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	struct runstate_file *file =
		container_of(attr, struct runstate_file, attr);
	struct tandem_runstate rs;

	if (!tandem_hv->runstate(to_dir(kobj)->cpu, &rs))
		return -EIO;
	return sysfs_emit(buf, "%llu\n", rs.ns[file->state]);
}

#define RUNSTATE_FILE(name, which)					\
	static struct runstate_file name##_file = {			\
		.attr = __ATTR(name, 0444, runstate_ns_show, NULL),	\
		.state = which,						\
	}

static struct kobj_attribute state_file = __ATTR_RO(state);
RUNSTATE_FILE(running_ns, TANDEM_VCPU_RUNNING);
RUNSTATE_FILE(runnable_ns, TANDEM_VCPU_RUNNABLE);
RUNSTATE_FILE(blocked_ns, TANDEM_VCPU_BLOCKED);
RUNSTATE_FILE(offline_ns, TANDEM_VCPU_OFFLINE);

static struct attribute *runstate_attrs[] = {
	&state_file.attr,
	&running_ns_file.attr.attr,
	&runnable_ns_file.attr.attr,
	&blocked_ns_file.attr.attr,
	&offline_ns_file.attr.attr,
	NULL
};

static const struct attribute_group runstate_group = {
	.name = "runstate",
	.attrs = runstate_attrs,
};

static struct counter_file sum_files[TANDEM_NR_COUNTERS];
static struct counter_file cpu_files[TANDEM_NR_COUNTERS];

/* Filled by make_files(); the last entry stays NULL. */
static struct attribute *sum_attrs[TANDEM_NR_COUNTERS + 1];
static struct attribute *cpu_attrs[TANDEM_NR_COUNTERS + 3];

static const struct attribute_group sum_group = {
	.name = "stats",
	.attrs = sum_attrs,
};

static const struct attribute_group cpu_group = {
	.attrs = cpu_attrs,
};

/* The second one where the hypervisor tells. */
static const struct attribute_group *cpu_groups[] = { &cpu_group, NULL, NULL };

static void dir_release(struct kobject *kobj)
{
	complete(&to_dir(kobj)->released);
}

static const struct kobj_type vcpu_type = {
	.sysfs_ops = &kobj_sysfs_ops,
	.release = dir_release,
};

static const struct kobj_type cpu_type = {
	.sysfs_ops = &kobj_sysfs_ops,
	.release = dir_release,
	.default_groups = cpu_groups,
};

/* Release may come late (CONFIG_DEBUG_KOBJECT_RELEASE, an open file). */
static void dir_put(struct stats_dir *dir)
{
	kobject_put(&dir->kobj);
	wait_for_completion(&dir->released);
}

static void make_file(struct counter_file *file, enum tandem_counter counter,
		      ssize_t (*show)(struct kobject *kobj,
				      struct kobj_attribute *attr, char *buf))
{
	sysfs_attr_init(&file->attr.attr);
	file->attr.attr.name = tandem_counter_names[counter];
	file->attr.attr.mode = 0444;
	file->attr.show = show;
	file->counter = counter;
}

static void make_files(void)
{
	int i;

	for (i = 0; i < TANDEM_NR_COUNTERS; i++) {
		make_file(&sum_files[i], i, sum_show);
		make_file(&cpu_files[i], i, cpu_show);
		sum_attrs[i] = &sum_files[i].attr.attr;
		cpu_attrs[i] = &cpu_files[i].attr.attr;
	}
	cpu_attrs[i++] = &steal_ns_file.attr;
	cpu_attrs[i] = &preempted_file.attr;
	if (tandem_hv->runstate)
		cpu_groups[1] = &runstate_group;
}

static int add_cpu_dir(int cpu)
{
	struct stats_dir *dir = &cpu_dirs[nr_cpu_dirs];
	int err;

	dir->cpu = cpu;
	init_completion(&dir->released);
	err = kobject_init_and_add(&dir->kobj, &cpu_type, &vcpu_dir->kobj,
				   "cpu%d", cpu);
	if (err) {
		dir_put(dir);
		return err;
	}
	nr_cpu_dirs++;
	return 0;
}

static int add_vcpu_dir(struct kobject *root)
{
	int err;

	init_completion(&vcpu_dir->released);
	err = kobject_init_and_add(&vcpu_dir->kobj, &vcpu_type, root, "vcpu");
	if (err)
		dir_put(vcpu_dir);
	return err;
}

static void remove_cpu_dirs(void)
{
	while (nr_cpu_dirs)
		dir_put(&cpu_dirs[--nr_cpu_dirs]);
}

static void free_dirs(void)
{
	kfree(cpu_dirs);
	kfree(vcpu_dir);
}

/**
 * tandem_stats_add() - make stats/ and vcpu/
 * @root: directory to make them in
 *
 * Context: process.
 * Return: 0 or a negative errno; then nothing is left.
 */
int tandem_stats_add(struct kobject *root)
{
	int err, cpu;

	make_files();
	cpu_dirs = kcalloc(num_possible_cpus(), sizeof(*cpu_dirs), GFP_KERNEL);
	vcpu_dir = kzalloc(sizeof(*vcpu_dir), GFP_KERNEL);
	err = -ENOMEM;
	if (!cpu_dirs || !vcpu_dir)
		goto free;
	err = sysfs_create_group(root, &sum_group);
	if (err)
		goto free;
	err = add_vcpu_dir(root);
	if (err)
		goto remove_sums;
	for_each_possible_cpu(cpu) {
		err = add_cpu_dir(cpu);
		if (err)
			goto remove_cpus;
	}
	stats_root = root;
	return 0;

remove_cpus:
	remove_cpu_dirs();
	dir_put(vcpu_dir);
remove_sums:
	sysfs_remove_group(root, &sum_group);
free:
	free_dirs();
	return err;
}

/**
 * tandem_stats_remove() - remove what tandem_stats_add() made
 *
 * Context: process. Waits for readers.
 */
void tandem_stats_remove(void)
{
	remove_cpu_dirs();
	dir_put(vcpu_dir);
	sysfs_remove_group(stats_root, &sum_group);
	free_dirs();
}
