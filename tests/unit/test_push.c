// SPDX-License-Identifier: GPL-2.0
#include "test.h"

#include "push.h"

/* What a change of one field, by @by, with a threshold of 50 permille leads to. */
static enum push_reason after(size_t offset, int64_t by)
{
	struct push_state ps = { 0 };
	struct report r;

	test_report(&r);
	push_sent(&ps, &r, 1000);
	*(int64_t *)(void *)((char *)&r + offset) += by;
	return push_due(&ps, &r, 2000, 50);
}

#define AFTER(field, by) after(offsetof(struct report, field), by)

static void threshold(void **state)
{
	(void)state;
	/* 50 permille of two vCPUs are 100 thousandths; only more than that counts. */
	assert_int_equal(AFTER(used_mcpu, 100), PUSH_NOT);
	assert_int_equal(AFTER(used_mcpu, -100), PUSH_NOT);
	assert_int_equal(AFTER(used_mcpu, 101), PUSH_CHANGE);
	assert_int_equal(AFTER(used_mcpu, -101), PUSH_CHANGE);
	assert_int_equal(AFTER(steal_mcpu, 100), PUSH_NOT);
	assert_int_equal(AFTER(steal_mcpu, 101), PUSH_CHANGE);
	assert_int_equal(AFTER(demand_mcpu, 101), PUSH_CHANGE);
	assert_int_equal(AFTER(psi_avg10_centi, 500), PUSH_NOT);
	assert_int_equal(AFTER(psi_avg10_centi, 501), PUSH_CHANGE);
	assert_int_equal(AFTER(vcpus_online, 1), PUSH_CHANGE);
	assert_int_equal(AFTER(vcpus_present, 1), PUSH_CHANGE);
	/* Counters and what follows the load are no reason. */
	assert_int_equal(AFTER(used_ms, 1000000), PUSH_NOT);
	assert_int_equal(AFTER(runq, 100), PUSH_NOT);
	assert_int_equal(AFTER(module.stats[MODULE_STAT_sent], 100000), PUSH_NOT);
}

/* The host shall see at once that it was obeyed. */
static void obeyed(void **state)
{
	struct push_state ps = { 0 };
	struct report r;

	(void)state;
	assert_int_equal(AFTER(period_ms, 1), PUSH_CHANGE);
	test_report(&r);
	push_sent(&ps, &r, 0);
	strcpy(r.group, "web");
	assert_int_equal(push_due(&ps, &r, 1, 1000), PUSH_CHANGE);
	push_sent(&ps, &r, 0);
	assert_int_equal(push_due(&ps, &r, 1, 1000), PUSH_NOT);
}

static void becomes_known(void **state)
{
	struct push_state ps = { 0 };
	struct report r;

	(void)state;
	test_report(&r);
	r.used_mcpu = REPORT_UNKNOWN;
	push_sent(&ps, &r, 0);
	assert_int_equal(push_due(&ps, &r, 1, 1000), PUSH_NOT);
	r.used_mcpu = 0;
	assert_int_equal(push_due(&ps, &r, 1, 1000), PUSH_CHANGE);
}

static void module_state(void **state)
{
	struct push_state ps = { 0 };
	struct report r;

	(void)state;
	test_report(&r);
	push_sent(&ps, &r, 0);
	strcpy(r.module.topology, "native");
	assert_int_equal(push_due(&ps, &r, 1, 1000), PUSH_CHANGE);
	push_sent(&ps, &r, 0);
	strcpy(r.module.gate, "closed");
	assert_int_equal(push_due(&ps, &r, 1, 1000), PUSH_CHANGE);
	push_sent(&ps, &r, 0);
	r.module.present = false;
	assert_int_equal(push_due(&ps, &r, 1, 1000), PUSH_CHANGE);
	push_sent(&ps, &r, 0);
	assert_int_equal(push_due(&ps, &r, 1, 1000), PUSH_NOT);
}

static void heartbeat(void **state)
{
	struct push_state ps = { 0 };
	struct report r;

	(void)state;
	test_report(&r);
	assert_int_equal(push_due(&ps, &r, 0, 50), PUSH_FIRST);
	push_sent(&ps, &r, 5000);
	assert_int_equal(push_due(&ps, &r, 5000, 50), PUSH_NOT);
	assert_int_equal(push_due(&ps, &r, 5000 + 9749, 50), PUSH_NOT);
	assert_int_equal(push_due(&ps, &r, 5000 + 9750, 50), PUSH_HEARTBEAT);
	/* Small steps add up against what the host has, not against the last sample. */
	for (int i = 0; i < 10; i++) {
		r.used_mcpu += 10;
		assert_int_equal(push_due(&ps, &r, 6000, 50), PUSH_NOT);
	}
	r.used_mcpu += 10;
	assert_int_equal(push_due(&ps, &r, 6000, 50), PUSH_CHANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threshold), cmocka_unit_test(obeyed), cmocka_unit_test(becomes_known),
		cmocka_unit_test(module_state), cmocka_unit_test(heartbeat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
