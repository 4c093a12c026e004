// SPDX-License-Identifier: GPL-2.0
/* The table of guests, the same from tandem-groupd and from tandemctl. */
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "guest.h"
#include "log.h"
#include "table.h"

static const char *const headings[][9] = {
	{ "NAME", "VCPUS", "LOAD", "USED", "DEMAND", "STEAL%", "HINTS/s", "TOPOLOGY", "AGE" },
	{ "", "", "tasks", "pCPU", "pCPU", "", "", "", "" },
};

/**
 * guests_table_begin() - headings and their units
 * @t: the table, to be freed with table_free()
 */
void guests_table_begin(struct table *t)
{
	table_init(t, "lrrrrrrll");
	for (size_t i = 0; i < ARRAY_SIZE(headings); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(headings[i]); j++)
			table_cell(t, "%s", headings[i][j]);
	}
}

static void centi_cell(struct table *t, int64_t centi)
{
	if (centi == REPORT_UNKNOWN)
		table_cell(t, "-");
	else
		table_cell(t, "%lld.%02lld", (long long)(centi / 100), (long long)(centi % 100));
}

static void mcpu_cell(struct table *t, int64_t mcpu)
{
	centi_cell(t, mcpu == REPORT_UNKNOWN ? REPORT_UNKNOWN : (mcpu + 5) / 10);
}

/* The part of the demand that the host did not give. */
static void steal_cell(struct table *t, const struct report *r)
{
	int64_t permille;

	if (r->demand_mcpu == REPORT_UNKNOWN) {
		table_cell(t, "-");
		return;
	}
	permille = r->demand_mcpu ? r->steal_mcpu * 1000 / r->demand_mcpu : 0;
	table_cell(t, "%lld.%lld", (long long)(permille / 10), (long long)(permille % 10));
}

static void report_cells(struct table *t, const struct guest_view *g)
{
	const struct report *r = &g->report;

	if (r->vcpus_online == r->vcpus_present)
		table_cell(t, "%lld", (long long)r->vcpus_online);
	else
		table_cell(t, "%lld/%lld", (long long)r->vcpus_online,
			   (long long)r->vcpus_present);
	centi_cell(t, r->load1_centi);
	mcpu_cell(t, r->used_mcpu);
	mcpu_cell(t, r->demand_mcpu);
	steal_cell(t, r);
	if (g->hints_per_s_milli == REPORT_UNKNOWN)
		table_cell(t, "-");
	else
		table_cell(t, "%lld.%lld", (long long)(g->hints_per_s_milli / 1000),
			   (long long)(g->hints_per_s_milli % 1000 / 100));
	/* "unsupported: reason": the reason is for tandemctl status. */
	if (r->module.present && *r->module.topology)
		table_cell(t, "%.*s", (int)strcspn(r->module.topology, ":"), r->module.topology);
	else
		table_cell(t, "-");
}

static void age_cell(struct table *t, const struct guest_view *g, int64_t now_ms)
{
	static const char *const words[GUEST_STATE_NR] = {
		[GUEST_OK] = "",
		[GUEST_WAITING] = "waiting ",
		[GUEST_SILENT] = "silent ",
		[GUEST_GONE] = "gone ",
	};
	const char *word = words[guest_state(g, now_ms)];
	long long s = (long long)(guest_age_ms(g, now_ms) / 1000);

	if (s < 600)
		table_cell(t, "%s%llds", word, s);
	else if (s < 36000)
		table_cell(t, "%s%lldm", word, s / 60);
	else if (s < 864000)
		table_cell(t, "%s%lldh", word, s / 3600);
	else
		table_cell(t, "%s%lldd", word, s / 86400);
}

/**
 * guests_table_row() - add a guest to the table
 * @t: the table
 * @g: the guest
 * @now_ms: clock_ms()
 */
void guests_table_row(struct table *t, const struct guest_view *g, int64_t now_ms)
{
	table_cell(t, "%s", g->name);
	if (g->connected && g->reported) {
		report_cells(t, g);
	} else {
		for (int i = 0; i < 7; i++)
			table_cell(t, "-");
	}
	age_cell(t, g, now_ms);
}

static bool rows_from_json(struct json_object *root, struct table *t, char *error)
{
	int64_t now_ms = clock_ms();
	struct json_object *guests;
	struct guest_view g;

	if (!json_get_version(root) || !json_object_object_get_ex(root, "guests", &guests) ||
	    !json_object_is_type(guests, json_type_array)) {
		snprintf(error, REPORT_ERROR_MAX, "guests: not an array of version 1");
		return false;
	}
	for (size_t i = 0; i < json_object_array_length(guests); i++) {
		if (!guest_from_json(json_object_array_get_idx(guests, i), now_ms, &g, error))
			return false;
		guests_table_row(t, &g, now_ms);
	}
	return true;
}

/**
 * guests_table_from_json() - the table of what groupd's control socket answered
 * @text: the answer
 * @len: its length
 * @out: the table is appended
 * @error: REPORT_ERROR_MAX bytes, set on failure
 *
 * Return: true on success.
 */
bool guests_table_from_json(const char *text, size_t len, struct buf *out, char *error)
{
	struct json_tokener *tok = json_reader_new(GUESTS_JSON_DEPTH);
	struct json_object *root;
	struct table t;
	bool ok;

	if (!tok) {
		snprintf(error, REPORT_ERROR_MAX, "out of memory");
		return false;
	}
	root = json_read(tok, text, len, error);
	guests_table_begin(&t);
	ok = root && rows_from_json(root, &t, error);
	if (ok)
		table_render(&t, out);
	table_free(&t);
	json_object_put(root);
	json_tokener_free(tok);
	return ok;
}
