/* SPDX-License-Identifier: GPL-2.0 */
/* Strict parsers of the kernel's text files. Pure: text in, numbers out. */
#ifndef TANDEM_PROCFS_H
#define TANDEM_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Highest vCPU number that is believed, plus one: CONFIG_NR_CPUS is 8192 at most. */
#define PROC_CPUS_MAX 8192

/**
 * struct proc_cpu - cumulative times of one vCPU, or of all, in ticks of USER_HZ
 * @used: user + nice + system + irq + softirq (guest time is part of user)
 * @idle: idle
 * @iowait: idle while a task waits for I/O
 * @steal: runnable, but the host ran something else
 * @present: the line was there
 */
struct proc_cpu {
	uint64_t used;
	uint64_t idle;
	uint64_t iowait;
	uint64_t steal;
	bool present;
};

/**
 * struct proc_stat - what is read from /proc/stat
 * @total: the line "cpu": all vCPUs, those that are offline included
 * @cpus: the lines "cpuN", by number; vCPUs that are offline have none
 * @nr_cpus: entries at @cpus
 * @cap: entries allocated
 * @procs_running: runnable tasks
 *
 * Zeroed memory is valid; the memory is kept from one parse to the next.
 */
struct proc_stat {
	struct proc_cpu total;
	struct proc_cpu *cpus;
	size_t nr_cpus;
	size_t cap;
	uint64_t procs_running;
};

/**
 * struct proc_psi - the line "some" of /proc/pressure/cpu
 * @avg10_centi: percent of the last 10 s, in hundredths
 * @total_us: cumulative, in microseconds
 */
struct proc_psi {
	uint64_t avg10_centi;
	uint64_t total_us;
};

bool proc_stat_parse(const char *text, size_t len, struct proc_stat *ps);
void proc_stat_free(struct proc_stat *ps);
bool proc_loadavg_parse(const char *text, size_t len, uint64_t load_centi[3]);
bool proc_psi_parse(const char *text, size_t len, struct proc_psi *psi);
bool proc_uptime_parse(const char *text, size_t len, uint64_t *uptime_ms);
bool proc_cpulist_parse(const char *text, size_t len, uint64_t *count);

#endif
