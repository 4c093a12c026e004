// SPDX-License-Identifier: GPL-2.0
#include "test.h"

#include "rate.h"

static void burst_and_refill(void **state)
{
	struct rate_bucket rb;
	int taken = 0;

	(void)state;
	rate_init(&rb, 10, 10, 5000);
	while (rate_take(&rb, 1, 5000))
		taken++;
	assert_int_equal(taken, 10);
	assert_int_equal(rate_wait_ms(&rb, 5000), 100);
	assert_false(rate_take(&rb, 1, 5099));
	assert_int_equal(rate_wait_ms(&rb, 5099), 1);
	assert_true(rate_take(&rb, 1, 5100));
	assert_false(rate_take(&rb, 1, 5100));
	/* Never more than the burst, however long it was quiet. */
	taken = 0;
	while (rate_take(&rb, 1, INT64_MAX / 2))
		taken++;
	assert_int_equal(taken, 10);
}

static void long_run(void **state)
{
	struct rate_bucket rb;
	int taken = 0;

	(void)state;
	rate_init(&rb, 10, 10, 0);
	for (int64_t ms = 0; ms < 60000; ms++)
		taken += rate_take(&rb, 1, ms);
	assert_in_range(taken, 600, 610);
}

static void debt(void **state)
{
	struct rate_bucket rb;

	(void)state;
	rate_init(&rb, 1000, 1000, 0);
	rate_charge(&rb, 5000, 0);
	assert_int_equal(rate_wait_ms(&rb, 0), 4001);
	assert_int_equal(rate_wait_ms(&rb, 4000), 1);
	assert_int_equal(rate_wait_ms(&rb, 4001), 0);
}

static void clock_back(void **state)
{
	struct rate_bucket rb;

	(void)state;
	rate_init(&rb, 1, 1, 1000);
	assert_true(rate_take(&rb, 1, 1000));
	assert_false(rate_take(&rb, 1, 0));
	assert_true(rate_take(&rb, 1, 2000));
}

static void log_limit(void **state)
{
	struct log_limit limit = LOG_LIMIT_INIT(1000);
	unsigned long missed = 0;

	(void)state;
	assert_true(log_allowed(&limit, 10, &missed));
	assert_int_equal(missed, 0);
	for (int i = 0; i < 5; i++)
		assert_false(log_allowed(&limit, 1009, &missed));
	assert_true(log_allowed(&limit, 1010, &missed));
	assert_int_equal(missed, 5);
	assert_true(log_allowed(&limit, 5000, &missed));
	assert_int_equal(missed, 0);
}

static void log_burst(void **state)
{
	struct log_limit limit = { .interval_ms = 1000, .burst = 3 };
	unsigned long missed = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_true(log_allowed(&limit, 10, &missed));
	assert_false(log_allowed(&limit, 10, &missed));
	assert_false(log_allowed(&limit, 1009, &missed));
	assert_true(log_allowed(&limit, 1010, &missed));
	assert_int_equal(missed, 2);
	assert_false(log_allowed(&limit, 1010, &missed));
	/* Never more at once than the burst, however long it was quiet. */
	for (int i = 0; i < 4; i++)
		assert_true(log_allowed(&limit, 1000000, &missed));
	assert_false(log_allowed(&limit, 1000000, &missed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(burst_and_refill), cmocka_unit_test(long_run),
		cmocka_unit_test(debt), cmocka_unit_test(clock_back), cmocka_unit_test(log_limit),
		cmocka_unit_test(log_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
