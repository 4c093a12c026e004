// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "text.h"

#define LOG_LINE_MAX 512

static const char *log_program = "tandem";
static bool log_journal;
static bool log_want_debug;

/**
 * clock_ms() - the time that every deadline of the programs is measured in
 *
 * Return: CLOCK_MONOTONIC in milliseconds.
 */
int64_t clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/**
 * log_open() - set the name that lines start with
 * @program: static string, kept by reference
 * @debug: also write LOG_DEBUG lines
 *
 * Call it once, before the first thread is started.
 */
void log_open(const char *program, bool debug)
{
	log_program = program;
	log_want_debug = debug;
	log_journal = !!getenv("JOURNAL_STREAM");
}

static void log_vline(int priority, unsigned long missed, const char *fmt, va_list ap)
{
	char raw[LOG_LINE_MAX];
	char safe[LOG_LINE_MAX * 2];
	char prefix[8] = "";
	char suffix[48] = "";

	if (priority == LOG_DEBUG && !log_want_debug)
		return;
	vsnprintf(raw, sizeof(raw), fmt, ap);
	text_escape(safe, sizeof(safe), raw);
	if (log_journal)
		snprintf(prefix, sizeof(prefix), "<%d>", priority);
	if (missed)
		snprintf(suffix, sizeof(suffix), " (%lu more kept back)", missed);
	/* One call, so that lines of two threads do not mix. */
	dprintf(STDERR_FILENO, "%s%s: %s%s\n", prefix, log_program, safe, suffix);
}

/**
 * log_line() - write one line
 * @priority: LOG_ERR, LOG_WARNING, LOG_INFO or LOG_DEBUG
 * @fmt: printf format, without newline
 *
 * Control characters and bytes outside ASCII are escaped here, so that text
 * from a guest or a peer can never drive the terminal. Any thread may call it.
 */
void log_line(int priority, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vline(priority, 0, fmt, ap);
	va_end(ap);
}

/**
 * log_allowed() - may a rate-limited line appear now?
 * @limit: the limit, owned by the caller
 * @now_ms: clock_ms()
 * @missed: set to the number of lines kept back before this one
 *
 * Pure function of its arguments.
 *
 * Return: true when the line may appear; otherwise it has been counted.
 */
bool log_allowed(struct log_limit *limit, int64_t now_ms, unsigned long *missed)
{
	int64_t from_ms = limit->next_ms > now_ms ? limit->next_ms : now_ms;

	if (from_ms - now_ms > limit->burst * limit->interval_ms) {
		limit->missed++;
		return false;
	}
	*missed = limit->missed;
	limit->missed = 0;
	limit->next_ms = from_ms + limit->interval_ms;
	return true;
}

/**
 * log_limited() - write one line unless its limit keeps it back
 * @limit: the limit, owned by the caller
 * @priority: as for log_line()
 * @fmt: printf format, without newline
 */
void log_limited(struct log_limit *limit, int priority, const char *fmt, ...)
{
	unsigned long missed;
	va_list ap;

	if (!log_allowed(limit, clock_ms(), &missed))
		return;
	va_start(ap, fmt);
	log_vline(priority, missed, fmt, ap);
	va_end(ap);
}
