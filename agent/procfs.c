// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "procfs.h"
#include "text.h"

/*
 * user nice system idle iowait irq softirq steal: all there since 2.6.11. What
 * follows (guest, guest_nice, and whatever comes) is ignored.
 */
static bool proc_cpu_times(const char *p, const char *end, struct proc_cpu *cpu)
{
	uint64_t v[8];

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		if (p == end || *p != ' ')
			return false;
		while (p < end && *p == ' ')
			p++;
		if (!text_u64(&p, end, &v[i]))
			return false;
		/* So that no sum of ours overflows. */
		if (v[i] > UINT64_MAX / 16)
			return false;
	}
	if (p < end && *p != ' ')
		return false;
	cpu->used = v[0] + v[1] + v[2] + v[5] + v[6];
	cpu->idle = v[3];
	cpu->iowait = v[4];
	cpu->steal = v[7];
	cpu->present = true;
	return true;
}

static bool proc_stat_room(struct proc_stat *ps, size_t nr)
{
	struct proc_cpu *cpus;
	size_t cap = ps->cap ? ps->cap : 4;

	if (nr > ps->cap) {
		while (cap < nr)
			cap *= 2;
		cpus = realloc(ps->cpus, cap * sizeof(*cpus));
		if (!cpus)
			return false;
		ps->cpus = cpus;
		ps->cap = cap;
	}
	for (; ps->nr_cpus < nr; ps->nr_cpus++)
		memset(&ps->cpus[ps->nr_cpus], 0, sizeof(*ps->cpus));
	return true;
}

static bool proc_stat_cpu(struct proc_stat *ps, const char *p, const char *end)
{
	uint64_t nr;

	if (p < end && *p == ' ')
		return !ps->total.present && proc_cpu_times(p, end, &ps->total);
	if (!text_u64(&p, end, &nr) || nr >= PROC_CPUS_MAX)
		return false;
	if (!proc_stat_room(ps, (size_t)nr + 1) || ps->cpus[nr].present)
		return false;
	return proc_cpu_times(p, end, &ps->cpus[nr]);
}

/**
 * proc_stat_parse() - parse /proc/stat
 * @text: the file
 * @len: its length
 * @ps: filled in; undefined after a failure, but still valid to parse into
 *
 * Lines that are not about vCPUs or runnable tasks are ignored, as the kernel
 * may add some; a vCPU line that is odd in any way fails the whole parse.
 *
 * Return: true when the total, at least one vCPU and procs_running were found.
 */
bool proc_stat_parse(const char *text, size_t len, struct proc_stat *ps)
{
	const char *end = text + len;
	bool running = false;

	memset(&ps->total, 0, sizeof(ps->total));
	ps->nr_cpus = 0;
	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		const char *eol = nl ? nl : end;
		const char *p = text;

		text = nl ? nl + 1 : end;
		if (text_skip(&p, eol, "cpu")) {
			if (!proc_stat_cpu(ps, p, eol))
				return false;
		} else if (text_skip(&p, eol, "procs_running ")) {
			if (running || !text_u64(&p, eol, &ps->procs_running) || p != eol)
				return false;
			running = true;
		}
	}
	return running && ps->total.present && ps->nr_cpus;
}

/**
 * proc_stat_free() - give the memory back
 * @ps: what was parsed; valid to parse into again
 */
void proc_stat_free(struct proc_stat *ps)
{
	free(ps->cpus);
	memset(ps, 0, sizeof(*ps));
}

/**
 * proc_loadavg_parse() - parse /proc/loadavg
 * @text: the file
 * @len: its length
 * @load_centi: the averages of 1, 5 and 15 minutes, in hundredths
 *
 * Return: true on success.
 */
bool proc_loadavg_parse(const char *text, size_t len, uint64_t load_centi[3])
{
	const char *end = text + len;

	for (size_t i = 0; i < 3; i++) {
		if (!text_centi(&text, end, &load_centi[i]) || !text_skip(&text, end, " "))
			return false;
	}
	return true;
}

/**
 * proc_psi_parse() - parse the first line of /proc/pressure/cpu
 * @text: the file
 * @len: its length
 * @psi: filled in
 *
 * Return: true on success.
 */
bool proc_psi_parse(const char *text, size_t len, struct proc_psi *psi)
{
	const char *end = text + len;
	uint64_t avg60, avg300;

	if (!text_skip(&text, end, "some avg10=") ||
	    !text_centi(&text, end, &psi->avg10_centi) ||
	    !text_skip(&text, end, " avg60=") || !text_centi(&text, end, &avg60) ||
	    !text_skip(&text, end, " avg300=") || !text_centi(&text, end, &avg300) ||
	    !text_skip(&text, end, " total=") || !text_u64(&text, end, &psi->total_us))
		return false;
	return psi->avg10_centi <= 10000 && text_skip(&text, end, "\n");
}

/**
 * proc_uptime_parse() - parse /proc/uptime
 * @text: the file
 * @len: its length
 * @uptime_ms: time since boot, suspended time included, in milliseconds
 *
 * Return: true on success.
 */
bool proc_uptime_parse(const char *text, size_t len, uint64_t *uptime_ms)
{
	const char *end = text + len;
	uint64_t centi;

	if (!text_centi(&text, end, &centi) || !text_skip(&text, end, " "))
		return false;
	return !__builtin_mul_overflow(centi, (uint64_t)10, uptime_ms);
}

/**
 * proc_cpulist_parse() - count the CPUs of a list such as "0-3,8"
 * @text: the file
 * @len: its length
 * @count: set to the number of CPUs; 0 for an empty list
 *
 * Ranges have to ascend, as the kernel writes them, so nothing counts twice.
 *
 * Return: true on success.
 */
bool proc_cpulist_parse(const char *text, size_t len, uint64_t *count)
{
	const char *end = text + len;
	uint64_t from, to, next = 0, n = 0;

	if (end > text && end[-1] == '\n')
		end--;
	*count = 0;
	if (text == end)
		return true;
	do {
		if (!text_u64(&text, end, &from))
			return false;
		to = from;
		if (text_skip(&text, end, "-") && !text_u64(&text, end, &to))
			return false;
		if (from < next || to < from || to >= PROC_CPUS_MAX)
			return false;
		n += to - from + 1;
		next = to + 1;
	} while (text_skip(&text, end, ","));
	*count = n;
	return text == end;
}
