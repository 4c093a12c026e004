// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "sample.h"

/* 8192 vCPUs with the longest lines fit. */
#define SAMPLE_FILE_MAX (4 << 20)

/**
 * file_read() - read a whole small file
 * @dir_fd: directory that @path is relative to
 * @path: the file
 * @text: replaced by its contents; NUL-terminated
 *
 * Return: false, with errno set, when it cannot be read or contains a NUL.
 */
bool file_read(int dir_fd, const char *path, struct buf *text)
{
	char chunk[4096];
	ssize_t n;
	int fd;

	buf_reset(text);
	fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	do {
		n = read(fd, chunk, sizeof(chunk));
		if (n > 0)
			buf_add(text, chunk, (size_t)n);
	} while ((n > 0 && !text->failed) || (n < 0 && errno == EINTR));
	buf_add(text, "", 0);
	if (text->failed || (text->len && memchr(text->data, '\0', text->len))) {
		errno = EINVAL;
		n = -1;
	}
	close(fd);
	return n == 0;
}

/**
 * sampler_open() - start sampling
 * @s: the sampler
 * @root: directory that stands for "/"; another one than "/" is for tests
 *
 * Return: false, after one log line, when @root is no directory.
 */
bool sampler_open(struct sampler *s, const char *root)
{
	memset(s, 0, sizeof(*s));
	s->text.max = SAMPLE_FILE_MAX;
	s->before_uptime_ms = REPORT_UNKNOWN;
	s->module_seen = -1;
	s->user_hz = (uint64_t)sysconf(_SC_CLK_TCK);
	s->root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->root_fd >= 0)
		return true;
	log_err("cannot open the root directory %s: %s", root, strerror(errno));
	return false;
}

/**
 * sampler_close() - give everything back
 * @s: the sampler
 */
void sampler_close(struct sampler *s)
{
	buf_free(&s->text);
	proc_stat_free(&s->now);
	proc_stat_free(&s->before);
	close(s->root_fd);
}

/* A counter that went back (it can, by a little, on CPU hot-plug) gained nothing. */
static uint64_t gained(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

static int64_t ticks_to_ms(uint64_t ticks, uint64_t user_hz)
{
	uint64_t ms;

	if (__builtin_mul_overflow(ticks, (uint64_t)1000, &ms))
		ms = UINT64_MAX;
	ms /= user_hz;
	/* The protocol's bound, 285000 years. */
	return (int64_t)(ms > (UINT64_C(1) << 53) ? (UINT64_C(1) << 53) : ms);
}

/* Thousandths of a pCPU, bounded by what the protocol allows. */
static int64_t ticks_to_mcpu(uint64_t ticks, uint64_t user_hz, int64_t interval_ms)
{
	int64_t ms = ticks_to_ms(ticks, user_hz);
	int64_t mcpu;

	if (__builtin_mul_overflow(ms, INT64_C(1000), &mcpu))
		mcpu = INT64_MAX;
	mcpu /= interval_ms;
	return mcpu > 16384000 ? 16384000 : mcpu;
}

/**
 * sample_rates() - what happened between two readings of /proc/stat
 * @before: the older one
 * @now: the newer one
 * @user_hz: their unit
 * @interval_ms: time between them, at least 1
 * @r: used_mcpu, steal_mcpu, demand_mcpu, steal_max_mcpu and interval_ms are set
 *
 * Used and stolen time come from the line "cpu", which the kernel sums over all
 * possible CPUs: a vCPU that goes offline or comes back changes nothing there.
 * A vCPU that is missing from either reading has no part in steal_max_mcpu.
 * Pure function.
 */
void sample_rates(const struct proc_stat *before, const struct proc_stat *now, uint64_t user_hz,
		  int64_t interval_ms, struct report *r)
{
	size_t n = before->nr_cpus < now->nr_cpus ? before->nr_cpus : now->nr_cpus;
	uint64_t worst = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t steal;

		if (!before->cpus[i].present || !now->cpus[i].present)
			continue;
		steal = gained(before->cpus[i].steal, now->cpus[i].steal);
		if (steal > worst)
			worst = steal;
	}
	r->interval_ms = interval_ms;
	r->used_mcpu = ticks_to_mcpu(gained(before->total.used, now->total.used), user_hz,
				     interval_ms);
	r->steal_mcpu = ticks_to_mcpu(gained(before->total.steal, now->total.steal), user_hz,
				      interval_ms);
	r->demand_mcpu = r->used_mcpu + r->steal_mcpu;
	r->steal_max_mcpu = ticks_to_mcpu(worst, user_hz, interval_ms);
}

static int64_t clamp_count(uint64_t v)
{
	return (int64_t)(v > (UINT64_C(1) << 53) ? (UINT64_C(1) << 53) : v);
}

/* One line of text, for a field of a report: cut and cleaned rather than refused. */
static void text_field(struct buf *text, char *dst, size_t size)
{
	size_t n = text->len;

	while (n && (text->data[n - 1] == '\n' || text->data[n - 1] == ' '))
		n--;
	if (n >= size)
		n = size - 1;
	for (size_t i = 0; i < n; i++) {
		char c = text->data[i];

		dst[i] = c >= 0x20 && c < 0x7f ? c : '?';
	}
	dst[n] = '\0';
}

static void read_text(int dir_fd, const char *path, struct buf *text, char *dst, size_t size)
{
	*dst = '\0';
	if (file_read(dir_fd, path, text))
		text_field(text, dst, size);
}

static int64_t read_count(int dir_fd, const char *path, struct buf *text, uint64_t max)
{
	const char *p, *end;
	uint64_t v;

	if (!file_read(dir_fd, path, text))
		return REPORT_UNKNOWN;
	p = text->data;
	end = p + text->len;
	if (!text_u64(&p, end, &v) || v > max)
		return REPORT_UNKNOWN;
	text_skip(&p, end, "\n");
	return p == end ? (int64_t)v : REPORT_UNKNOWN;
}

/**
 * module_read() - read what the kernel module says under /sys/kernel/tandem
 * @root_fd: directory that stands for "/"
 * @text: scratch
 * @m: set in any case; a file that is missing or odd gives an unknown value
 *
 * The module may come and go at any time, also while it is being read: a module
 * without a version is no module.
 */
void module_read(int root_fd, struct buf *text, struct report_module *m)
{
	static const struct {
		const char *path;
		size_t offset;
		size_t size;
	} texts[] = {
#define FILE_TEXT(path, field) \
	{ path, offsetof(struct report_module, field), sizeof(((struct report_module *)0)->field) }
		FILE_TEXT("hypervisor", hypervisor),
		FILE_TEXT("features", features),
		FILE_TEXT("topology/flatten", flatten),
		FILE_TEXT("topology/variant", variant),
		FILE_TEXT("topology/state", topology),
		FILE_TEXT("topology/reason", reason),
		FILE_TEXT("hints/mode", hints_mode),
		FILE_TEXT("hints/state", hints_state),
		FILE_TEXT("gate/state", gate),
	};
	char path[64];
	int dir;

	memset(m, 0, sizeof(*m));
	m->gate_steal_permille = REPORT_UNKNOWN;
	for (size_t i = 0; i < MODULE_STAT_NR; i++)
		m->stats[i] = REPORT_UNKNOWN;
	dir = openat(root_fd, "sys/kernel/tandem", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	read_text(dir, "version", text, m->version, sizeof(m->version));
	m->present = *m->version;
	if (m->present) {
		for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
			read_text(dir, texts[i].path, text, (char *)m + texts[i].offset,
				  texts[i].size);
		m->gate_steal_permille = read_count(dir, "gate/steal_permille", text, 1000);
		for (size_t i = 0; i < MODULE_STAT_NR; i++) {
			snprintf(path, sizeof(path), "stats/%s", module_stat_names[i]);
			m->stats[i] = read_count(dir, path, text, INT64_MAX);
		}
	}
	close(dir);
}

static bool read_cpus(struct sampler *s, const char *path, int64_t *count)
{
	uint64_t n;

	if (!file_read(s->root_fd, path, &s->text) ||
	    !proc_cpulist_parse(s->text.data, s->text.len, &n) || !n)
		return false;
	*count = (int64_t)n;
	return true;
}

static bool read_uptime(struct sampler *s, int64_t *uptime_ms)
{
	uint64_t ms;

	if (!file_read(s->root_fd, "proc/uptime", &s->text) ||
	    !proc_uptime_parse(s->text.data, s->text.len, &ms))
		return false;
	*uptime_ms = clamp_count(ms);
	return true;
}

/* The files that a report cannot do without. Returns the one that failed, or NULL. */
static const char *read_needed(struct sampler *s, struct report *r)
{
	if (!read_uptime(s, &r->uptime_ms))
		return "proc/uptime";
	if (!file_read(s->root_fd, "proc/stat", &s->text) ||
	    !proc_stat_parse(s->text.data, s->text.len, &s->now))
		return "proc/stat";
	if (!read_cpus(s, "sys/devices/system/cpu/online", &r->vcpus_online))
		return "sys/devices/system/cpu/online";
	if (!read_cpus(s, "sys/devices/system/cpu/present", &r->vcpus_present))
		return "sys/devices/system/cpu/present";
	read_text(s->root_fd, "proc/sys/kernel/random/boot_id", &s->text, r->boot_id,
		  sizeof(r->boot_id));
	return *r->boot_id ? NULL : "proc/sys/kernel/random/boot_id";
}

static void read_optional(struct sampler *s, struct report *r)
{
	struct proc_psi psi;
	uint64_t load[3];

	read_text(s->root_fd, "proc/sys/kernel/hostname", &s->text, r->host, sizeof(r->host));
	if (file_read(s->root_fd, "proc/loadavg", &s->text) &&
	    proc_loadavg_parse(s->text.data, s->text.len, load)) {
		r->load1_centi = clamp_count(load[0]);
		r->load5_centi = clamp_count(load[1]);
		r->load15_centi = clamp_count(load[2]);
	}
	if (file_read(s->root_fd, "proc/pressure/cpu", &s->text) &&
	    proc_psi_parse(s->text.data, s->text.len, &psi)) {
		r->psi_avg10_centi = (int64_t)psi.avg10_centi;
		r->psi_total_us = clamp_count(psi.total_us);
	}
	module_read(s->root_fd, &s->text, &r->module);
}

/* One line for each change, none for each sample. */
static void log_changes(struct sampler *s, const char *broken, const struct report_module *m)
{
	if (broken && broken != s->broken)
		log_warn("cannot read /%s: it is missing or not understood, no sample until it is",
			 broken);
	if (!broken && s->broken)
		log_info("/%s can be read again", s->broken);
	s->broken = broken;
	if (broken || s->module_seen == m->present)
		return;
	if (m->present)
		log_info("module tandem %s found (%s)", m->version,
			 *m->hypervisor ? m->hypervisor : "hypervisor unknown");
	else
		log_info("module tandem is %s: reports go without its part",
			 s->module_seen < 0 ? "not loaded" : "gone");
	s->module_seen = m->present;
}

/**
 * sampler_take() - take a sample
 * @s: the sampler
 * @r: filled in, but for period_ms, heartbeat_ms and dropped
 *
 * The rates are those since the sample before; they are unknown in the first
 * one, and when no time has passed.
 *
 * Return: false, after one log line when it begins, when a file that a report
 * cannot do without is missing or not understood.
 */
bool sampler_take(struct sampler *s, struct report *r)
{
	struct proc_stat swap;
	const char *broken;

	report_init(r);
	broken = read_needed(s, r);
	if (!broken)
		read_optional(s, r);
	log_changes(s, broken, &r->module);
	if (broken)
		return false;

	text_copy(r->agent, sizeof(r->agent), TANDEM_VERSION);
	r->seq = ++s->seq;
	r->used_ms = ticks_to_ms(s->now.total.used, s->user_hz);
	r->steal_ms = ticks_to_ms(s->now.total.steal, s->user_hz);
	r->idle_ms = ticks_to_ms(s->now.total.idle, s->user_hz);
	r->iowait_ms = ticks_to_ms(s->now.total.iowait, s->user_hz);
	r->runq = clamp_count(s->now.procs_running);
	if (s->before_uptime_ms != REPORT_UNKNOWN && r->uptime_ms > s->before_uptime_ms)
		sample_rates(&s->before, &s->now, s->user_hz, r->uptime_ms - s->before_uptime_ms,
			     r);
	s->before_uptime_ms = r->uptime_ms;
	swap = s->before;
	s->before = s->now;
	s->now = swap;
	return true;
}
