// SPDX-License-Identifier: GPL-2.0
/*
 * tandem: the guest's side of two schedulers pulling together. Life cycle.
 */
#define pr_fmt(fmt) "tandem: " fmt

#include <linux/module.h>

#include "gate.h"
#include "hypercall.h"
#include "lockhint.h"
#include "parse.h"
#include "symbols.h"
#include "sysfs.h"
#include "tandem.h"
#include "topology.h"

#define WORDS_LEN	160

static bool enable = true;
module_param(enable, bool, 0444);
MODULE_PARM_DESC(enable, "Load at all; tandem.enable=0 on the kernel command line is the off switch");

static char *flatten = "auto";
module_param(flatten, charp, 0);
MODULE_PARM_DESC(flatten, "Initial topology/flatten: auto, on or off");

static char *variant = "flat";
module_param(variant, charp, 0);
MODULE_PARM_DESC(variant, "Initial topology/variant: flat or flat-llc");

static char *hints = "auto";
module_param(hints, charp, 0);
MODULE_PARM_DESC(hints, "Initial hints/mode: auto, on or off");

/* Serialises every change, see tandem.h. */
DEFINE_MUTEX(tandem_mutex);
const struct tandem_hv *tandem_hv;
struct workqueue_struct *tandem_wq;

const char * const tandem_mode_words[] = { "auto", "on", "off" };

/**
 * struct initial - the parsed module parameters
 * @flatten: mode of the topology
 * @variant: of the flat level
 * @hints: mode of the hints
 */
struct initial {
	int flatten;
	int variant;
	int hints;
};

static int parse_parameters(struct initial *initial)
{
	initial->flatten = tandem_parse_word("parameter flatten", flatten,
					     strlen(flatten),
					     tandem_mode_words, TANDEM_MODES);
	if (initial->flatten < 0)
		return initial->flatten;
	initial->variant = tandem_parse_word("parameter variant", variant,
					     strlen(variant),
					     tandem_variant_words,
					     TANDEM_VARIANTS);
	if (initial->variant < 0)
		return initial->variant;
	initial->hints = tandem_parse_word("parameter hints", hints,
					   strlen(hints), tandem_mode_words,
					   TANDEM_MODES);
	return initial->hints < 0 ? initial->hints : 0;
}

static int detect(void)
{
	tandem_hv = tandem_hv_detect();
	if (tandem_hv)
		return 0;
	pr_err("not loaded: neither a KVM nor a Xen guest\n");
	return -ENODEV;
}

static void start(const struct initial *initial)
{
	mutex_lock(&tandem_mutex);
	tandem_hints_init();
	tandem_topology_configure(initial->flatten, initial->variant);
	tandem_hints_set_mode(initial->hints);
	tandem_gate_update();
	mutex_unlock(&tandem_mutex);
}

/* In reverse; nothing may wait for the mutex's holder while we hold it. */
static void stop(void)
{
	mutex_lock(&tandem_mutex);
	tandem_hints_stop();
	tandem_topology_restore();
	tandem_gate_update();
	mutex_unlock(&tandem_mutex);
	tandem_gate_cancel();
}

static void log_state(void)
{
	char features[WORDS_LEN], topology[WORDS_LEN], hint[WORDS_LEN];

	tandem_features_words(features, sizeof(features));
	mutex_lock(&tandem_mutex);
	tandem_topology_state(topology, sizeof(topology));
	tandem_hints_state(hint, sizeof(hint));
	pr_info("%s on %s; features: %s; topology: %s (%s); hints: %s\n",
		TANDEM_VERSION, tandem_hv->name, features, topology,
		tandem_topology_reason(), hint);
	mutex_unlock(&tandem_mutex);
}

static int __init tandem_init(void)
{
	struct initial initial;
	int err;

	if (!enable) {
		pr_info("not loaded: switched off by tandem.enable=0\n");
		return -ENODEV;
	}
	err = parse_parameters(&initial);
	if (err)
		return err;
	err = detect();
	if (err)
		return err;
	tandem_symbols_find();

	tandem_wq = alloc_workqueue("tandem", WQ_UNBOUND | WQ_FREEZABLE, 0);
	if (!tandem_wq)
		return -ENOMEM;
	err = tandem_topology_init();
	if (err)
		goto destroy_wq;
	start(&initial);
	err = tandem_sysfs_add();
	if (err)
		goto stop;
	log_state();
	return 0;

stop:
	tandem_topology_stop();
	stop();
destroy_wq:
	destroy_workqueue(tandem_wq);
	pr_err("not loaded: error %d\n", err);
	return err;
}

static void __exit tandem_exit(void)
{
	tandem_sysfs_remove();
	tandem_topology_stop();
	stop();
	destroy_workqueue(tandem_wq);
	pr_info("unloaded; topology native, hints off\n");
}

module_init(tandem_init);
module_exit(tandem_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The tandem authors");
MODULE_DESCRIPTION("Scheduling of guest and host in tandem: flat sched domains, lock holder hints, statistics");
MODULE_VERSION(TANDEM_VERSION);
