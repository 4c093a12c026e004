// SPDX-License-Identifier: GPL-2.0
/* Two readings, cut at the first byte that is 0xff, and the other parsers on the whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procfs.h"
#include "sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rates(const struct proc_stat *before, const struct proc_stat *now)
{
	struct report r;

	report_init(&r);
	sample_rates(before, now, 100, 1, &r);
	if (r.used_mcpu < 0 || r.steal_mcpu < 0 || r.demand_mcpu < 0 || r.steal_max_mcpu < 0 ||
	    r.demand_mcpu > 2 * 16384000)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct proc_stat before, now;
	const char *text = (const char *)data;
	const char *cut = memchr(text, 0xff, size);
	struct proc_psi psi;
	uint64_t load[3], n;

	if (cut && proc_stat_parse(text, (size_t)(cut - text), &before) &&
	    proc_stat_parse(cut + 1, size - (size_t)(cut - text) - 1, &now))
		check_rates(&before, &now);
	proc_stat_parse(text, size, &now);
	proc_loadavg_parse(text, size, load);
	proc_uptime_parse(text, size, &n);
	if (proc_psi_parse(text, size, &psi) && psi.avg10_centi > 10000)
		abort();
	if (proc_cpulist_parse(text, size, &n) && n > PROC_CPUS_MAX)
		abort();
	return 0;
}
