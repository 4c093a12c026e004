// SPDX-License-Identifier: GPL-2.0
/*
 * The files of /sys/kernel/tandem except the counters (stats.c).
 */
#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/sysfs.h>

#include "gate.h"
#include "hypercall.h"
#include "lockhint.h"
#include "parse.h"
#include "policy.h"
#include "stats.h"
#include "sysfs.h"
#include "topology.h"

#define STATE_LEN	160	/* of the longest state in words */

static void root_release(struct kobject *kobj);

static const struct kobj_type root_type = {
	.sysfs_ops = &kobj_sysfs_ops,
	.release = root_release,
};

static struct kobject root;
static DECLARE_COMPLETION(root_released);

static void root_release(struct kobject *kobj)
{
	complete(&root_released);
}

/**
 * struct word_file - a file that takes one of some words
 * @attr: the file
 * @path: its name from /sys/kernel/tandem on, for the log
 * @words: the words
 * @nr: their number
 * @get: index of the word in force; any context
 * @set: make it so; tandem_mutex held
 */
struct word_file {
	struct kobj_attribute attr;
	const char *path;
	const char * const *words;
	int nr;
	int (*get)(void);
	void (*set)(int word);
};

/**
 * struct number_file - a file that takes a number
 * @attr: the file
 * @path: its name from /sys/kernel/tandem on, for the log
 * @min: smallest accepted number
 * @max: largest accepted number
 * @id: of the tunable
 * @get: the number in force; any context
 * @set: make it so; tandem_mutex held
 */
struct number_file {
	struct kobj_attribute attr;
	const char *path;
	u32 min;
	u32 max;
	int id;
	u32 (*get)(int id);
	void (*set)(int id, u32 value);
};

static ssize_t word_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	struct word_file *file = container_of(attr, struct word_file, attr);

	return sysfs_emit(buf, "%s\n", file->words[file->get()]);
}

static ssize_t word_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t count)
{
	struct word_file *file = container_of(attr, struct word_file, attr);
	int word = tandem_parse_word(file->path, buf, count, file->words,
				     file->nr);

	if (word < 0)
		return word;
	mutex_lock(&tandem_mutex);
	file->set(word);
	mutex_unlock(&tandem_mutex);
	return count;
}

static ssize_t number_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	struct number_file *file = container_of(attr, struct number_file, attr);

	return sysfs_emit(buf, "%u\n", file->get(file->id));
}

static ssize_t number_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *buf, size_t count)
{
	struct number_file *file = container_of(attr, struct number_file, attr);
	u32 value;
	int err = tandem_parse_u32(file->path, buf, count, file->min,
				   file->max, &value);

	if (err)
		return err;
	mutex_lock(&tandem_mutex);
	file->set(file->id, value);
	mutex_unlock(&tandem_mutex);
	return count;
}

#define WORD_FILE(var, dir, file, table, count, getter, setter)		\
	static struct word_file var = {					\
		.attr = __ATTR(file, 0644, word_show, word_store),	\
		.path = dir "/" #file,					\
		.words = table,						\
		.nr = count,						\
		.get = getter,						\
		.set = setter,						\
	}

#define NUMBER_FILE(dir, file, bounds, tunable)				\
	static struct number_file dir##_##file = {			\
		.attr = __ATTR(file, 0644, number_show, number_store),	\
		.path = #dir "/" #file,					\
		.min = bounds##_MIN,					\
		.max = bounds##_MAX,					\
		.id = tunable,						\
		.get = dir##_get,					\
		.set = dir##_set,					\
	}

#define SHOW_FILE(var, file, format, value)				\
	static ssize_t var##_show(struct kobject *kobj,			\
				  struct kobj_attribute *attr, char *buf) \
	{								\
		ssize_t len;						\
									\
		mutex_lock(&tandem_mutex);				\
		len = sysfs_emit(buf, format "\n", value);		\
		mutex_unlock(&tandem_mutex);				\
		return len;						\
	}								\
	static struct kobj_attribute var =				\
		__ATTR(file, 0444, var##_show, NULL)

static ssize_t show_state(char *buf, int (*state)(char *buf, size_t size))
{
	char words[STATE_LEN];

	mutex_lock(&tandem_mutex);
	state(words, sizeof(words));
	mutex_unlock(&tandem_mutex);
	return sysfs_emit(buf, "%s\n", words);
}

/* ---- the top ---- */

/**
 * tandem_features_words() - what the host offers, words separated by spaces
 * @buf: for the words; "none" if there are none
 * @size: of @buf
 *
 * Context: any.
 * Return: length of the text.
 */
size_t tandem_features_words(char *buf, size_t size)
{
	u32 features = tandem_hv->features();
	unsigned int bit;
	size_t len = 0;

	for (bit = 0; bit < TANDEM_F_COUNT; bit++)
		if (features & BIT(bit))
			len += scnprintf(buf + len, size - len, "%s%s",
					 len ? " " : "",
					 tandem_hv_feature_word(bit));
	return len ? len : scnprintf(buf, size, "none");
}

static ssize_t version_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%s\n", TANDEM_VERSION);
}

static ssize_t hypervisor_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", tandem_hv->name);
}

static ssize_t features_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	char words[STATE_LEN];

	tandem_features_words(words, sizeof(words));
	return sysfs_emit(buf, "%s\n", words);
}

static struct kobj_attribute version_file = __ATTR_RO(version);
static struct kobj_attribute hypervisor_file = __ATTR_RO(hypervisor);
static struct kobj_attribute features_file = __ATTR_RO(features);

static struct attribute *top_attrs[] = {
	&version_file.attr,
	&hypervisor_file.attr,
	&features_file.attr,
	NULL
};

/* ---- topology/ ---- */

static int flatten_get(void)
{
	return tandem_topology_mode();
}

static void flatten_set(int word)
{
	tandem_topology_set_mode(word);
	tandem_gate_update();
}

static int variant_get(void)
{
	return tandem_topology_variant();
}

static void variant_set(int word)
{
	tandem_topology_set_variant(word);
}

static int host_get(void)
{
	return tandem_topology_host();
}

static void host_set(int word)
{
	tandem_topology_set_host(word);
}

static ssize_t topology_state_show(struct kobject *kobj,
				   struct kobj_attribute *attr, char *buf)
{
	return show_state(buf, tandem_topology_state);
}

WORD_FILE(topology_flatten, "topology", flatten, tandem_mode_words,
	  TANDEM_MODES, flatten_get, flatten_set);
WORD_FILE(topology_variant, "topology", variant, tandem_variant_words,
	  TANDEM_VARIANTS, variant_get, variant_set);
WORD_FILE(topology_host, "topology", host, tandem_host_words,
	  TANDEM_HOST_WORDS, host_get, host_set);
SHOW_FILE(topology_reason, reason, "%s", tandem_topology_reason());
SHOW_FILE(topology_flatten_ns, flatten_ns, "%llu",
	  tandem_topology_flatten_ns());
SHOW_FILE(topology_restore_ns, restore_ns, "%llu",
	  tandem_topology_restore_ns());
SHOW_FILE(topology_rebuilds, rebuilds, "%llu", tandem_topology_rebuilds());
static struct kobj_attribute topology_state =
	__ATTR(state, 0444, topology_state_show, NULL);

static struct attribute *topology_attrs[] = {
	&topology_flatten.attr.attr,
	&topology_variant.attr.attr,
	&topology_host.attr.attr,
	&topology_state.attr,
	&topology_reason.attr,
	&topology_flatten_ns.attr,
	&topology_restore_ns.attr,
	&topology_rebuilds.attr,
	NULL
};

/* ---- hints/ ---- */

static int hints_mode_get(void)
{
	return tandem_hints_mode();
}

static void hints_mode_set(int word)
{
	tandem_hints_set_mode(word);
	tandem_gate_update();
}

static u32 hints_get(int id)
{
	return tandem_hints_tunable(id);
}

static void hints_set(int id, u32 value)
{
	tandem_hints_set_tunable(id, value);
}

static ssize_t hints_state_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	return show_state(buf, tandem_hints_state);
}

WORD_FILE(hints_mode, "hints", mode, tandem_mode_words, TANDEM_MODES,
	  hints_mode_get, hints_mode_set);
NUMBER_FILE(hints, window_us, TANDEM_WINDOW_US, TANDEM_WINDOW_US);
NUMBER_FILE(hints, sustain, TANDEM_SUSTAIN, TANDEM_SUSTAIN);
NUMBER_FILE(hints, tries, TANDEM_TRIES, TANDEM_TRIES);
NUMBER_FILE(hints, budget, TANDEM_BUDGET, TANDEM_BUDGET);
static struct kobj_attribute hints_state =
	__ATTR(state, 0444, hints_state_show, NULL);

static struct attribute *hints_attrs[] = {
	&hints_mode.attr.attr,
	&hints_state.attr,
	&hints_window_us.attr.attr,
	&hints_sustain.attr.attr,
	&hints_tries.attr.attr,
	&hints_budget.attr.attr,
	NULL
};

/* ---- gate/ ---- */

static u32 gate_get(int id)
{
	return tandem_gate_tunable(id);
}

static void gate_set(int id, u32 value)
{
	tandem_gate_set_tunable(id, value);
}

NUMBER_FILE(gate, open_permille, TANDEM_OPEN_PERMILLE,
	    TANDEM_GATE_OPEN_PERMILLE);
NUMBER_FILE(gate, hold_ms, TANDEM_HOLD_MS, TANDEM_GATE_HOLD_MS);
NUMBER_FILE(gate, period_ms, TANDEM_PERIOD_MS, TANDEM_GATE_PERIOD_MS);
SHOW_FILE(gate_state, state, "%s", tandem_gate_is_open() ? "open" : "closed");
SHOW_FILE(gate_steal, steal_permille, "%u", tandem_gate_permille());
SHOW_FILE(gate_opened, opened, "%llu", tandem_gate_opened());

static struct attribute *gate_attrs[] = {
	&gate_state.attr,
	&gate_steal.attr,
	&gate_open_permille.attr.attr,
	&gate_hold_ms.attr.attr,
	&gate_period_ms.attr.attr,
	&gate_opened.attr,
	NULL
};

/* ---- the tree ---- */

static const struct attribute_group top_group = { .attrs = top_attrs };
static const struct attribute_group topology_group = {
	.name = "topology",
	.attrs = topology_attrs,
};

static const struct attribute_group hints_group = {
	.name = "hints",
	.attrs = hints_attrs,
};

static const struct attribute_group gate_group = {
	.name = "gate",
	.attrs = gate_attrs,
};

static const struct attribute_group *root_groups[] = {
	&top_group, &topology_group, &hints_group, &gate_group, NULL
};

static void put_root(void)
{
	kobject_put(&root);
	wait_for_completion(&root_released);
}

/**
 * tandem_sysfs_add() - make /sys/kernel/tandem
 *
 * Context: process, without tandem_mutex.
 * Return: 0 or a negative errno; then nothing is left.
 */
int tandem_sysfs_add(void)
{
	int err;

	err = kobject_init_and_add(&root, &root_type, kernel_kobj, "tandem");
	if (err)
		goto put;
	err = sysfs_create_groups(&root, root_groups);
	if (err)
		goto put;
	err = tandem_stats_add(&root);
	if (err)
		goto remove;
	return 0;

remove:
	sysfs_remove_groups(&root, root_groups);
put:
	put_root();
	return err;
}

/**
 * tandem_sysfs_remove() - remove /sys/kernel/tandem
 *
 * When it returns, no file's function runs and none will.
 *
 * Context: process, without tandem_mutex: readers and writers take it.
 */
void tandem_sysfs_remove(void)
{
	tandem_stats_remove();
	sysfs_remove_groups(&root, root_groups);
	put_root();
}
