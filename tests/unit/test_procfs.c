// SPDX-License-Identifier: GPL-2.0
#include "test.h"

#include "procfs.h"

static bool stat_of(const char *text, struct proc_stat *ps)
{
	return proc_stat_parse(text, strlen(text), ps);
}

static void stat_good(void **state)
{
	struct proc_stat ps = { 0 };

	(void)state;
	assert_true(stat_of("cpu  10 1 2 30 4 5 6 7 8 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
			    "cpu2 2 2 2 2 2 2 2 2 2 2\nintr 9 9\nprocs_running 4\n", &ps));
	assert_int_equal(ps.total.used, 10 + 1 + 2 + 5 + 6);
	assert_int_equal(ps.total.idle, 30);
	assert_int_equal(ps.total.iowait, 4);
	assert_int_equal(ps.total.steal, 7);
	assert_int_equal(ps.procs_running, 4);
	assert_int_equal(ps.nr_cpus, 3);
	assert_true(ps.cpus[0].present);
	assert_false(ps.cpus[1].present);
	assert_int_equal(ps.cpus[2].used, 10);
	/* Parsed into once more, nothing of the first is left. */
	assert_true(stat_of("cpu 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1\nprocs_running 1", &ps));
	assert_int_equal(ps.nr_cpus, 1);
	proc_stat_free(&ps);
}

static void stat_odd(void **state)
{
	static const char *const odd[] = {
		"",
		"cpu",
		"cpu \n",
		"cpu 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu0 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1\n",
		"cpu 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 -1\ncpu0 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 1x\ncpu0 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 1\ncpu 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 1\ncpu8192 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 1\ncpu99999999999999999999 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 1\ncpux 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 1\ncpu0\t1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 18446744073709551616\ncpu0 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 18446744073709551615\ncpu0 1 1 1 1 1 1 1 1\nprocs_running 1\n",
		"cpu 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1\nprocs_running 1 \n",
		"cpu 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1\nprocs_running\n",
		"cpu 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1\nprocs_running 1\nprocs_running 1\n",
	};
	struct proc_stat ps = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		if (stat_of(odd[i], &ps))
			fail_msg("accepted: %s", odd[i]);
	}
	proc_stat_free(&ps);
}

/* Every prefix of a good file: no crash, and never good before procs_running is whole. */
static void stat_cut(void **state)
{
	static const char text[] = "cpu  10 1 2 30 4 5 6 7 8 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
				   "procs_running 4\n";
	struct proc_stat ps = { 0 };

	(void)state;
	for (size_t n = 0; n < sizeof(text) - 3; n++) {
		char *copy = malloc(n + 1);

		assert_non_null(copy);
		memcpy(copy, text, n);
		assert_false(proc_stat_parse(copy, n, &ps));
		free(copy);
	}
	proc_stat_free(&ps);
}

static void loadavg(void **state)
{
	uint64_t load[3];

	(void)state;
	assert_true(proc_loadavg_parse("1.05 0.50 12.25 3/200 1234\n", 27, load));
	assert_int_equal(load[0], 105);
	assert_int_equal(load[1], 50);
	assert_int_equal(load[2], 1225);
	assert_false(proc_loadavg_parse("1.05 0.50", 9, load));
	assert_false(proc_loadavg_parse("1.5 0.50 1.00 ", 14, load));
	assert_false(proc_loadavg_parse("1.055 0.50 1.00 ", 16, load));
	assert_false(proc_loadavg_parse("-1.05 0.50 1.00 ", 16, load));
	assert_false(proc_loadavg_parse("", 0, load));
}

static void psi(void **state)
{
	static const char *const odd[] = {
		"", "some", "full avg10=1.09 avg60=2.28 avg300=4.83 total=5\n",
		"some avg10=101.09 avg60=2.28 avg300=4.83 total=5\n",
		"some avg10=nan avg60=2.28 avg300=4.83 total=5\n",
		"some avg10=1.09 avg60=2.28 avg300=4.83 total=\n",
		"some avg10=1.09 avg60=2.28 avg300=4.83 total=5",
	};
	static const char good[] = "some avg10=1.09 avg60=2.28 avg300=4.83 total=31887686\nfull";
	struct proc_psi p;

	(void)state;
	assert_true(proc_psi_parse(good, strlen(good), &p));
	assert_int_equal(p.avg10_centi, 109);
	assert_int_equal(p.total_us, 31887686);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		assert_false(proc_psi_parse(odd[i], strlen(odd[i]), &p));
}

static void uptime(void **state)
{
	uint64_t ms;

	(void)state;
	assert_true(proc_uptime_parse("100.53 3.00\n", 12, &ms));
	assert_int_equal(ms, 100530);
	assert_false(proc_uptime_parse("100 3.00\n", 9, &ms));
	assert_false(proc_uptime_parse("18446744073709551615.00 1.00\n", 29, &ms));
}

static void cpulist(void **state)
{
	static const struct {
		const char *text;
		int count;
	} lists[] = {
		{ "0", 1 }, { "0-3\n", 4 }, { "0-1,4-5,8\n", 5 }, { "\n", 0 }, { "", 0 },
		{ "3-1\n", -1 }, { "0,0\n", -1 }, { "1,0\n", -1 }, { "0-\n", -1 }, { ",\n", -1 },
		{ "0,\n", -1 }, { "0-8192\n", -1 }, { "0 \n", -1 }, { "a\n", -1 }, { "-1\n", -1 },
	};
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		bool ok = proc_cpulist_parse(lists[i].text, strlen(lists[i].text), &n);

		assert_int_equal(ok, lists[i].count >= 0);
		if (ok)
			assert_int_equal(n, lists[i].count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_good), cmocka_unit_test(stat_odd),
		cmocka_unit_test(stat_cut), cmocka_unit_test(loadavg), cmocka_unit_test(psi),
		cmocka_unit_test(uptime), cmocka_unit_test(cpulist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
