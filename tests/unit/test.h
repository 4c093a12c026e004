/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests have in common: cmocka, a fake root directory, waiting for conditions. */
#ifndef TANDEM_TEST_H
#define TANDEM_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <ev.h>

#include "log.h"
#include "report.h"
#include "text.h"

/* A condition that has not come true after so long fails the test. */
#define TEST_PATIENCE_MS 10000

static inline char *test_dir(void)
{
	char *dir = strdup("/tmp/tandem-test-XXXXXX");

	assert_non_null(dir);
	assert_non_null(mkdtemp(dir));
	return dir;
}

static inline int test_rm_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline void test_rm(char *dir)
{
	nftw(dir, test_rm_one, 16, FTW_DEPTH | FTW_PHYS);
	free(dir);
}

static inline void test_write_n(const char *dir, const char *file, const void *data, size_t len)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static inline void test_write(const char *dir, const char *file, const char *text)
{
	test_write_n(dir, file, text, strlen(text));
}

static inline void test_unlink(const char *dir, const char *file)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	assert_int_equal(remove(path), 0);
}

/* A root directory of a guest with two vCPUs and no module. */
static inline void test_root(const char *dir, unsigned int uptime_s, unsigned int used,
			     unsigned int steal)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "cpu  %u 0 0 500 30 0 0 %u 0 0\ncpu0 %u 0 0 300 20 0 0 %u 0 0\n"
		 "cpu1 0 0 0 200 10 0 0 0 0 0\nintr 1 2 3\nctxt 5\nbtime 6\nprocesses 7\n"
		 "procs_running 3\nprocs_blocked 0\n", used, steal, used, steal);
	test_write(dir, "proc/stat", text);
	snprintf(text, sizeof(text), "%u.50 10.00\n", uptime_s);
	test_write(dir, "proc/uptime", text);
	test_write(dir, "proc/loadavg", "1.05 0.50 0.25 3/200 1234\n");
	test_write(dir, "proc/pressure/cpu",
		   "some avg10=1.09 avg60=2.28 avg300=4.83 total=31887686\n"
		   "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
	test_write(dir, "proc/sys/kernel/random/boot_id", "a58921af-d380-4323-a209-0406c16e2cc3\n");
	test_write(dir, "proc/sys/kernel/hostname", "guest-1\n");
	test_write(dir, "sys/devices/system/cpu/online", "0-1\n");
	test_write(dir, "sys/devices/system/cpu/present", "0-3\n");
}

static inline void test_module(const char *dir)
{
	char path[128], text[32];

	test_write(dir, "sys/kernel/tandem/version", "0.1.0\n");
	test_write(dir, "sys/kernel/tandem/hypervisor", "kvm\n");
	test_write(dir, "sys/kernel/tandem/features", "steal-time sched-yield\n");
	test_write(dir, "sys/kernel/tandem/topology/flatten", "auto\n");
	test_write(dir, "sys/kernel/tandem/topology/variant", "llc\n");
	test_write(dir, "sys/kernel/tandem/topology/state", "flat\n");
	test_write(dir, "sys/kernel/tandem/topology/reason", "steal was seen\n");
	test_write(dir, "sys/kernel/tandem/hints/mode", "auto\n");
	test_write(dir, "sys/kernel/tandem/hints/state", "on\n");
	test_write(dir, "sys/kernel/tandem/gate/state", "open\n");
	test_write(dir, "sys/kernel/tandem/gate/steal_permille", "123\n");
	for (size_t i = 0; i < MODULE_STAT_NR; i++) {
		snprintf(path, sizeof(path), "sys/kernel/tandem/stats/%s", module_stat_names[i]);
		snprintf(text, sizeof(text), "%zu\n", 1000 + i);
		test_write(dir, path, text);
	}
}

/* A valid report with every field set. */
static inline void test_report(struct report *r)
{
	report_init(r);
	strcpy(r->boot_id, "a58921af-d380-4323-a209-0406c16e2cc3");
	strcpy(r->host, "guest-1");
	strcpy(r->agent, "0.1.0");
	r->seq = 7;
	r->uptime_ms = 100500;
	r->interval_ms = 1000;
	r->period_ms = 1000;
	r->heartbeat_ms = 10000;
	r->vcpus_online = 2;
	r->vcpus_present = 4;
	r->used_ms = 5000;
	r->steal_ms = 700;
	r->idle_ms = 90000;
	r->iowait_ms = 300;
	r->used_mcpu = 1230;
	r->steal_mcpu = 410;
	r->demand_mcpu = 1640;
	r->steal_max_mcpu = 400;
	r->runq = 3;
	r->load1_centi = 105;
	r->load5_centi = 50;
	r->load15_centi = 25;
	r->psi_avg10_centi = 109;
	r->psi_total_us = 31887686;
	r->dropped = 1;
	r->module.present = true;
	strcpy(r->module.version, "0.1.0");
	strcpy(r->module.hypervisor, "kvm");
	strcpy(r->module.topology, "flat");
	strcpy(r->module.gate, "open");
	r->module.gate_steal_permille = 120;
	for (int i = 0; i < MODULE_STAT_NR; i++)
		r->module.stats[i] = 100 + i;
}

static inline void test_address(struct sockaddr_un *sa, const char *path)
{
	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	assert_true(text_copy(sa->sun_path, sizeof(sa->sun_path), path));
}

static inline int test_connect(const char *path)
{
	struct sockaddr_un sa;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	test_address(&sa, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static inline int test_listen(const char *path)
{
	struct sockaddr_un sa;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	test_address(&sa, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static inline void test_late_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
}

/* What is logged between the two goes to a file below a directory, to be looked at. */
static char *test_log_path __attribute__((unused));
static int test_log_stderr __attribute__((unused));

static inline void test_log_begin(const char *dir)
{
	int fd;

	assert_true(asprintf(&test_log_path, "%s/log", dir) > 0);
	fd = open(test_log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	test_log_stderr = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

static inline void test_log_end(void)
{
	dup2(test_log_stderr, STDERR_FILENO);
	close(test_log_stderr);
	free(test_log_path);
}

/* How often do the words stand in it? */
static inline long test_logged(const char *words)
{
	static char text[1 << 20];
	FILE *f = fopen(test_log_path, "r");
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	long count = 0;

	fclose(f);
	text[n] = '\0';
	for (char *p = text; (p = strstr(p, words)); p++)
		count++;
	return count;
}

/* Runs the event loop until a condition holds; fails when it never does. */
#define run_until(loop, condition) do { \
	int64_t until_ms_ = clock_ms() + TEST_PATIENCE_MS; \
	ev_timer late_; \
	ev_timer_init(&late_, test_late_cb, 0.01, 0.01); \
	ev_timer_start((loop), &late_); \
	while (!(condition)) { \
		if (clock_ms() > until_ms_) \
			fail_msg("never true: %s", #condition); \
		ev_run((loop), EVRUN_ONCE); \
	} \
	ev_timer_stop((loop), &late_); \
} while (0)

#endif
