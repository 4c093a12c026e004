/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One flat sched domain per NUMA node instead of the topology that the host
 * does not keep. All functions: process context, tandem_mutex held, unless
 * said otherwise.
 */
#ifndef TANDEM_TOPOLOGY_H
#define TANDEM_TOPOLOGY_H

#include <linux/types.h>

#include "tandem.h"

/**
 * enum tandem_variant - flags of the flat level; words "flat flat-llc"
 * @TANDEM_FLAT: none: wake-ups stay on the target's or the previous CPU
 * @TANDEM_FLAT_LLC: shared last-level cache: wake-ups search the node
 */
enum tandem_variant {
	TANDEM_FLAT,
	TANDEM_FLAT_LLC,
};

extern const char * const tandem_variant_words[];
#define TANDEM_VARIANTS	2

/**
 * enum tandem_host_word - what the host says of the topology; the words are
 *	"none pinned trusted"
 * @TANDEM_HOST_NONE: nothing
 * @TANDEM_HOST_PINNED: each vCPU stays on its pCPU
 * @TANDEM_HOST_TRUSTED: the topology is kept true by other means
 */
enum tandem_host_word {
	TANDEM_HOST_NONE,
	TANDEM_HOST_PINNED,
	TANDEM_HOST_TRUSTED,
};

extern const char * const tandem_host_words[];
#define TANDEM_HOST_WORDS	3

int tandem_topology_init(void);
void tandem_topology_stop(void);
void tandem_topology_restore(void);

enum tandem_mode tandem_topology_mode(void);
void tandem_topology_set_mode(enum tandem_mode mode);
enum tandem_variant tandem_topology_variant(void);
void tandem_topology_set_variant(enum tandem_variant variant);
void tandem_topology_configure(enum tandem_mode mode,
			       enum tandem_variant variant);
enum tandem_host_word tandem_topology_host(void);
void tandem_topology_set_host(enum tandem_host_word word);
void tandem_topology_steal_seen(void);

int tandem_topology_state(char *buf, size_t size);
const char *tandem_topology_reason(void);
u64 tandem_topology_flatten_ns(void);
u64 tandem_topology_restore_ns(void);
u64 tandem_topology_rebuilds(void);

#endif /* TANDEM_TOPOLOGY_H */
