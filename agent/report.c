// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "report.h"

#define MS_MAX		(INT64_C(1) << 53)	/* exact in every JSON reader */
#define COUNT_MAX	(INT64_C(1) << 53)
#define MCPU_MAX	INT64_C(16384000)	/* 8192 vCPUs, and as much again for jitter */
#define CPUS_MAX	INT64_C(8192)

/* A number on the wire: @nullable ones may be unknown. */
struct int_field {
	const char *name;
	size_t offset;
	int64_t min;
	int64_t max;
	bool nullable;
};

/* A string on the wire. One that was @added to version 1 later may be missing, which is null. */
struct text_field {
	const char *name;
	size_t offset;
	size_t size;
	bool nullable;
	bool added;
};

#define INT(field, lo, hi, null) { #field, offsetof(struct report, field), lo, hi, null }
#define TEXT(type, field, null) \
	{ #field, offsetof(type, field), sizeof(((type *)0)->field), null, false }

static const struct text_field report_texts[] = {
	TEXT(struct report, boot_id, false),
	TEXT(struct report, host, true),
	TEXT(struct report, agent, false),
	{ "group", offsetof(struct report, group), SAID_GROUP_MAX, true, true },
};

static const struct int_field report_ints[] = {
	INT(seq, 1, COUNT_MAX, false),
	INT(uptime_ms, 0, MS_MAX, false),
	INT(interval_ms, 1, MS_MAX, true),
	INT(period_ms, 100, 60000, false),
	INT(heartbeat_ms, 100, 3600000, false),
	INT(vcpus_online, 1, CPUS_MAX, false),
	INT(vcpus_present, 1, CPUS_MAX, false),
	INT(used_ms, 0, MS_MAX, false),
	INT(steal_ms, 0, MS_MAX, false),
	INT(idle_ms, 0, MS_MAX, false),
	INT(iowait_ms, 0, MS_MAX, false),
	INT(used_mcpu, 0, MCPU_MAX, true),
	INT(steal_mcpu, 0, MCPU_MAX, true),
	INT(demand_mcpu, 0, 2 * MCPU_MAX, true),
	INT(steal_max_mcpu, 0, MCPU_MAX, true),
	INT(runq, 0, COUNT_MAX, false),
	INT(load1_centi, 0, COUNT_MAX, true),
	INT(load5_centi, 0, COUNT_MAX, true),
	INT(load15_centi, 0, COUNT_MAX, true),
	INT(psi_avg10_centi, 0, 10000, true),
	INT(psi_total_us, 0, MS_MAX, true),
	INT(dropped, 0, COUNT_MAX, false),
};

static const struct text_field module_texts[] = {
	TEXT(struct report_module, version, true),
	TEXT(struct report_module, hypervisor, true),
	TEXT(struct report_module, features, true),
	TEXT(struct report_module, flatten, true),
	TEXT(struct report_module, variant, true),
	TEXT(struct report_module, topology, true),
	TEXT(struct report_module, reason, true),
	TEXT(struct report_module, hints_mode, true),
	TEXT(struct report_module, hints_state, true),
	TEXT(struct report_module, gate, true),
};

#define MODULE_STAT_NAME(name) #name,
const char *const module_stat_names[MODULE_STAT_NR] = { MODULE_STATS(MODULE_STAT_NAME) };

static int64_t *int_at(void *base, size_t offset)
{
	return (int64_t *)(void *)((char *)base + offset);
}

/**
 * report_init() - a report that knows nothing
 * @r: the report
 */
void report_init(struct report *r)
{
	memset(r, 0, sizeof(*r));
	for (size_t i = 0; i < ARRAY_SIZE(report_ints); i++)
		*int_at(r, report_ints[i].offset) = REPORT_UNKNOWN;
	r->module.gate_steal_permille = REPORT_UNKNOWN;
	for (size_t i = 0; i < MODULE_STAT_NR; i++)
		r->module.stats[i] = REPORT_UNKNOWN;
}

static void put_int(struct buf *out, const char *name, int64_t value)
{
	if (value == REPORT_UNKNOWN)
		buf_printf(out, "\"%s\":null", name);
	else
		buf_printf(out, "\"%s\":%lld", name, (long long)value);
}

static void put_text(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "\"%s\":", name);
	if (*value)
		buf_json_string(out, value);
	else
		buf_puts(out, "null");
}

static void put_module(struct buf *out, const struct report_module *m)
{
	if (!m->present) {
		buf_puts(out, "null");
		return;
	}
	buf_puts(out, "{");
	for (size_t i = 0; i < ARRAY_SIZE(module_texts); i++) {
		put_text(out, module_texts[i].name, (const char *)m + module_texts[i].offset);
		buf_puts(out, ",");
	}
	put_int(out, "gate_steal_permille", m->gate_steal_permille);
	buf_puts(out, ",\"stats\":{");
	for (size_t i = 0; i < MODULE_STAT_NR; i++) {
		if (i)
			buf_puts(out, ",");
		put_int(out, module_stat_names[i], m->stats[i]);
	}
	buf_puts(out, "}}");
}

/**
 * report_encode() - append a report as one JSON object, without newline
 * @r: the report
 * @out: where to; whatever the report holds it stays below LINE_BYTES_MAX bytes
 */
void report_encode(const struct report *r, struct buf *out)
{
	buf_printf(out, "{\"v\":%d,\"type\":\"report\"", PROTOCOL_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(report_texts); i++) {
		buf_puts(out, ",");
		put_text(out, report_texts[i].name, (const char *)r + report_texts[i].offset);
	}
	for (size_t i = 0; i < ARRAY_SIZE(report_ints); i++) {
		buf_puts(out, ",");
		put_int(out, report_ints[i].name, *int_at((void *)(uintptr_t)r,
							  report_ints[i].offset));
	}
	buf_puts(out, ",\"module\":");
	put_module(out, &r->module);
	buf_puts(out, "}");
}

/**
 * report_encode_within() - append a report that has to fit
 * @r: the report
 * @max: most bytes that it may have
 * @out: where to; replaced
 *
 * Text that the host can do without is left out, and null, until it fits: what the module
 * offers, why it did what it did, and last the host name.
 *
 * Return: false when it does not fit without them either.
 */
bool report_encode_within(const struct report *r, size_t max, struct buf *out)
{
	struct report less = *r;
	char *const spare[] = { less.module.features, less.module.reason, less.module.variant,
				less.host };

	for (size_t i = 0; ; i++) {
		buf_reset(out);
		report_encode(&less, out);
		if (!out->failed && out->len <= max)
			return true;
		if (i == ARRAY_SIZE(spare))
			return false;
		*spare[i] = '\0';
	}
}

/**
 * json_reader_new() - a strict JSON parser, to be used many times
 * @depth: greatest nesting
 *
 * Return: the parser, to be freed with json_tokener_free(); NULL without memory.
 */
struct json_tokener *json_reader_new(int depth)
{
	struct json_tokener *tok = json_tokener_new_ex(depth);

	if (tok)
		json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	return tok;
}

/**
 * json_read() - parse one whole JSON object
 * @tok: from json_reader_new()
 * @text: the text, of any kind
 * @len: its length
 * @error: REPORT_ERROR_MAX bytes, set on failure
 *
 * Return: an object, to be released with json_object_put(), or NULL.
 */
struct json_object *json_read(struct json_tokener *tok, const char *text, size_t len, char *error)
{
	struct json_object *obj;
	enum json_tokener_error e;

	if (memchr(text, '\0', len) || len > INT32_MAX) {
		snprintf(error, REPORT_ERROR_MAX, "not JSON: it contains a NUL");
		return NULL;
	}
	json_tokener_reset(tok);
	obj = json_tokener_parse_ex(tok, text, (int)len);
	e = json_tokener_get_error(tok);
	if (e == json_tokener_success && json_tokener_get_parse_end(tok) == len &&
	    json_object_is_type(obj, json_type_object))
		return obj;
	json_object_put(obj);
	if (e == json_tokener_continue)
		snprintf(error, REPORT_ERROR_MAX, "not JSON: it ends too early");
	else if (e != json_tokener_success)
		snprintf(error, REPORT_ERROR_MAX, "not JSON: %s", json_tokener_error_desc(e));
	else
		snprintf(error, REPORT_ERROR_MAX, "not one JSON object");
	return NULL;
}

static bool value_int(struct json_object *val, int64_t min, int64_t max, int64_t *value)
{
	uint64_t u;
	int64_t i;

	/* Whole numbers only: "1.0" and "1e3" are doubles to json-c, and refused. */
	if (!json_object_is_type(val, json_type_int))
		return false;
	i = json_object_get_int64(val);
	u = json_object_get_uint64(val);
	/* Beyond the range of either type json-c saturates: out of every bound of ours. */
	if (i < min || i > max || (i >= 0 && u != (uint64_t)i))
		return false;
	*value = i;
	return true;
}

/**
 * json_get_int() - read a whole number of an object
 * @obj: the object
 * @key: its key
 * @min: least value accepted
 * @max: greatest value accepted
 * @value: set on success
 *
 * Return: false when it is missing, of another type or out of bounds.
 */
bool json_get_int(struct json_object *obj, const char *key, int64_t min, int64_t max,
		  int64_t *value)
{
	struct json_object *val;

	return json_object_object_get_ex(obj, key, &val) && value_int(val, min, max, value);
}

/**
 * json_get_version() - is the message of the version that we speak?
 * @obj: the message
 *
 * Return: true when it is.
 */
bool json_get_version(struct json_object *obj)
{
	int64_t v;

	return json_get_int(obj, "v", PROTOCOL_VERSION, PROTOCOL_VERSION, &v);
}

/**
 * json_get_text() - read a string of an object
 * @obj: the object
 * @key: its key
 *
 * Return: the string, which lives as long as @obj, or NULL when it is missing,
 * of another type, or contains a NUL.
 */
const char *json_get_text(struct json_object *obj, const char *key)
{
	struct json_object *val;
	const char *s;

	if (!json_object_object_get_ex(obj, key, &val) ||
	    !json_object_is_type(val, json_type_string))
		return NULL;
	s = json_object_get_string(val);
	if (strlen(s) != (size_t)json_object_get_string_len(val))
		return NULL;
	return s;
}

static bool get_null(struct json_object *obj, const char *key)
{
	struct json_object *val;

	return json_object_object_get_ex(obj, key, &val) && !val;
}

static bool get_int_field(struct json_object *obj, const struct int_field *f, void *base,
			  char *error)
{
	int64_t *value = int_at(base, f->offset);

	if (f->nullable && get_null(obj, f->name)) {
		*value = REPORT_UNKNOWN;
		return true;
	}
	if (json_get_int(obj, f->name, f->min, f->max, value))
		return true;
	snprintf(error, REPORT_ERROR_MAX, "%s: not a whole number from %lld to %lld%s", f->name,
		 (long long)f->min, (long long)f->max, f->nullable ? ", or null" : "");
	return false;
}

static bool get_text_field(struct json_object *obj, const struct text_field *f, void *base,
			   char *error)
{
	char *dst = (char *)base + f->offset;
	const char *s;

	if ((f->nullable && get_null(obj, f->name)) ||
	    (f->added && !json_object_object_get_ex(obj, f->name, NULL))) {
		*dst = '\0';
		return true;
	}
	s = json_get_text(obj, f->name);
	if (s && *s && text_printable(s) && text_copy(dst, f->size, s))
		return true;
	snprintf(error, REPORT_ERROR_MAX, "%s: not a printable string of 1 to %zu bytes%s",
		 f->name, f->size - 1, f->nullable ? ", or null" : "");
	return false;
}

static bool get_module_stats(struct json_object *obj, struct report_module *m, char *error)
{
	struct json_object *stats;

	if (!json_object_object_get_ex(obj, "stats", &stats) ||
	    !json_object_is_type(stats, json_type_object)) {
		snprintf(error, REPORT_ERROR_MAX, "module.stats: not an object");
		return false;
	}
	for (size_t i = 0; i < MODULE_STAT_NR; i++) {
		struct int_field f = {
			.name = module_stat_names[i],
			.offset = offsetof(struct report_module, stats) + i * sizeof(int64_t),
			.max = INT64_MAX,
			.nullable = true,
		};

		if (!get_int_field(stats, &f, m, error))
			return false;
	}
	return true;
}

static bool get_module(struct json_object *root, struct report_module *m, char *error)
{
	static const struct int_field gate = {
		"gate_steal_permille", offsetof(struct report_module, gate_steal_permille),
		0, 1000, true,
	};
	struct json_object *obj;

	if (get_null(root, "module"))
		return true;
	if (!json_object_object_get_ex(root, "module", &obj) ||
	    !json_object_is_type(obj, json_type_object)) {
		snprintf(error, REPORT_ERROR_MAX, "module: not an object, or null");
		return false;
	}
	m->present = true;
	for (size_t i = 0; i < ARRAY_SIZE(module_texts); i++) {
		if (!get_text_field(obj, &module_texts[i], m, error))
			return false;
	}
	if (!get_int_field(obj, &gate, m, error))
		return false;
	return get_module_stats(obj, m, error);
}

static bool known(int64_t value)
{
	return value != REPORT_UNKNOWN;
}

/* What no single range can say. */
static bool check_whole(const struct report *r, char *error)
{
	bool rates = known(r->interval_ms);

	if (known(r->used_mcpu) != rates || known(r->steal_mcpu) != rates ||
	    known(r->steal_max_mcpu) != rates || known(r->demand_mcpu) != rates)
		snprintf(error, REPORT_ERROR_MAX,
			 "interval_ms: the rates are known when it is, and only then");
	else if (rates && r->demand_mcpu != r->used_mcpu + r->steal_mcpu)
		snprintf(error, REPORT_ERROR_MAX, "demand_mcpu: not used_mcpu + steal_mcpu");
	else if (r->heartbeat_ms < r->period_ms)
		snprintf(error, REPORT_ERROR_MAX, "heartbeat_ms: less than period_ms");
	else
		return true;
	return false;
}

/**
 * report_from_json() - read a report out of a parsed message
 * @root: the message
 * @r: set on success, undefined otherwise
 * @error: REPORT_ERROR_MAX bytes, set on failure
 *
 * Keys that are not known are ignored: a newer agent may send them.
 *
 * Return: true when every field is there, of its type and in its range.
 */
bool report_from_json(struct json_object *root, struct report *r, char *error)
{
	const char *type = json_get_text(root, "type");

	if (!json_get_version(root)) {
		snprintf(error, REPORT_ERROR_MAX, "v: not %d", PROTOCOL_VERSION);
		return false;
	}
	if (!type || strcmp(type, "report")) {
		snprintf(error, REPORT_ERROR_MAX, "type: not \"report\"");
		return false;
	}
	report_init(r);
	for (size_t i = 0; i < ARRAY_SIZE(report_texts); i++) {
		if (!get_text_field(root, &report_texts[i], r, error))
			return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(report_ints); i++) {
		if (!get_int_field(root, &report_ints[i], r, error))
			return false;
	}
	return get_module(root, &r->module, error) && check_whole(r, error);
}

/**
 * report_decode() - read a report out of a line
 * @tok: from json_reader_new(JSON_DEPTH_MAX)
 * @line: the line, of any kind
 * @len: its length
 * @r: set on success, undefined otherwise
 * @error: REPORT_ERROR_MAX bytes, set on failure
 *
 * Return: true when the line is a valid report.
 */
bool report_decode(struct json_tokener *tok, const char *line, size_t len, struct report *r,
		   char *error)
{
	struct json_object *root = json_read(tok, line, len, error);
	bool ok;

	if (!root)
		return false;
	ok = report_from_json(root, r, error);
	json_object_put(root);
	return ok;
}
