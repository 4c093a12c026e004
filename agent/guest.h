/* SPDX-License-Identifier: GPL-2.0 */
/* What the host knows about a guest, and how it shows it. */
#ifndef TANDEM_GUEST_H
#define TANDEM_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "pub.h"
#include "report.h"
#include "text.h"

#define GUEST_NAME_MAX 65
/* A guest is silent after so many heartbeats without a report. */
#define GUEST_SILENT_HEARTBEATS 3
/* guests, array, guest, report, module, stats, number; and one to spare */
#define GUESTS_JSON_DEPTH 8

enum guest_state {
	GUEST_OK,
	GUEST_WAITING,	/* connected, no report yet */
	GUEST_SILENT,	/* connected, the last report is too old */
	GUEST_GONE,	/* not connected */
	GUEST_STATE_NR
};

/**
 * struct guest_view - what is known about a guest
 * @item: for pub_retire()
 * @name: the host's name for it
 * @domid: the Xen domain's number, or -1
 * @connected: its socket is connected, or xenstored says that there is such a domain
 * @reported: @report is of this connection
 * @since_ms: clock_ms() when @connected last changed
 * @report_ms: clock_ms() when @report came
 * @hints_per_s_milli: hints sent by the guest, in thousandths a second, or
 *		       REPORT_UNKNOWN
 * @reports: valid reports
 * @malformed: lines or nodes that were no valid report
 * @oversized: those that were too long
 * @limited: those dropped unread because there were too many
 * @report: the last report
 *
 * The event loop fills one in and publishes copies, which never change.
 */
struct guest_view {
	struct pub_item item;
	char name[GUEST_NAME_MAX];
	int64_t domid;
	bool connected;
	bool reported;
	int64_t since_ms;
	int64_t report_ms;
	int64_t hints_per_s_milli;
	uint64_t reports;
	uint64_t malformed;
	uint64_t oversized;
	uint64_t limited;
	struct report report;
};

enum guest_state guest_state(const struct guest_view *g, int64_t now_ms);
int64_t guest_age_ms(const struct guest_view *g, int64_t now_ms);
int64_t guest_hints_rate(const struct report *before, const struct report *now, int64_t known);
void guest_encode(const struct guest_view *g, int64_t now_ms, struct buf *out);
bool guest_from_json(struct json_object *obj, int64_t now_ms, struct guest_view *g, char *error);
void guests_open(struct buf *out);
void guests_next(struct buf *out, bool *first);
void guests_close(struct buf *out);

struct table;

void guests_table_begin(struct table *t);
void guests_table_row(struct table *t, const struct guest_view *g, int64_t now_ms);
bool guests_table_from_json(const char *text, size_t len, struct buf *out, char *error);

#endif
