// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "status.h"

static void text_row(struct buf *out, const char *label, const char *value)
{
	char safe[512];

	text_escape(safe, sizeof(safe), *value ? value : "unknown");
	buf_printf(out, "%-14s  %s\n", label, safe);
}

static void pcpu(struct buf *out, int64_t mcpu)
{
	if (mcpu == REPORT_UNKNOWN)
		buf_puts(out, "unknown");
	else
		buf_printf(out, "%lld.%02lld pCPU", (long long)(mcpu / 1000),
			   (long long)(mcpu % 1000 / 10));
}

static void centi(struct buf *out, int64_t value, const char *unit)
{
	if (value == REPORT_UNKNOWN)
		buf_puts(out, "unknown");
	else
		buf_printf(out, "%lld.%02lld%s", (long long)(value / 100),
			   (long long)(value % 100), unit);
}

static void load_rows(const struct report *r, struct buf *out)
{
	buf_printf(out, "%-14s  %lld of %lld online\n", "vCPUs", (long long)r->vcpus_online,
		   (long long)r->vcpus_present);
	buf_printf(out, "%-14s  ", "used");
	pcpu(out, r->used_mcpu);
	buf_printf(out, "\n%-14s  ", "demand");
	pcpu(out, r->demand_mcpu);
	buf_printf(out, "\n%-14s  ", "steal");
	pcpu(out, r->steal_mcpu);
	if (r->steal_mcpu != REPORT_UNKNOWN && r->demand_mcpu > 0)
		buf_printf(out, ", %lld%% of the demand",
			   (long long)(r->steal_mcpu * 100 / r->demand_mcpu));
	buf_printf(out, ", %lld ms since boot\n", (long long)r->steal_ms);
	buf_printf(out, "%-14s  %lld runnable, load ", "run queue", (long long)r->runq);
	centi(out, r->load1_centi, "");
	buf_printf(out, "\n%-14s  ", "pressure");
	centi(out, r->psi_avg10_centi, "% over 10 s");
	buf_puts(out, "\n");
}

static void count_row(struct buf *out, const char *label, int64_t value)
{
	if (value == REPORT_UNKNOWN)
		buf_printf(out, "  %-12s  unknown\n", label);
	else
		buf_printf(out, "  %-12s  %lld\n", label, (long long)value);
}

static void mode_row(struct buf *out, const char *label, const char *state, const char *mode)
{
	char value[256];

	snprintf(value, sizeof(value), "%s (%s)", *state ? state : "unknown",
		 *mode ? mode : "mode unknown");
	text_row(out, label, value);
}

static void module_rows(const struct report_module *m, struct buf *out)
{
	char gate[80];

	text_row(out, "module", m->version);
	text_row(out, "hypervisor", m->hypervisor);
	text_row(out, "features", m->features);
	mode_row(out, "topology", m->topology, m->flatten);
	if (*m->reason)
		text_row(out, "  reason", m->reason);
	if (*m->variant)
		text_row(out, "  variant", m->variant);
	snprintf(gate, sizeof(gate), "%s", *m->gate ? m->gate : "unknown");
	if (m->gate_steal_permille != REPORT_UNKNOWN)
		snprintf(gate, sizeof(gate), "%s, steal %lld permille",
			 *m->gate ? m->gate : "unknown", (long long)m->gate_steal_permille);
	text_row(out, "gate", gate);
	mode_row(out, "hints", m->hints_state, m->hints_mode);
	count_row(out, "sent", m->stats[MODULE_STAT_sent]);
	count_row(out, "failed", m->stats[MODULE_STAT_failed]);
	buf_puts(out, "suppressed, and why\n");
	count_row(out, "sustain", m->stats[MODULE_STAT_suppressed_sustain]);
	count_row(out, "tries", m->stats[MODULE_STAT_suppressed_tries]);
	count_row(out, "budget", m->stats[MODULE_STAT_suppressed_budget]);
	buf_puts(out, "contended locks\n");
	count_row(out, "mutex", m->stats[MODULE_STAT_contended_mutex]);
	count_row(out, "rwsem", m->stats[MODULE_STAT_contended_rwsem]);
	count_row(out, "spin", m->stats[MODULE_STAT_contended_spin]);
	count_row(out, "other", m->stats[MODULE_STAT_contended_other]);
	buf_puts(out, "their holders\n");
	count_row(out, "preempted", m->stats[MODULE_STAT_holder_preempted]);
	count_row(out, "running", m->stats[MODULE_STAT_holder_running]);
	count_row(out, "asleep", m->stats[MODULE_STAT_holder_asleep]);
	count_row(out, "idle", m->stats[MODULE_STAT_holder_idle]);
	count_row(out, "self", m->stats[MODULE_STAT_holder_self]);
	count_row(out, "unknown", m->stats[MODULE_STAT_holder_unknown]);
}

/**
 * status_text() - a report for people
 * @r: the report
 * @out: text is appended
 */
void status_text(const struct report *r, struct buf *out)
{
	text_row(out, "host name", r->host);
	text_row(out, "group", *r->group ? r->group : "none");
	load_rows(r, out);
	if (r->module.present)
		module_rows(&r->module, out);
	else
		text_row(out, "module", "not loaded: no topology, no hints");
}
