// SPDX-License-Identifier: GPL-2.0
#include "rate.h"

/**
 * rate_init() - start with a full bucket
 * @rb: the bucket
 * @per_s: tokens gained each second
 * @burst: most tokens held
 * @now_ms: clock_ms()
 *
 * All functions here are pure: they know no clock but their argument.
 */
void rate_init(struct rate_bucket *rb, int64_t per_s, int64_t burst, int64_t now_ms)
{
	rb->per_s = per_s;
	rb->burst = burst;
	rb->milli = burst * 1000;
	rb->last_ms = now_ms;
}

static void rate_refill(struct rate_bucket *rb, int64_t now_ms)
{
	int64_t passed = now_ms - rb->last_ms;
	int64_t missing = rb->burst * 1000 - rb->milli;

	if (passed <= 0)
		return;
	rb->last_ms = now_ms;
	/* A token a second is one thousandth a millisecond; no overflow below. */
	if (passed > missing / rb->per_s)
		rb->milli = rb->burst * 1000;
	else
		rb->milli += passed * rb->per_s;
}

/**
 * rate_take() - take tokens if they are there
 * @rb: the bucket
 * @tokens: how many
 * @now_ms: clock_ms()
 *
 * Return: false, with nothing taken, when there are not enough.
 */
bool rate_take(struct rate_bucket *rb, int64_t tokens, int64_t now_ms)
{
	rate_refill(rb, now_ms);
	if (rb->milli < tokens * 1000)
		return false;
	rb->milli -= tokens * 1000;
	return true;
}

/**
 * rate_charge() - pay for something that has already happened
 * @rb: the bucket; may go into debt
 * @tokens: how many
 * @now_ms: clock_ms()
 */
void rate_charge(struct rate_bucket *rb, int64_t tokens, int64_t now_ms)
{
	rate_refill(rb, now_ms);
	rb->milli -= tokens * 1000;
}

/**
 * rate_wait_ms() - how long until there is a token
 * @rb: the bucket
 * @now_ms: clock_ms()
 *
 * Return: milliseconds, 0 when there is one now.
 */
int64_t rate_wait_ms(struct rate_bucket *rb, int64_t now_ms)
{
	rate_refill(rb, now_ms);
	if (rb->milli >= 1000)
		return 0;
	return (1000 - rb->milli + rb->per_s - 1) / rb->per_s;
}
