// SPDX-License-Identifier: GPL-2.0
#include "test.h"

#include "guest.h"
#include "status.h"
#include "table.h"

static void aligned(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct table t;

	(void)state;
	table_init(&t, "lrl");
	for (int i = 0; i < 3; i++)
		table_cell(&t, "%s", ((const char *[]){ "A", "NUMBER", "C" })[i]);
	table_cell(&t, "long name");
	table_cell(&t, "%d", 7);
	table_cell(&t, "x\x1b[2J\n\xc2\x9b");
	table_cell(&t, "a row that is not full");
	table_render(&t, &out);
	assert_string_equal(out.data,
			    "A                       NUMBER  C\n"
			    "long name                    7  x\\x1b[2J\\x0a\\xc2\\x9b\n");
	table_free(&t);
	buf_free(&out);
}

static void guest_in(struct guest_view *g, const char *name)
{
	memset(g, 0, sizeof(*g));
	strcpy(g->name, name);
	g->connected = true;
	g->reported = true;
	g->report_ms = 100000;
	g->hints_per_s_milli = 2500;
	test_report(&g->report);
}

/* Six guests in every state. */
static size_t guests_in(struct guest_view *g)
{
	guest_in(&g[0], "good");
	guest_in(&g[1], "silent");
	g[1].report_ms = 100000 - 40000;
	guest_in(&g[2], "waiting");
	g[2].reported = false;
	g[2].since_ms = 98000;
	guest_in(&g[3], "gone");
	g[3].connected = false;
	g[3].reported = false;
	g[3].since_ms = 100000 - 7200000;
	guest_in(&g[4], "bare");
	g[4].report.module.present = false;
	g[4].report.interval_ms = REPORT_UNKNOWN;
	g[4].report.used_mcpu = REPORT_UNKNOWN;
	g[4].report.steal_mcpu = REPORT_UNKNOWN;
	g[4].report.demand_mcpu = REPORT_UNKNOWN;
	g[4].report.steal_max_mcpu = REPORT_UNKNOWN;
	g[4].report.load1_centi = REPORT_UNKNOWN;
	g[4].report.vcpus_present = 2;
	g[4].hints_per_s_milli = REPORT_UNKNOWN;
	guest_in(&g[5], "idle");
	g[5].report.used_mcpu = 0;
	g[5].report.steal_mcpu = 0;
	g[5].report.demand_mcpu = 0;
	strcpy(g[5].report.module.topology, "unsupported: level XYZ");
	return 6;
}

static const char expected[] =
	"NAME     VCPUS   LOAD  USED  DEMAND  STEAL%  HINTS/s  TOPOLOGY     AGE\n"
	"                tasks  pCPU    pCPU\n"
	"good       2/4   1.05  1.23    1.64    25.0      2.5  flat         0s\n"
	"silent     2/4   1.05  1.23    1.64    25.0      2.5  flat         silent 40s\n"
	"waiting      -      -     -       -       -        -  -            waiting 2s\n"
	"gone         -      -     -       -       -        -  -            gone 120m\n"
	"bare         2      -     -       -       -        -  -            0s\n"
	"idle       2/4   1.05  0.00    0.00     0.0      2.5  unsupported  0s\n";

static void guests(void **state)
{
	struct buf out = BUF_INIT(65536);
	struct guest_view *g = calloc(6, sizeof(*g));
	size_t n = guests_in(g);
	struct table t;

	(void)state;
	guests_table_begin(&t);
	for (size_t i = 0; i < n; i++)
		guests_table_row(&t, &g[i], 100000);
	table_render(&t, &out);
	assert_string_equal(out.data, expected);
	table_free(&t);
	buf_free(&out);
	free(g);
}

/* What tandemctl makes of groupd's answer is the table that groupd prints. */
static void guests_by_json(void **state)
{
	struct buf json = BUF_INIT(65536), out = BUF_INIT(65536);
	struct guest_view *g = calloc(6, sizeof(*g));
	size_t n = guests_in(g);
	char error[REPORT_ERROR_MAX];
	bool first = true;

	(void)state;
	guests_open(&json);
	for (size_t i = 0; i < n; i++) {
		guests_next(&json, &first);
		guest_encode(&g[i], 100000, &json);
	}
	guests_close(&json);
	assert_true(guests_table_from_json(json.data, json.len, &out, error));
	assert_string_equal(out.data, expected);
	for (size_t i = 0; i < json.len; i++)
		assert_false(guests_table_from_json(json.data, i, &out, error));
	buf_free(&json);
	buf_free(&out);
	free(g);
}

static void hint_rate(void **state)
{
	struct report a, b;

	(void)state;
	test_report(&a);
	b = a;
	assert_int_equal(guest_hints_rate(&a, &b, 77), 77);
	b.uptime_ms += 4000;
	assert_int_equal(guest_hints_rate(&a, &b, 77), 0);
	b.module.stats[MODULE_STAT_sent] += 10;
	assert_int_equal(guest_hints_rate(&a, &b, 77), 2500);
	b.module.stats[MODULE_STAT_sent] = INT64_MAX;
	assert_int_equal(guest_hints_rate(&a, &b, 77), REPORT_UNKNOWN);
	b.module.stats[MODULE_STAT_sent] = 0;
	assert_int_equal(guest_hints_rate(&a, &b, 77), REPORT_UNKNOWN);
	b = a;
	b.uptime_ms -= 1;
	assert_int_equal(guest_hints_rate(&a, &b, 77), REPORT_UNKNOWN);
	b = a;
	b.boot_id[0] = 'b';
	assert_int_equal(guest_hints_rate(&a, &b, 77), REPORT_UNKNOWN);
}

static void status(void **state)
{
	struct buf out = BUF_INIT(65536);
	struct report r;

	(void)state;
	test_report(&r);
	status_text(&r, &out);
	assert_non_null(strstr(out.data, "\nhypervisor      kvm\n"));
	assert_non_null(strstr(out.data,
				       "\nsteal           0.41 pCPU, 25% of the demand, 700 ms since boot\n"));
	assert_non_null(strstr(out.data, "\ngate            open, steal 120 permille\n"));
	assert_non_null(strstr(out.data, "\n  sent          113\n"));
	assert_non_null(strstr(out.data, "\n  budget        112\n"));
	buf_reset(&out);
	r.module.present = false;
	status_text(&r, &out);
	assert_non_null(strstr(out.data, "\nmodule          not loaded"));
	assert_null(strstr(out.data, "gate"));
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aligned), cmocka_unit_test(guests),
		cmocka_unit_test(guests_by_json), cmocka_unit_test(hint_rate),
		cmocka_unit_test(status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
