/* SPDX-License-Identifier: GPL-2.0 */
/* The host daemon's core. tandem-groupd.c has its options and its main(). */
#ifndef TANDEM_GROUPD_H
#define TANDEM_GROUPD_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>
#include <urcu/list.h>

#include "conf.h"
#include "ctl.h"
#include "guest.h"
#include "line.h"
#include "log.h"
#include "rate.h"
#include "xensrc.h"

#define GROUPD_CONF_PATH	"/etc/tandem/groupd.conf"
#define GROUPD_SOCKET_PATH	"/run/tandem/groupd.sock"
#define GROUPD_GUESTS_GLOB	"/run/tandem/guests/*.sock"
/* A guest whose socket file is gone is forgotten after so long. */
#define GROUPD_FORGET_MS	60000

/**
 * struct groupd_conf - the configuration of tandem-groupd
 * @sockets: the guests' sockets: a directory and a pattern in it
 * @socket: control socket
 * @xenstore: follow Xen domains: "auto", "on" or "off"
 * @interval_s: print the table this often
 * @max_guests: have no more guests than this
 * @reports_per_s: read no more reports of a guest in a second
 */
struct groupd_conf {
	char sockets[CTL_PATH_MAX];
	char socket[CTL_PATH_MAX];
	char xenstore[8];
	int64_t interval_s;
	int64_t max_guests;
	int64_t reports_per_s;
};

/**
 * struct guest - a guest, and its connection unless it is a Xen domain
 * @item: for pub_retire()
 * @node: in groupd's list: RCU, walked by the control thread
 * @view: what is known, as it is published: RCU
 * @groupd: whose guest
 * @now: what is known, as the event loop fills it in
 * @dirty: @now has changed since it was published
 * @wanted: the Xen domain's own name, which another guest may have
 * @answered: the Xen domain's report was looked for
 * @path: its socket, or ""
 * @named: the administrator named it: never forgotten
 * @fd: the connection, or -1
 * @io: reads, unless the guest has sent too much lately
 * @timer: connects again, or reads again
 * @backoff_ms: wait this long before the next attempt to connect
 * @error: errno of the last attempt, so that each reason gives one line
 * @lines: bounds lines, and with them the parsing
 * @bytes: bounds bytes, also those without a newline
 * @odd: limit for lines about what it sends
 * @talk: limit for lines about its coming and going
 * @known: a report came at some time, so that @boot_id and @seq are valid
 * @boot_id: of its last report, also over a reconnect
 * @seq: likewise
 * @in: splitter for what it sends
 */
struct guest {
	struct pub_item item;
	struct cds_list_head node;
	struct guest_view *view;
	struct groupd *groupd;
	struct guest_view now;
	bool dirty;
	char wanted[GUEST_NAME_MAX];
	bool answered;
	char path[CTL_PATH_MAX];
	bool named;
	int fd;
	ev_io io;
	ev_timer timer;
	int64_t backoff_ms;
	int error;
	struct rate_bucket lines;
	struct rate_bucket bytes;
	struct log_limit odd;
	struct log_limit talk;
	bool known;
	char boot_id[40];
	int64_t seq;
	struct line_splitter in;
};

/**
 * struct groupd - the daemon
 * @loop: its event loop
 * @conf: its configuration
 * @guests: all guests: RCU
 * @count: how many
 * @retired: what the control thread may still see
 * @tick: publishes counters, forgets, reclaims
 * @watch: inotify on the directory of the sockets
 * @watch_fd: its descriptor, or -1
 * @watch_wd: the directory's watch, or -1 while there is no directory
 * @watch_error: errno of the last attempt to look there, so that each reason gives one line
 * @ticks: since the start
 * @many: limit for the line about too many guests
 * @domains: limit for lines about Xen domains that come and go
 * @odd_name: limit for the line about names that cannot be used
 * @tok: JSON parser
 * @ctl: control socket, or NULL
 * @xen: the Xen domains, or NULL
 * @xen_io: news of them
 * @changed: called after each report of a guest, or NULL
 * @changed_arg: passed to it
 */
struct groupd {
	struct ev_loop *loop;
	struct groupd_conf conf;
	struct cds_list_head guests;
	int64_t count;
	struct pub_retired retired;
	ev_timer tick;
	ev_io watch;
	int watch_fd;
	int watch_wd;
	int watch_error;
	unsigned int ticks;
	struct log_limit many;
	struct log_limit domains;
	struct log_limit odd_name;
	struct json_tokener *tok;
	struct ctl *ctl;
	struct xensrc *xen;
	ev_io xen_io;
	void (*changed)(void *arg);
	void *changed_arg;
};

extern const struct conf_table groupd_conf_table;

void groupd_conf_init(struct groupd_conf *conf);
bool groupd_start(struct groupd *gd, struct ev_loop *loop, const struct groupd_conf *conf,
		  bool control);
void groupd_scan(struct groupd *gd);
void groupd_reconfigure(struct groupd *gd, const struct groupd_conf *conf);
void groupd_stop(struct groupd *gd);
void groupd_json(struct groupd *gd, struct buf *out);
void groupd_table(struct groupd *gd, struct buf *out);
bool groupd_all_answered(struct groupd *gd, bool named_only);

struct guest *guest_new(struct groupd *gd, const char *name, const char *path, bool named);
struct guest *guest_add(struct groupd *gd, const char *name, const char *path, bool named);
struct guest *guest_find(struct groupd *gd, const char *name);
void guest_remove(struct guest *g);
void guest_publish(struct guest *g);
void guest_connect_now(struct guest *g);
void guest_take(struct guest *g, const char *text, size_t len);

void guest_xen_start(struct groupd *gd);
void guest_xen_stop(struct groupd *gd);

#endif
