/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One logger for every program: a line to stderr, with the <N> priority prefix
 * that journald understands when stderr is the journal.
 */
#ifndef TANDEM_LOG_H
#define TANDEM_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

/**
 * struct log_limit - rate limit for a line that a peer can cause
 * @interval_ms: at most one line in so many milliseconds
 * @burst: and so many more at once after a quiet time
 * @next_ms: CLOCK_MONOTONIC time from which a line may appear without the burst
 * @missed: lines kept back since the last one that appeared
 */
struct log_limit {
	int64_t interval_ms;
	int64_t burst;
	int64_t next_ms;
	unsigned long missed;
};

#define LOG_LIMIT_INIT(ms) { .interval_ms = (ms) }

void log_open(const char *program, bool debug);
void log_line(int priority, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool log_allowed(struct log_limit *limit, int64_t now_ms, unsigned long *missed);
void log_limited(struct log_limit *limit, int priority, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int64_t clock_ms(void);

#define log_err(...)	log_line(LOG_ERR, __VA_ARGS__)
#define log_warn(...)	log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...)	log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)	log_line(LOG_DEBUG, __VA_ARGS__)

#endif
