// SPDX-License-Identifier: GPL-2.0
/*
 * policy_cost VERDICT EVENTS BATCHES: call tandem_policy_event() so often, such
 * that it ends in VERDICT, and print the nanoseconds that one call took: in the
 * shortest of BATCHES batches, less the shortest of as many empty ones. For the
 * benchmark only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policy.h"

#define STEP_NS		1000

/**
 * struct verdict_case - a way to one verdict
 * @name: on the command line
 * @policy: tunables with which every event but the first few ends so
 * @verdict: which
 */
struct verdict_case {
	const char *name;
	struct tandem_policy policy;
	enum tandem_verdict verdict;
};

static const struct verdict_case cases[] = {
	/* Events are farther apart than the window. */
	{ "sustain", { STEP_NS / 2, 2, 3, 200 }, TANDEM_SUPPRESSED_SUSTAIN },
	{ "budget", { 10 * STEP_NS, 1, 3, 0 }, TANDEM_SUPPRESSED_BUDGET },
	/* The window never ends. */
	{ "tries", { 1ULL << 54, 1, 1, ~0U }, TANDEM_SUPPRESSED_TRIES },
	/* It ends before each event. */
	{ "send", { STEP_NS / 2, 1, 1, ~0U }, TANDEM_SEND },
};

static unsigned long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long long)ts.tv_sec * TANDEM_NSEC_PER_SEC + (unsigned long long)ts.tv_nsec;
}

static unsigned long long time_empty(unsigned long events)
{
	unsigned long long start = now_ns();
	unsigned long i;
	u64 clock = TANDEM_NSEC_PER_SEC;

	for (i = 0; i < events; i++) {
		clock += STEP_NS;
		__asm__ volatile("" : "+r"(clock));
	}
	return now_ns() - start;
}

static unsigned long long time_events(const struct verdict_case *c, unsigned long events)
{
	struct tandem_waiter waiter = { 0 };
	struct tandem_target target = { 0 };
	unsigned long wrong = 0;
	unsigned long long start;
	u64 clock = TANDEM_NSEC_PER_SEC;
	unsigned long i;

	start = now_ns();
	for (i = 0; i < events; i++) {
		clock += STEP_NS;
		__asm__ volatile("" : "+r"(clock));
		wrong += tandem_policy_event(&c->policy, &waiter, &target, clock) != c->verdict;
	}
	start = now_ns() - start;
	/* The first one or two may lead up to it. */
	if (wrong <= 2)
		return start;
	fprintf(stderr, "policy_cost: %lu of %lu events did not end in %s\n", wrong, events,
		tandem_verdict_name(c->verdict));
	exit(EXIT_FAILURE);
}

static void measure(const struct verdict_case *c, unsigned long events, unsigned long batches)
{
	unsigned long long empty = ~0ULL, full = ~0ULL, t;

	while (batches--) {
		t = time_empty(events);
		empty = t < empty ? t : empty;
		t = time_events(c, events);
		full = t < full ? t : full;
	}
	printf("%.3f\n", ((double)full - (double)empty) / (double)events);
}

int main(int argc, char **argv)
{
	unsigned long events = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long batches = events ? strtoul(argv[3], NULL, 10) : 0;
	size_t i;

	for (i = 0; batches && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		measure(&cases[i], events, batches);
		return EXIT_SUCCESS;
	}
	fputs("Usage: policy_cost sustain|budget|tries|send EVENTS BATCHES\n", stderr);
	return EXIT_FAILURE;
}
