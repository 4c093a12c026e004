// SPDX-License-Identifier: GPL-2.0
#include "test.h"

#include <json-c/json.h>

#include "line.h"

static struct json_tokener *tok;

static int setup(void **state)
{
	(void)state;
	tok = json_reader_new(JSON_DEPTH_MAX);
	return !tok;
}

static int teardown(void **state)
{
	(void)state;
	json_tokener_free(tok);
	return 0;
}

static bool decode(const char *text, struct report *r)
{
	char error[REPORT_ERROR_MAX] = "";
	bool ok = report_decode(tok, text, strlen(text), r, error);

	assert_int_equal(ok, !*error);
	return ok;
}

static void round_trip_of(const struct report *r)
{
	struct buf text = BUF_INIT(LINE_BYTES_MAX);
	struct report back;

	memset(&back, 0xa5, sizeof(back));
	report_encode(r, &text);
	assert_false(text.failed);
	assert_true(decode(text.data, &back));
	/* The module's own "present" leaves padding behind it: compare what is encoded, too. */
	assert_memory_equal(r, &back, offsetof(struct report, module));
	assert_int_equal(r->module.present, back.module.present);
	assert_memory_equal(r->module.version, back.module.version,
			    offsetof(struct report_module, gate) -
			    offsetof(struct report_module, version));
	assert_memory_equal(r->module.stats, back.module.stats, sizeof(r->module.stats));
	assert_int_equal(r->module.gate_steal_permille, back.module.gate_steal_permille);
	buf_free(&text);
}

static void round_trip(void **state)
{
	struct report r;

	(void)state;
	test_report(&r);
	round_trip_of(&r);
	/* All that may be unknown is. */
	r.interval_ms = REPORT_UNKNOWN;
	r.used_mcpu = REPORT_UNKNOWN;
	r.steal_mcpu = REPORT_UNKNOWN;
	r.demand_mcpu = REPORT_UNKNOWN;
	r.steal_max_mcpu = REPORT_UNKNOWN;
	r.load1_centi = REPORT_UNKNOWN;
	r.psi_avg10_centi = REPORT_UNKNOWN;
	r.psi_total_us = REPORT_UNKNOWN;
	memset(r.host, 0, sizeof(r.host));
	r.module.stats[MODULE_STAT_sent] = REPORT_UNKNOWN;
	r.module.stats[MODULE_STAT_failed] = INT64_MAX;
	round_trip_of(&r);
	memset(&r.module, 0, sizeof(r.module));
	r.module.gate_steal_permille = REPORT_UNKNOWN;
	for (int i = 0; i < MODULE_STAT_NR; i++)
		r.module.stats[i] = REPORT_UNKNOWN;
	round_trip_of(&r);
}

/* Every string as long as it can be and all of it escaped, every number at its widest. */
static void longest_fits(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	struct report r;

	(void)state;
	test_report(&r);
#define FILL(field) memset(field, '\\', sizeof(field) - 1)
	FILL(r.boot_id);
	FILL(r.host);
	FILL(r.agent);
	FILL(r.group);
	FILL(r.module.version);
	FILL(r.module.hypervisor);
	FILL(r.module.features);
	FILL(r.module.flatten);
	FILL(r.module.variant);
	FILL(r.module.topology);
	FILL(r.module.reason);
	FILL(r.module.hints_mode);
	FILL(r.module.hints_state);
	FILL(r.module.gate);
	for (int64_t *p = &r.seq; p <= &r.dropped; p++)
		*p = INT64_C(1) << 53;
	for (int i = 0; i < MODULE_STAT_NR; i++)
		r.module.stats[i] = INT64_MAX;
	report_encode(&r, &text);
	assert_false(text.failed);
	assert_in_range(text.len, 2000, LINE_BYTES_MAX - 1);
	buf_free(&text);
}

/* Replaces the value of @key in a good report. */
static void mutate(char *dst, size_t size, const char *key, const char *value)
{
	struct buf text = BUF_INIT(LINE_BYTES_MAX);
	struct report r;
	char *at, *end;
	char pattern[64];

	test_report(&r);
	report_encode(&r, &text);
	snprintf(pattern, sizeof(pattern), "\"%s\":", key);
	at = strstr(text.data, pattern);
	assert_non_null(at);
	at += strlen(pattern);
	end = at + strcspn(at, *at == '{' ? "" : ",}");
	if (*at == '{')
		end = at + strlen(at) - 1;
	snprintf(dst, size, "%.*s%s%s", (int)(at - text.data), text.data, value, end);
	buf_free(&text);
}

static void rejects(void **state)
{
	static const struct {
		const char *key;
		const char *value;
	} bad[] = {
		{ "v", "2" }, { "v", "\"1\"" }, { "v", "null" }, { "v", "1.0" },
		{ "type", "\"poll\"" }, { "type", "1" }, { "type", "null" },
		{ "boot_id", "null" }, { "boot_id", "\"\"" }, { "boot_id", "\"a\\u0000b\"" },
		{ "boot_id", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"" },
		{ "boot_id", "\"a\\u001b[31m\"" }, { "boot_id", "\"\xc3\xa4\"" },
		{ "host", "5" }, { "host", "\"a\\nb\"" }, { "host", "[]" },
		{ "agent", "\"0123456789abcdef\"" },
		{ "group", "5" }, { "group", "\"\"" }, { "group", "\"a\\tb\"" },
		{ "seq", "0" }, { "seq", "-1" }, { "seq", "1.5" }, { "seq", "1e3" },
		{ "seq", "NaN" }, { "seq", "Infinity" }, { "seq", "-Infinity" }, { "seq", "null" },
		{ "seq", "\"7\"" }, { "seq", "true" }, { "seq", "9007199254740993" },
		{ "seq", "9223372036854775808" }, { "seq", "18446744073709551616" },
		{ "seq", "99999999999999999999999999999" }, { "seq", "07" }, { "seq", "+7" },
		{ "seq", "0x7" }, { "seq", "[7]" }, { "seq", "{}" }, { "seq", "" },
		{ "seq", "-9223372036854775809" },
		{ "period_ms", "99" }, { "period_ms", "60001" }, { "heartbeat_ms", "999" },
		{ "heartbeat_ms", "3600001" },
		{ "vcpus_online", "0" }, { "vcpus_online", "8193" },
		{ "interval_ms", "0" }, { "interval_ms", "null" }, { "used_mcpu", "null" },
		{ "used_mcpu", "-5" }, { "used_mcpu", "16384001" },
		{ "demand_mcpu", "1641" }, { "psi_avg10_centi", "10001" },
		{ "runq", "null" }, { "dropped", "-1" },
		{ "module", "[]" }, { "module", "{}" }, { "module", "1" },
		{ "gate_steal_permille", "1001" }, { "stats", "null}" }, { "stats", "{}}" },
		{ "sent", "-1" }, { "sent", "\"1\"" }, { "sent", "9223372036854775808" },
	};
	char text[LINE_BYTES_MAX];
	struct report r;

	(void)state;
	mutate(text, sizeof(text), "seq", "8");
	assert_true(decode(text, &r));
	assert_int_equal(r.seq, 8);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		mutate(text, sizeof(text), bad[i].key, bad[i].value);
		if (decode(text, &r))
			fail_msg("accepted: %s = %s", bad[i].key, bad[i].value);
	}
}

static void rejects_shapes(void **state)
{
	static const char *const bad[] = {
		"{}", "[]", "null", "1", "\"x\"", "{", "{\"v\":1", "{\"v\":1}", "x", " ",
		"{\"v\":1,\"type\":\"report\"}", "{\"v\":1}{\"v\":1}",
		"{\"v\":{\"v\":{\"v\":{\"v\":{\"v\":1}}}}}", "[[[[[[[[[[[[[[[[[[[[",
		"{'v':1}", "{\"v\":1,}", "// x", "{\"v\":1,\"type\":\"report\",\"host\":\"\xff\"}",
	};
	char error[REPORT_ERROR_MAX];
	struct buf text = BUF_INIT(LINE_BYTES_MAX);
	struct report r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (decode(bad[i], &r))
			fail_msg("accepted: %s", bad[i]);
	}
	/* A good report with a tail, with a NUL, and every prefix of it. */
	test_report(&r);
	report_encode(&r, &text);
	for (size_t n = 0; n < text.len; n++)
		assert_false(report_decode(tok, text.data, n, &r, error));
	assert_true(report_decode(tok, text.data, text.len, &r, error));
	assert_false(report_decode(tok, text.data, text.len + 1, &r, error));
	buf_puts(&text, "x");
	assert_false(decode(text.data, &r));
	buf_free(&text);
}

static void unknown_keys(void **state)
{
	struct buf text = BUF_INIT(LINE_BYTES_MAX);
	struct report r, back;

	(void)state;
	test_report(&r);
	report_encode(&r, &text);
	text.data[--text.len] = '\0';
	buf_puts(&text, ",\"new\":{\"a\":[1,2]},\"more\":null}");
	assert_true(decode(text.data, &back));
	assert_int_equal(back.seq, r.seq);
	buf_free(&text);
}

/* Added to version 1 after others: a report that has no group is as one with null. */
static void no_group(void **state)
{
	struct buf text = BUF_INIT(LINE_BYTES_MAX);
	struct report r, back;
	char *at;

	(void)state;
	test_report(&r);
	report_encode(&r, &text);
	at = strstr(text.data, "\"group\":null,");
	assert_non_null(at);
	memmove(at, at + 13, strlen(at + 13) + 1);
	assert_null(strstr(text.data, "group"));
	assert_true(decode(text.data, &back));
	assert_string_equal(back.group, "");
	strcpy(r.group, "web");
	round_trip_of(&r);
	memset(r.group, 'g', sizeof(r.group) - 1);
	round_trip_of(&r);
	buf_free(&text);
}

/* What can be spared goes in its order, and nothing else. */
static void within(void **state)
{
	struct buf text = BUF_INIT(LINE_BYTES_MAX), full = BUF_INIT(LINE_BYTES_MAX);
	struct report r, back;

	(void)state;
	test_report(&r);
	memset(r.module.features, 'f', 200);
	memset(r.module.reason, 'r', 100);
	report_encode(&r, &full);
	assert_true(report_encode_within(&r, full.len, &text));
	assert_string_equal(text.data, full.data);
	assert_true(report_encode_within(&r, full.len - 1, &text));
	assert_true(decode(text.data, &back));
	assert_string_equal(back.module.features, "");
	assert_int_equal(strlen(back.module.reason), 100);
	assert_string_equal(back.host, r.host);
	assert_true(report_encode_within(&r, full.len - 250, &text));
	assert_true(decode(text.data, &back));
	assert_string_equal(back.module.reason, "");
	assert_string_equal(back.module.topology, r.module.topology);
	assert_false(report_encode_within(&r, 200, &text));
	assert_int_equal(strlen(r.module.features), 200);
	buf_free(&text);
	buf_free(&full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip), cmocka_unit_test(longest_fits),
		cmocka_unit_test(rejects), cmocka_unit_test(rejects_shapes),
		cmocka_unit_test(unknown_keys), cmocka_unit_test(no_group),
		cmocka_unit_test(within),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
