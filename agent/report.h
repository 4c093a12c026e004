/* SPDX-License-Identifier: GPL-2.0 */
/* The report of a guest, and its form on the wire (docs/protocol.md). */
#ifndef TANDEM_REPORT_H
#define TANDEM_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "said.h"
#include "text.h"

#define PROTOCOL_VERSION 1
#define REPORT_UNKNOWN (-1)
#define REPORT_ERROR_MAX 128
/* Nesting that any message may have; json-c counts the innermost value, too. */
#define JSON_DEPTH_MAX 4

/* The module's counters under stats/, in the order of enum module_stat. */
#define MODULE_STATS(X)			\
	X(contended_mutex)		\
	X(contended_rwsem)		\
	X(contended_spin)		\
	X(contended_other)		\
	X(holder_unknown)		\
	X(holder_asleep)		\
	X(holder_self)			\
	X(holder_running)		\
	X(holder_idle)			\
	X(holder_preempted)		\
	X(suppressed_sustain)		\
	X(suppressed_tries)		\
	X(suppressed_budget)		\
	X(sent)				\
	X(failed)

#define MODULE_STAT_ENUM(name) MODULE_STAT_##name,
enum module_stat { MODULE_STATS(MODULE_STAT_ENUM) MODULE_STAT_NR };

/**
 * struct report_module - what the module says about itself
 * @present: the module is loaded; without it everything else is unknown
 * @version: its version
 * @hypervisor: "kvm", "xen-pv", ...
 * @features: names of the hypervisor features in use
 * @flatten: topology/flatten, the mode: auto, on, off
 * @variant: topology/variant
 * @topology: topology/state: flat, native, already-flat, "unsupported: reason"
 * @reason: topology/reason
 * @hints_mode: hints/mode
 * @hints_state: hints/state
 * @gate: gate/state
 * @gate_steal_permille: gate/steal_permille
 * @stats: counters since the module was loaded
 *
 * Text is printable ASCII; an empty string is unknown, REPORT_UNKNOWN is an
 * unknown number.
 */
struct report_module {
	bool present;
	char version[32];
	char hypervisor[32];
	char features[256];
	char flatten[16];
	char variant[32];
	char topology[128];
	char reason[128];
	char hints_mode[16];
	char hints_state[32];
	char gate[32];
	int64_t gate_steal_permille;
	int64_t stats[MODULE_STAT_NR];
};

/**
 * struct report - one sample of a guest
 * @boot_id: names this boot of the guest
 * @host: the guest's hostname
 * @agent: version of tandemd
 * @group: the group that the host says the guest is in
 * @seq: number of the sample since tandemd started, from 1
 * @uptime_ms: time of the sample, since boot
 * @interval_ms: length of the interval that the rates are over; unknown in the
 *               first sample, as the rates are
 * @period_ms: the agent samples this often
 * @heartbeat_ms: the agent reports at least this often
 * @vcpus_online: vCPUs in use
 * @vcpus_present: vCPUs there
 * @used_ms: vCPU time used since boot
 * @steal_ms: vCPU time stolen while runnable, since boot
 * @idle_ms: vCPU time idle since boot
 * @iowait_ms: vCPU time idle with I/O pending since boot
 * @used_mcpu: used in the interval, in thousandths of a pCPU
 * @steal_mcpu: stolen in the interval
 * @demand_mcpu: @used_mcpu + @steal_mcpu: what the guest would use if it could
 * @steal_max_mcpu: stolen from the vCPU that was robbed most
 * @runq: runnable tasks
 * @load1_centi: load average over 1 minute, in hundredths
 * @load5_centi: over 5 minutes
 * @load15_centi: over 15 minutes
 * @psi_avg10_centi: CPU pressure "some", percent over 10 s, in hundredths
 * @psi_total_us: CPU pressure "some" since boot
 * @dropped: reports dropped since tandemd started because the host did not
 *           read; like @seq, it starts again with the agent
 * @module: the kernel module
 */
struct report {
	char boot_id[40];
	char host[65];
	char agent[16];
	char group[SAID_GROUP_MAX];
	int64_t seq;
	int64_t uptime_ms;
	int64_t interval_ms;
	int64_t period_ms;
	int64_t heartbeat_ms;
	int64_t vcpus_online;
	int64_t vcpus_present;
	int64_t used_ms;
	int64_t steal_ms;
	int64_t idle_ms;
	int64_t iowait_ms;
	int64_t used_mcpu;
	int64_t steal_mcpu;
	int64_t demand_mcpu;
	int64_t steal_max_mcpu;
	int64_t runq;
	int64_t load1_centi;
	int64_t load5_centi;
	int64_t load15_centi;
	int64_t psi_avg10_centi;
	int64_t psi_total_us;
	int64_t dropped;
	struct report_module module;
};

struct json_object;
struct json_tokener;

extern const char *const module_stat_names[MODULE_STAT_NR];

void report_init(struct report *r);
void report_encode(const struct report *r, struct buf *out);
bool report_encode_within(const struct report *r, size_t max, struct buf *out);
bool report_from_json(struct json_object *root, struct report *r, char *error);
bool report_decode(struct json_tokener *tok, const char *line, size_t len, struct report *r,
		   char *error);

struct json_tokener *json_reader_new(int depth);
struct json_object *json_read(struct json_tokener *tok, const char *text, size_t len, char *error);
bool json_get_int(struct json_object *obj, const char *key, int64_t min, int64_t max,
		  int64_t *value);
bool json_get_version(struct json_object *obj);
const char *json_get_text(struct json_object *obj, const char *key);

#endif
