/* SPDX-License-Identifier: GPL-2.0 */
/* Taking a sample: files below a root directory in, struct report out. */
#ifndef TANDEM_SAMPLE_H
#define TANDEM_SAMPLE_H

#include "procfs.h"
#include "report.h"
#include "text.h"

/**
 * struct sampler - what is kept from one sample to the next
 * @root_fd: directory that stands for "/"
 * @user_hz: ticks of /proc/stat in a second
 * @text: the file that is being read; kept to not allocate each time
 * @now: /proc/stat of this sample
 * @before: /proc/stat of the sample before
 * @before_uptime_ms: when that was; REPORT_UNKNOWN for never
 * @seq: samples taken
 * @module_seen: the module was there last time: 0, 1, or -1 for not looked yet
 * @broken: name of the file that could not be read last time, for one log line
 */
struct sampler {
	int root_fd;
	uint64_t user_hz;
	struct buf text;
	struct proc_stat now;
	struct proc_stat before;
	int64_t before_uptime_ms;
	int64_t seq;
	int module_seen;
	const char *broken;
};

bool sampler_open(struct sampler *s, const char *root);
void sampler_close(struct sampler *s);
bool sampler_take(struct sampler *s, struct report *r);
void sample_rates(const struct proc_stat *before, const struct proc_stat *now, uint64_t user_hz,
		  int64_t interval_ms, struct report *r);
void module_read(int root_fd, struct buf *text, struct report_module *m);
bool file_read(int dir_fd, const char *path, struct buf *text);

#endif
