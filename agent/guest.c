// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "guest.h"

static const char *const state_names[GUEST_STATE_NR] = {
	[GUEST_OK] = "ok",
	[GUEST_WAITING] = "waiting",
	[GUEST_SILENT] = "silent",
	[GUEST_GONE] = "gone",
};

/**
 * guest_state() - how is the guest?
 * @g: the guest
 * @now_ms: clock_ms()
 *
 * Return: its state. Pure function.
 */
enum guest_state guest_state(const struct guest_view *g, int64_t now_ms)
{
	if (!g->connected)
		return GUEST_GONE;
	if (!g->reported)
		return GUEST_WAITING;
	if (now_ms - g->report_ms > GUEST_SILENT_HEARTBEATS * g->report.heartbeat_ms)
		return GUEST_SILENT;
	return GUEST_OK;
}

/**
 * guest_age_ms() - how old is what is known?
 * @g: the guest
 * @now_ms: clock_ms()
 *
 * Return: the age of the last report; for a guest that waits or is gone, for how
 * long it does.
 */
int64_t guest_age_ms(const struct guest_view *g, int64_t now_ms)
{
	int64_t age = now_ms - (g->connected && g->reported ? g->report_ms : g->since_ms);

	return age > 0 ? age : 0;
}

/**
 * guest_hints_rate() - how many hints a second between two reports?
 * @before: the older report
 * @now: the newer one
 * @known: the rate known so far; stays when both are the same sample
 *
 * Return: thousandths a second; REPORT_UNKNOWN when the guest was rebooted, the
 * module was loaded anew, or does not count.
 */
int64_t guest_hints_rate(const struct report *before, const struct report *now, int64_t known)
{
	int64_t sent_before = before->module.stats[MODULE_STAT_sent];
	int64_t sent = now->module.stats[MODULE_STAT_sent];
	int64_t ms = now->uptime_ms - before->uptime_ms;
	int64_t milli;

	if (!before->module.present || !now->module.present ||
	    strcmp(before->boot_id, now->boot_id) || sent_before == REPORT_UNKNOWN ||
	    sent < sent_before || ms < 0)
		return REPORT_UNKNOWN;
	if (!ms)
		return known;
	/* No guest sends 10^9 hints a second; one that says so is not believed. */
	if (__builtin_mul_overflow(sent - sent_before, INT64_C(1000000), &milli) ||
	    milli / ms > INT64_C(1000000000000))
		return REPORT_UNKNOWN;
	return milli / ms;
}

static void put_count(struct buf *out, const char *name, int64_t value)
{
	if (value == REPORT_UNKNOWN)
		buf_printf(out, ",\"%s\":null", name);
	else
		buf_printf(out, ",\"%s\":%lld", name, (long long)value);
}

/**
 * guest_encode() - append a guest as one JSON object
 * @g: the guest
 * @now_ms: clock_ms()
 * @out: where to
 */
void guest_encode(const struct guest_view *g, int64_t now_ms, struct buf *out)
{
	buf_puts(out, "{\"name\":");
	buf_json_string(out, g->name);
	buf_printf(out, ",\"state\":\"%s\"", state_names[guest_state(g, now_ms)]);
	put_count(out, "age_ms", guest_age_ms(g, now_ms));
	put_count(out, "hints_per_s_milli", g->hints_per_s_milli);
	put_count(out, "reports", (int64_t)g->reports);
	put_count(out, "malformed", (int64_t)g->malformed);
	put_count(out, "oversized", (int64_t)g->oversized);
	put_count(out, "limited", (int64_t)g->limited);
	buf_printf(out, ",\"transport\":\"%s\"", g->domid < 0 ? "virtio-serial" : "xenstore");
	put_count(out, "domid", g->domid);
	buf_puts(out, ",\"report\":");
	if (g->connected && g->reported)
		report_encode(&g->report, out);
	else
		buf_puts(out, "null");
	buf_puts(out, "}");
}

/**
 * guests_open() - begin the list of guests
 * @out: text is appended
 */
void guests_open(struct buf *out)
{
	buf_printf(out, "{\"v\":%d,\"type\":\"guests\",\"guests\":[", PROTOCOL_VERSION);
}

/**
 * guests_next() - append what stands between two guests
 * @out: text is appended
 * @first: true before the first guest; set to false
 */
void guests_next(struct buf *out, bool *first)
{
	if (!*first)
		buf_puts(out, ",");
	*first = false;
}

/**
 * guests_close() - end the list of guests
 * @out: text is appended
 */
void guests_close(struct buf *out)
{
	buf_puts(out, "]}");
}

static bool state_from_json(struct json_object *obj, int64_t now_ms, int64_t age_ms,
			    struct guest_view *g, char *error)
{
	const char *state = json_get_text(obj, "state");
	struct json_object *report;
	int i;

	for (i = 0; i < GUEST_STATE_NR && state; i++) {
		if (!strcmp(state, state_names[i]))
			break;
	}
	if (!state || i == GUEST_STATE_NR) {
		snprintf(error, REPORT_ERROR_MAX, "state: not known");
		return false;
	}
	g->connected = i != GUEST_GONE;
	g->reported = i == GUEST_OK || i == GUEST_SILENT;
	g->since_ms = now_ms - age_ms;
	g->report_ms = now_ms - age_ms;
	if (!g->reported)
		return true;
	if (json_object_object_get_ex(obj, "report", &report) &&
	    json_object_is_type(report, json_type_object))
		return report_from_json(report, &g->report, error);
	snprintf(error, REPORT_ERROR_MAX, "report: not an object");
	return false;
}

/**
 * guest_from_json() - read a guest out of groupd's answer
 * @obj: the guest
 * @now_ms: clock_ms()
 * @g: set on success
 * @error: REPORT_ERROR_MAX bytes, set on failure
 *
 * Return: true on success.
 */
bool guest_from_json(struct json_object *obj, int64_t now_ms, struct guest_view *g, char *error)
{
	const char *name = json_get_text(obj, "name");
	int64_t age_ms;

	memset(g, 0, sizeof(*g));
	if (!name || !text_copy(g->name, sizeof(g->name), name)) {
		snprintf(error, REPORT_ERROR_MAX, "name: not a string of up to %d bytes",
			 GUEST_NAME_MAX - 1);
		return false;
	}
	if (!json_get_int(obj, "age_ms", 0, INT64_C(1) << 53, &age_ms)) {
		snprintf(error, REPORT_ERROR_MAX, "age_ms: not a whole number");
		return false;
	}
	if (!json_get_int(obj, "hints_per_s_milli", 0, INT64_C(1) << 53, &g->hints_per_s_milli))
		g->hints_per_s_milli = REPORT_UNKNOWN;
	return state_from_json(obj, now_ms, age_ms, g, error);
}
