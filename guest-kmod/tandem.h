/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the module share.
 *
 * Lock order: sysfs active reference -> tandem_mutex -> CPU hotplug lock ->
 * sched_domains_mutex. CPU hotplug callbacks therefore only queue work.
 */
#ifndef TANDEM_H
#define TANDEM_H

#include <linux/mutex.h>
#include <linux/workqueue.h>

#define TANDEM_VERSION	"0.1.0"

struct tandem_hv;

/**
 * enum tandem_mode - position of a switch; the words are "auto on off"
 * @TANDEM_AUTO: the module decides
 * @TANDEM_ON: always
 * @TANDEM_OFF: never
 */
enum tandem_mode {
	TANDEM_AUTO,
	TANDEM_ON,
	TANDEM_OFF,
};

extern const char * const tandem_mode_words[];
#define TANDEM_MODES	3

/* Serialises every change of mode, variant, tunable and gate. */
extern struct mutex tandem_mutex;
/* The hypervisor below; constant while loaded. */
extern const struct tandem_hv *tandem_hv;
/*
 * Our own queue. Unbound: neither sampling nor rebuilding has a place.
 * Freezable: during suspend the kernel takes CPUs away and leaves the cpusets
 * as they were; a rebuild from those fails, in 7.3 with a warning.
 */
extern struct workqueue_struct *tandem_wq;

#endif /* TANDEM_H */
