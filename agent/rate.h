/* SPDX-License-Identifier: GPL-2.0 */
/* Token bucket: the bound on what a peer can make us do. */
#ifndef TANDEM_RATE_H
#define TANDEM_RATE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct rate_bucket - tokens that come back with time
 * @per_s: tokens gained each second, 1 to 10^9
 * @burst: most tokens held, 1 to 10^9
 * @milli: tokens held, in thousandths
 * @last_ms: when @milli was brought up to date
 */
struct rate_bucket {
	int64_t per_s;
	int64_t burst;
	int64_t milli;
	int64_t last_ms;
};

void rate_init(struct rate_bucket *rb, int64_t per_s, int64_t burst, int64_t now_ms);
bool rate_take(struct rate_bucket *rb, int64_t tokens, int64_t now_ms);
void rate_charge(struct rate_bucket *rb, int64_t tokens, int64_t now_ms);
int64_t rate_wait_ms(struct rate_bucket *rb, int64_t now_ms);

#endif
