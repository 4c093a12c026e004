// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of guest-kmod/policy.c.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy.h"

#define US	TANDEM_NSEC_PER_USEC
#define MS	TANDEM_NSEC_PER_MSEC
#define SEC	TANDEM_NSEC_PER_SEC
#define WINDOW	(10 * MS)
#define START	(1000 * SEC)

/* No suppression but by what a test is about. */
static const struct tandem_policy generous = {
	.window_ns = WINDOW, .sustain = 1, .tries = 255, .budget = 1000000,
};

static struct tandem_waiter waiter;
static struct tandem_target target;

static int reset(void **state)
{
	(void)state;
	memset(&waiter, 0, sizeof(waiter));
	memset(&target, 0, sizeof(target));
	return 0;
}

static void expect(const struct tandem_policy *policy, u64 now,
		   enum tandem_verdict verdict)
{
	assert_string_equal(tandem_verdict_name(tandem_policy_event(policy, &waiter,
								    &target, now)),
			    tandem_verdict_name(verdict));
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(tandem_verdict_name(TANDEM_SEND), "send");
	assert_string_equal(tandem_verdict_name(TANDEM_SUPPRESSED_SUSTAIN),
			    "suppressed_sustain");
	assert_string_equal(tandem_verdict_name(TANDEM_SUPPRESSED_TRIES),
			    "suppressed_tries");
	assert_string_equal(tandem_verdict_name(TANDEM_SUPPRESSED_BUDGET),
			    "suppressed_budget");
	assert_string_equal(tandem_verdict_name((enum tandem_verdict)99),
			    "unknown");
}

static void test_defaults_within_bounds(void **state)
{
	(void)state;
	assert_in_range(TANDEM_WINDOW_US_DEF, TANDEM_WINDOW_US_MIN,
			TANDEM_WINDOW_US_MAX);
	assert_in_range(TANDEM_SUSTAIN_DEF, TANDEM_SUSTAIN_MIN,
			TANDEM_SUSTAIN_MAX);
	assert_in_range(TANDEM_TRIES_DEF, TANDEM_TRIES_MIN, TANDEM_TRIES_MAX);
	assert_in_range(TANDEM_BUDGET_DEF, TANDEM_BUDGET_MIN,
			TANDEM_BUDGET_MAX);
	assert_in_range(TANDEM_OPEN_PERMILLE_DEF, TANDEM_OPEN_PERMILLE_MIN,
			TANDEM_OPEN_PERMILLE_MAX);
	assert_in_range(TANDEM_HOLD_MS_DEF, TANDEM_HOLD_MS_MIN,
			TANDEM_HOLD_MS_MAX);
	assert_in_range(TANDEM_PERIOD_MS_DEF, TANDEM_PERIOD_MS_MIN,
			TANDEM_PERIOD_MS_MAX);
	assert_true(TANDEM_TRIES_MAX <= 255);
}

static void test_sustain_one_sends_first(void **state)
{
	(void)state;
	expect(&generous, START, TANDEM_SEND);
}

static void test_sustain_counts(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.sustain = 3;
	expect(&policy, START, TANDEM_SUPPRESSED_SUSTAIN);
	expect(&policy, START + 1, TANDEM_SUPPRESSED_SUSTAIN);
	expect(&policy, START + 2, TANDEM_SEND);
	expect(&policy, START + 3, TANDEM_SEND);
}

/* The window reaches from one event to the next, its end included. */
static void test_sustain_window_edge(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.sustain = 2;
	expect(&policy, START, TANDEM_SUPPRESSED_SUSTAIN);
	expect(&policy, START + WINDOW, TANDEM_SEND);
	expect(&policy, START + 2 * WINDOW, TANDEM_SEND);
	expect(&policy, START + 3 * WINDOW + 1, TANDEM_SUPPRESSED_SUSTAIN);
	expect(&policy, START + 4 * WINDOW + 1, TANDEM_SEND);
}

/* An event at time 0 is an event; the zeroed memory is none. */
static void test_sustain_at_time_zero(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.sustain = 2;
	expect(&policy, 0, TANDEM_SUPPRESSED_SUSTAIN);
	expect(&policy, 0, TANDEM_SEND);
}

static void test_sustain_clock_wraps(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.sustain = 2;
	expect(&policy, UINT64_MAX - 1, TANDEM_SUPPRESSED_SUSTAIN);
	expect(&policy, 5, TANDEM_SEND);
}

static void test_sustain_clock_goes_back(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.sustain = 2;
	expect(&policy, START, TANDEM_SUPPRESSED_SUSTAIN);
	expect(&policy, START - 1, TANDEM_SUPPRESSED_SUSTAIN);
	expect(&policy, START, TANDEM_SEND);
}

/* A tunable that is raised must not let the old run pass. */
static void test_sustain_raised_later(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.sustain = 2;
	expect(&policy, START, TANDEM_SUPPRESSED_SUSTAIN);
	expect(&policy, START + 1, TANDEM_SEND);
	policy.sustain = 4;
	expect(&policy, START + 2, TANDEM_SUPPRESSED_SUSTAIN);
	expect(&policy, START + 3, TANDEM_SEND);
}

static void test_sustain_maximum(void **state)
{
	struct tandem_policy policy = generous;
	u32 i;

	(void)state;
	policy.sustain = TANDEM_SUSTAIN_MAX;
	for (i = 1; i < TANDEM_SUSTAIN_MAX; i++)
		expect(&policy, START + i, TANDEM_SUPPRESSED_SUSTAIN);
	expect(&policy, START + i, TANDEM_SEND);
}

static void test_exactly_three_tries(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.tries = 3;
	expect(&policy, START, TANDEM_SEND);
	expect(&policy, START + 1, TANDEM_SEND);
	expect(&policy, START + 2, TANDEM_SEND);
	expect(&policy, START + 3, TANDEM_SUPPRESSED_TRIES);
	expect(&policy, START + WINDOW - 1, TANDEM_SUPPRESSED_TRIES);
	/* The window runs from the first try. */
	expect(&policy, START + WINDOW, TANDEM_SEND);
	expect(&policy, START + WINDOW + 1, TANDEM_SEND);
	expect(&policy, START + WINDOW + 2, TANDEM_SEND);
	expect(&policy, START + WINDOW + 3, TANDEM_SUPPRESSED_TRIES);
}

static void test_tries_are_of_all_waiters(void **state)
{
	struct tandem_policy policy = generous;
	struct tandem_waiter waiters[4] = { 0 };
	int sent = 0;
	int i;

	(void)state;
	policy.tries = 3;
	for (i = 0; i < 4; i++)
		sent += tandem_policy_event(&policy, &waiters[i], &target,
					    START + (u64)i) == TANDEM_SEND;
	assert_int_equal(sent, 3);
}

static void *race(void *sent)
{
	struct tandem_policy policy = generous;
	struct tandem_waiter own = { 0 };
	int i;

	policy.tries = 3;
	for (i = 0; i < 10000; i++)
		*(int *)sent += tandem_policy_event(&policy, &own, &target,
						    START) == TANDEM_SEND;
	return NULL;
}

/* However the waiters race, the tries are neither exceeded nor lost. */
static void test_tries_hold_in_a_race(void **state)
{
	pthread_t threads[4];
	int sent[4] = { 0 };
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, race,
						&sent[i]), 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(sent[0] + sent[1] + sent[2] + sent[3], 3);
}

static void test_tries_are_per_target(void **state)
{
	struct tandem_policy policy = generous;
	struct tandem_target other = { 0 };

	(void)state;
	policy.tries = 1;
	expect(&policy, START, TANDEM_SEND);
	expect(&policy, START + 1, TANDEM_SUPPRESSED_TRIES);
	assert_int_equal(tandem_policy_event(&policy, &waiter, &other,
					     START + 2), TANDEM_SEND);
}

static void test_tries_forgotten_when_running(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.tries = 1;
	tandem_policy_running(&target);
	expect(&policy, START, TANDEM_SEND);
	expect(&policy, START + 1, TANDEM_SUPPRESSED_TRIES);
	tandem_policy_running(&target);
	assert_int_equal(target.word, 0);
	expect(&policy, START + 2, TANDEM_SEND);
}

/* Clocks of two vCPUs that differ a little must not open a new window. */
static void test_tries_clock_slightly_behind(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.tries = 1;
	expect(&policy, START, TANDEM_SEND);
	expect(&policy, START - 1, TANDEM_SUPPRESSED_TRIES);
	expect(&policy, START - WINDOW, TANDEM_SUPPRESSED_TRIES);
}

/* But a clock that jumped back must not make us stand back for long. */
static void test_tries_clock_far_behind(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.tries = 1;
	expect(&policy, START, TANDEM_SEND);
	expect(&policy, START - WINDOW - 1, TANDEM_SEND);
}

static void test_tries_clock_wraps(void **state)
{
	struct tandem_policy policy = generous;
	const u64 wrap = 1ULL << 56;

	(void)state;
	policy.tries = 2;
	expect(&policy, wrap - 1, TANDEM_SEND);
	expect(&policy, wrap, TANDEM_SEND);
	expect(&policy, wrap + WINDOW - 2, TANDEM_SUPPRESSED_TRIES);
	expect(&policy, wrap + WINDOW - 1, TANDEM_SEND);
}

static void test_tries_at_time_zero(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.tries = 1;
	expect(&policy, 0, TANDEM_SEND);
	expect(&policy, 1, TANDEM_SUPPRESSED_TRIES);
}

/* The count has 8 bits: it must not run over into the time. */
static void test_tries_count_saturates(void **state)
{
	struct tandem_policy policy = generous;
	int i;

	(void)state;
	policy.tries = 1000;
	for (i = 0; i < 255; i++)
		expect(&policy, START, TANDEM_SEND);
	expect(&policy, START, TANDEM_SUPPRESSED_TRIES);
}

static void test_tries_lowered_later(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.tries = 5;
	expect(&policy, START, TANDEM_SEND);
	expect(&policy, START, TANDEM_SEND);
	policy.tries = 1;
	expect(&policy, START, TANDEM_SUPPRESSED_TRIES);
}

static void test_budget_refills(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.budget = 2;
	expect(&policy, START, TANDEM_SEND);
	expect(&policy, START + 1, TANDEM_SEND);
	expect(&policy, START + 2, TANDEM_SUPPRESSED_BUDGET);
	expect(&policy, START + SEC - 1, TANDEM_SUPPRESSED_BUDGET);
	expect(&policy, START + SEC, TANDEM_SEND);
	expect(&policy, START + SEC + 1, TANDEM_SEND);
	expect(&policy, START + SEC + 2, TANDEM_SUPPRESSED_BUDGET);
}

static void test_budget_clock_goes_back(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.budget = 1;
	expect(&policy, START, TANDEM_SEND);
	expect(&policy, START + 1, TANDEM_SUPPRESSED_BUDGET);
	expect(&policy, START - SEC, TANDEM_SEND);
}

static void test_budget_clock_wraps(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.budget = 1;
	waiter.second_ns = UINT64_MAX - 9;
	waiter.used = 1;
	expect(&policy, 10, TANDEM_SUPPRESSED_BUDGET);
	expect(&policy, SEC - 10, TANDEM_SEND);
}

/* A refusal by one rule must not cost what another rule counts. */
static void test_refusals_cost_nothing(void **state)
{
	struct tandem_policy policy = generous;

	(void)state;
	policy.budget = 1;
	policy.tries = 2;
	expect(&policy, START, TANDEM_SEND);
	expect(&policy, START + 1, TANDEM_SUPPRESSED_BUDGET);
	assert_int_equal(target.word & 0xff, 1);

	policy.budget = 10;
	policy.tries = 1;
	expect(&policy, START + 2, TANDEM_SUPPRESSED_TRIES);
	assert_int_equal(waiter.used, 1);

	policy.sustain = 100;
	expect(&policy, START + 3, TANDEM_SUPPRESSED_SUSTAIN);
	assert_int_equal(waiter.used, 1);
	assert_int_equal(target.word & 0xff, 1);
}

static void test_steal_permille(void **state)
{
	(void)state;
	assert_int_equal(tandem_steal_permille(0, SEC, 4), 0);
	assert_int_equal(tandem_steal_permille(SEC, SEC, 4), 250);
	assert_int_equal(tandem_steal_permille(4 * SEC, SEC, 4), 1000);
	assert_int_equal(tandem_steal_permille(3999 * US, SEC, 4), 0);
	assert_int_equal(tandem_steal_permille(4 * MS, SEC, 4), 1);
}

static void test_steal_permille_extremes(void **state)
{
	(void)state;
	assert_int_equal(tandem_steal_permille(SEC, 0, 4), 0);
	assert_int_equal(tandem_steal_permille(SEC, SEC, 0), 0);
	assert_int_equal(tandem_steal_permille(SEC, 999, 1), 0);
	assert_int_equal(tandem_steal_permille(9 * SEC, SEC, 1), 1000);
	assert_int_equal(tandem_steal_permille(UINT64_MAX, SEC, 1), 1000);
	assert_int_equal(tandem_steal_permille(UINT64_MAX, UINT64_MAX,
					       UINT32_MAX), 0);
}

static const struct tandem_gate_policy gate_policy = {
	.open_permille = 20, .hold_ns = 3 * SEC,
};

/* One vCPU, one sample a second, steal in permille. */
struct feed {
	struct tandem_gate gate;
	u64 now;
	u64 steal;
};

static bool feed(struct feed *feed, u32 permille)
{
	feed->now += SEC;
	feed->steal += permille * MS;
	return tandem_gate_sample(&feed->gate, &gate_policy, feed->steal,
				  feed->now, 1);
}

static void test_gate_first_sample_decides_nothing(void **state)
{
	struct feed f = { .now = START, .steal = 500 * SEC };

	(void)state;
	assert_false(feed(&f, 1000));
	assert_false(f.gate.open);
	assert_int_equal(f.gate.permille, 0);
}

static void test_gate_opens_at_threshold(void **state)
{
	struct feed f = { .now = START };

	(void)state;
	feed(&f, 0);
	assert_false(feed(&f, 19));
	assert_false(f.gate.open);
	assert_true(feed(&f, 20));
	assert_true(f.gate.open);
	assert_int_equal(f.gate.permille, 20);
}

static void test_gate_closes_after_hold(void **state)
{
	struct feed f = { .now = START };

	(void)state;
	feed(&f, 0);
	feed(&f, 500);
	assert_false(feed(&f, 19));
	assert_false(feed(&f, 0));
	assert_false(feed(&f, 0));
	assert_true(f.gate.open);
	assert_true(feed(&f, 0));
	assert_false(f.gate.open);
}

static void test_gate_hold_starts_anew(void **state)
{
	struct feed f = { .now = START };

	(void)state;
	feed(&f, 0);
	feed(&f, 500);
	feed(&f, 0);
	feed(&f, 0);
	feed(&f, 0);
	assert_false(feed(&f, 20));
	assert_false(feed(&f, 0));
	assert_false(feed(&f, 0));
	assert_false(feed(&f, 0));
	assert_true(f.gate.open);
	assert_true(feed(&f, 0));
	assert_false(f.gate.open);
	assert_true(feed(&f, 20));
	assert_true(f.gate.open);
}

static void test_gate_no_hold(void **state)
{
	const struct tandem_gate_policy policy = { .open_permille = 20 };
	struct tandem_gate gate = { 0 };

	(void)state;
	tandem_gate_sample(&gate, &policy, 0, START, 1);
	assert_true(tandem_gate_sample(&gate, &policy, SEC, START + SEC, 1));
	assert_true(tandem_gate_sample(&gate, &policy, SEC, START + 2 * SEC, 1));
	assert_false(gate.open);
}

/* No time passed: no state changes, and the steal counts next time. */
static void test_gate_zero_period(void **state)
{
	struct feed f = { .now = START };

	(void)state;
	feed(&f, 0);
	feed(&f, 500);
	assert_false(tandem_gate_sample(&f.gate, &gate_policy, f.steal + SEC,
					f.now, 1));
	assert_true(f.gate.open);
	assert_int_equal(f.gate.permille, 500);
	assert_int_equal(f.gate.steal_ns, f.steal);
}

static void test_gate_steal_goes_back(void **state)
{
	struct feed f = { .now = START, .steal = 10 * SEC };

	(void)state;
	feed(&f, 0);
	f.steal = 0;
	assert_false(feed(&f, 0));
	assert_int_equal(f.gate.permille, 0);
	assert_true(feed(&f, 20));
}

static void test_gate_no_vcpus(void **state)
{
	struct tandem_gate gate = { 0 };

	(void)state;
	tandem_gate_sample(&gate, &gate_policy, 0, START, 0);
	assert_false(tandem_gate_sample(&gate, &gate_policy, SEC, START + SEC, 0));
	assert_false(gate.open);
}

#define TEST(name)	cmocka_unit_test_setup(name, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names),
		TEST(test_defaults_within_bounds),
		TEST(test_sustain_one_sends_first),
		TEST(test_sustain_counts),
		TEST(test_sustain_window_edge),
		TEST(test_sustain_at_time_zero),
		TEST(test_sustain_clock_wraps),
		TEST(test_sustain_clock_goes_back),
		TEST(test_sustain_raised_later),
		TEST(test_sustain_maximum),
		TEST(test_exactly_three_tries),
		TEST(test_tries_are_of_all_waiters),
		TEST(test_tries_hold_in_a_race),
		TEST(test_tries_are_per_target),
		TEST(test_tries_forgotten_when_running),
		TEST(test_tries_clock_slightly_behind),
		TEST(test_tries_clock_far_behind),
		TEST(test_tries_clock_wraps),
		TEST(test_tries_at_time_zero),
		TEST(test_tries_count_saturates),
		TEST(test_tries_lowered_later),
		TEST(test_budget_refills),
		TEST(test_budget_clock_goes_back),
		TEST(test_budget_clock_wraps),
		TEST(test_refusals_cost_nothing),
		TEST(test_steal_permille),
		TEST(test_steal_permille_extremes),
		TEST(test_gate_first_sample_decides_nothing),
		TEST(test_gate_opens_at_threshold),
		TEST(test_gate_closes_after_hold),
		TEST(test_gate_hold_starts_anew),
		TEST(test_gate_no_hold),
		TEST(test_gate_zero_period),
		TEST(test_gate_steal_goes_back),
		TEST(test_gate_no_vcpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
