// SPDX-License-Identifier: GPL-2.0
#include "test.h"

#include "sample.h"

static int setup(void **state)
{
	*state = test_dir();
	test_root(*state, 100, 500, 70);
	return 0;
}

static int teardown(void **state)
{
	test_rm(*state);
	return 0;
}

static void two_samples(void **state)
{
	struct sampler s;
	struct report r;

	assert_true(sampler_open(&s, *state));
	assert_true(sampler_take(&s, &r));
	assert_int_equal(r.seq, 1);
	assert_int_equal(r.uptime_ms, 100500);
	assert_int_equal(r.interval_ms, REPORT_UNKNOWN);
	assert_int_equal(r.used_mcpu, REPORT_UNKNOWN);
	assert_int_equal(r.used_ms, 5000);
	assert_int_equal(r.steal_ms, 700);
	assert_int_equal(r.idle_ms, 5000);
	assert_int_equal(r.iowait_ms, 300);
	assert_int_equal(r.vcpus_online, 2);
	assert_int_equal(r.vcpus_present, 4);
	assert_int_equal(r.runq, 3);
	assert_int_equal(r.load1_centi, 105);
	assert_int_equal(r.psi_avg10_centi, 109);
	assert_int_equal(r.psi_total_us, 31887686);
	assert_string_equal(r.boot_id, "a58921af-d380-4323-a209-0406c16e2cc3");
	assert_string_equal(r.host, "guest-1");
	assert_false(r.module.present);

	/* Two seconds later: 120 ticks used, 40 stolen, all from cpu0. */
	test_root(*state, 102, 620, 110);
	assert_true(sampler_take(&s, &r));
	assert_int_equal(r.seq, 2);
	assert_int_equal(r.interval_ms, 2000);
	assert_int_equal(r.used_mcpu, 600);
	assert_int_equal(r.steal_mcpu, 200);
	assert_int_equal(r.demand_mcpu, 800);
	assert_int_equal(r.steal_max_mcpu, 200);

	/* No time has passed: no rates, rather than a division by zero. */
	assert_true(sampler_take(&s, &r));
	assert_int_equal(r.interval_ms, REPORT_UNKNOWN);
	sampler_close(&s);
}

static void counters_back(void **state)
{
	struct sampler s;
	struct report r;

	assert_true(sampler_open(&s, *state));
	assert_true(sampler_take(&s, &r));
	test_root(*state, 101, 400, 60);
	assert_true(sampler_take(&s, &r));
	assert_int_equal(r.used_mcpu, 0);
	assert_int_equal(r.steal_mcpu, 0);
	assert_int_equal(r.demand_mcpu, 0);
	sampler_close(&s);
}

/* cpu0, which all steal was from, goes offline: the total still counts. */
static void cpu_vanishes(void **state)
{
	struct sampler s;
	struct report r;

	assert_true(sampler_open(&s, *state));
	assert_true(sampler_take(&s, &r));
	test_root(*state, 101, 600, 90);
	test_write(*state, "proc/stat", "cpu  600 0 0 500 30 0 0 90 0 0\n"
		   "cpu1 0 0 0 200 10 0 0 5 0 0\nprocs_running 1\n");
	assert_true(sampler_take(&s, &r));
	assert_int_equal(r.used_mcpu, 1000);
	assert_int_equal(r.steal_mcpu, 200);
	assert_int_equal(r.steal_max_mcpu, 50);
	/* And back again. */
	test_root(*state, 102, 600, 95);
	assert_true(sampler_take(&s, &r));
	assert_int_equal(r.steal_mcpu, 50);
	assert_int_equal(r.steal_max_mcpu, 0);
	sampler_close(&s);
}

static void huge_counters(void **state)
{
	struct proc_stat a = { 0 }, b = { 0 };
	struct report r;

	(void)state;
	b.total.used = UINT64_MAX;
	b.total.steal = UINT64_MAX;
	report_init(&r);
	sample_rates(&a, &b, 100, 1, &r);
	assert_int_equal(r.used_mcpu, 16384000);
	assert_int_equal(r.demand_mcpu, 2 * 16384000);
}

static void missing_files(void **state)
{
	static const char *const needed[] = {
		"proc/stat", "proc/uptime", "sys/devices/system/cpu/online",
		"sys/devices/system/cpu/present", "proc/sys/kernel/random/boot_id",
	};
	struct sampler s;
	struct report r;

	assert_true(sampler_open(&s, *state));
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		test_unlink(*state, needed[i]);
		assert_false(sampler_take(&s, &r));
		assert_string_equal(s.broken, needed[i]);
		test_root(*state, 100, 500, 70);
		assert_true(sampler_take(&s, &r));
		assert_null(s.broken);
	}
	test_unlink(*state, "proc/pressure/cpu");
	test_unlink(*state, "proc/loadavg");
	test_unlink(*state, "proc/sys/kernel/hostname");
	assert_true(sampler_take(&s, &r));
	assert_int_equal(r.psi_avg10_centi, REPORT_UNKNOWN);
	assert_int_equal(r.psi_total_us, REPORT_UNKNOWN);
	assert_int_equal(r.load1_centi, REPORT_UNKNOWN);
	assert_string_equal(r.host, "");
	sampler_close(&s);
}

static void odd_files(void **state)
{
	struct sampler s;
	struct report r;

	assert_true(sampler_open(&s, *state));
	test_write_n(*state, "proc/stat", "cpu \0", 5);
	assert_false(sampler_take(&s, &r));
	test_write(*state, "proc/stat", "");
	assert_false(sampler_take(&s, &r));
	test_root(*state, 100, 1, 1);
	test_write(*state, "proc/pressure/cpu", "some avg10=x\n");
	test_write(*state, "proc/sys/kernel/hostname", "ev\x1b[31mil\n");
	assert_true(sampler_take(&s, &r));
	assert_int_equal(r.psi_avg10_centi, REPORT_UNKNOWN);
	assert_string_equal(r.host, "ev?[31mil");
	sampler_close(&s);
}

static void module_comes_and_goes(void **state)
{
	struct sampler s;
	struct report r;

	assert_true(sampler_open(&s, *state));
	assert_true(sampler_take(&s, &r));
	assert_false(r.module.present);
	test_module(*state);
	assert_true(sampler_take(&s, &r));
	assert_true(r.module.present);
	assert_string_equal(r.module.version, "0.1.0");
	assert_string_equal(r.module.hypervisor, "kvm");
	assert_string_equal(r.module.features, "steal-time sched-yield");
	assert_string_equal(r.module.flatten, "auto");
	assert_string_equal(r.module.variant, "llc");
	assert_string_equal(r.module.topology, "flat");
	assert_string_equal(r.module.reason, "steal was seen");
	assert_string_equal(r.module.hints_mode, "auto");
	assert_string_equal(r.module.hints_state, "on");
	assert_string_equal(r.module.gate, "open");
	assert_int_equal(r.module.gate_steal_permille, 123);
	for (int i = 0; i < MODULE_STAT_NR; i++)
		assert_int_equal(r.module.stats[i], 1000 + i);

	/* Half gone, and odd values: unknown, one by one. */
	test_unlink(*state, "sys/kernel/tandem/hints/mode");
	test_unlink(*state, "sys/kernel/tandem/stats/sent");
	test_write(*state, "sys/kernel/tandem/stats/failed", "-1\n");
	test_write(*state, "sys/kernel/tandem/gate/steal_permille", "1001\n");
	assert_true(sampler_take(&s, &r));
	assert_true(r.module.present);
	assert_string_equal(r.module.hints_mode, "");
	assert_int_equal(r.module.stats[MODULE_STAT_sent], REPORT_UNKNOWN);
	assert_int_equal(r.module.stats[MODULE_STAT_failed], REPORT_UNKNOWN);
	assert_int_equal(r.module.gate_steal_permille, REPORT_UNKNOWN);

	test_unlink(*state, "sys/kernel/tandem/version");
	assert_true(sampler_take(&s, &r));
	assert_false(r.module.present);
	sampler_close(&s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(two_samples), TEST(counters_back), TEST(cpu_vanishes), TEST(huge_counters),
		TEST(missing_files), TEST(odd_files), TEST(module_comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
