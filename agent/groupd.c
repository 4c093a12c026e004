// SPDX-License-Identifier: GPL-2.0
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <json-c/json.h>
#include <urcu/rculist.h>

#include "groupd.h"
#include "table.h"

#define TICK_S 1.
/* Look for a missing directory every so many ticks. */
#define TICKS_DIR 5

#define KEY_INT(field, lo, hi) \
	{ "groupd", #field, CONF_INT, offsetof(struct groupd_conf, field), lo, hi, NULL }
#define KEY_TEXT(field, check) \
	{ "groupd", #field, CONF_TEXT, offsetof(struct groupd_conf, field), 0, \
	  sizeof(((struct groupd_conf *)0)->field), check }

static const char *check_glob(const char *value)
{
	const char *slash = strrchr(value, '/');
	size_t wild = strcspn(value, "*?[");

	if (*value != '/' || !slash[1] || value + wild < slash)
		return "an absolute path with wildcards in its last part only";
	return NULL;
}

static const char *check_xenstore(const char *value)
{
	if (!strcmp(value, "auto") || !strcmp(value, "on") || !strcmp(value, "off"))
		return NULL;
	return "auto, on or off";
}

static const struct conf_key groupd_keys[] = {
	KEY_TEXT(sockets, check_glob),
	KEY_TEXT(socket, ctl_check_path),
	KEY_TEXT(xenstore, check_xenstore),
	KEY_INT(interval_s, 1, 3600),
	KEY_INT(max_guests, 1, 4096),
	KEY_INT(reports_per_s, 1, 1000),
};

const struct conf_table groupd_conf_table = { groupd_keys, ARRAY_SIZE(groupd_keys) };

/**
 * groupd_conf_init() - the defaults
 * @conf: set to them
 */
void groupd_conf_init(struct groupd_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	text_copy(conf->sockets, sizeof(conf->sockets), GROUPD_GUESTS_GLOB);
	text_copy(conf->socket, sizeof(conf->socket), GROUPD_SOCKET_PATH);
	text_copy(conf->xenstore, sizeof(conf->xenstore), "auto");
	conf->interval_s = 5;
	conf->max_guests = 1024;
	conf->reports_per_s = 10;
}

/* The pattern's directory and last part; false when there is no pattern. */
static bool split_glob(const struct groupd *gd, char *dir, const char **pattern)
{
	char *slash;

	if (!*gd->conf.sockets)
		return false;
	text_copy(dir, CTL_PATH_MAX, gd->conf.sockets);
	slash = strrchr(dir, '/');
	*pattern = gd->conf.sockets + (slash - dir) + 1;
	slash[slash == dir] = '\0';
	return true;
}

static void scan_entry(struct groupd *gd, const char *dir, const char *file)
{
	char path[CTL_PATH_MAX], name[256];
	struct guest *g;
	size_t n;

	if (!text_copy(name, sizeof(name), file))
		return;
	n = strlen(name);
	if (n > 5 && !strcmp(name + n - 5, ".sock"))
		name[n - 5] = '\0';
	if (strlen(dir) + n + 2 > sizeof(path)) {
		log_limited(&gd->odd_name, LOG_WARNING,
			    "guest %s: the path of its socket is too long", name);
		return;
	}
	stpcpy(stpcpy(stpcpy(path, dir), "/"), file);
	g = guest_find(gd, name);
	if (!g)
		guest_add(gd, name, path, false);
	else if (!strcmp(g->path, path))
		guest_connect_now(g);
	else
		log_limited(&gd->odd_name, LOG_WARNING,
			    "guest %s: %s has that name already, %s is not added", name, g->path,
			    path);
}

/* One line for each reason why nothing is found, none for each look. */
static void look_result(struct groupd *gd, const char *dir, int error)
{
	if (error && error != gd->watch_error)
		log_warn("%s: cannot look for guests: %s, trying again until it works", dir,
			 strerror(error));
	gd->watch_error = error;
}

/**
 * groupd_scan() - look for new sockets
 * @gd: the daemon
 *
 * A guest that is known and not connected is tried at once, as its socket may be
 * a new one.
 */
void groupd_scan(struct groupd *gd)
{
	char path[CTL_PATH_MAX];
	struct dirent *entry;
	const char *pattern;
	DIR *dir;

	if (!split_glob(gd, path, &pattern))
		return;
	dir = opendir(path);
	look_result(gd, path, dir ? 0 : errno);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (!fnmatch(pattern, entry->d_name, FNM_PERIOD))
			scan_entry(gd, path, entry->d_name);
	}
	closedir(dir);
}

/* Watches before it scans, so that nothing is missed in between. */
static void watch_directory(struct groupd *gd)
{
	char path[CTL_PATH_MAX];
	const char *pattern;

	if (gd->watch_fd < 0 || gd->watch_wd >= 0 || !split_glob(gd, path, &pattern))
		return;
	gd->watch_wd = inotify_add_watch(gd->watch_fd, path,
					 IN_CREATE | IN_MOVED_TO | IN_MOVE_SELF | IN_ONLYDIR);
	if (gd->watch_wd >= 0)
		groupd_scan(gd);
	else
		look_result(gd, path, errno);
}

static void watch_cb(struct ev_loop *loop, ev_io *w, int revents)
{
	char data[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct groupd *gd = w->data;
	bool moved = false;
	ssize_t n;

	(void)loop;
	(void)revents;
	while ((n = read(gd->watch_fd, data, sizeof(data))) > 0) {
		for (const char *p = data; p < data + n;) {
			const struct inotify_event *e = (const void *)p;

			if (e->mask & IN_IGNORED && e->wd == gd->watch_wd)
				gd->watch_wd = -1;
			if (e->mask & IN_MOVE_SELF)
				moved = true;
			p += sizeof(*e) + e->len;
		}
	}
	if (moved && gd->watch_wd >= 0) {
		inotify_rm_watch(gd->watch_fd, gd->watch_wd);
		gd->watch_wd = -1;
	}
	if (gd->watch_wd >= 0)
		groupd_scan(gd);
	else
		watch_directory(gd);
}

static bool guest_outdated(const struct guest *g, int64_t now_ms)
{
	if (g->named || g->fd >= 0 || g->now.domid >= 0 ||
	    now_ms - g->now.since_ms < GROUPD_FORGET_MS)
		return false;
	return access(g->path, F_OK) && errno == ENOENT;
}

static void tick_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct groupd *gd = w->data;
	int64_t now_ms = clock_ms();
	struct guest *g, *next;

	(void)loop;
	(void)revents;
	cds_list_for_each_entry_safe(g, next, &gd->guests, node) {
		if (g->dirty)
			guest_publish(g);
		if (guest_outdated(g, now_ms)) {
			log_info("guest %s: forgotten, its socket is gone", g->now.name);
			guest_remove(g);
		}
	}
	if (gd->xen)
		xensrc_check(gd->xen);
	if (++gd->ticks % TICKS_DIR == 0)
		watch_directory(gd);
	pub_reclaim(&gd->retired);
}

/* The control thread's side of the RCU: what it sees is one whole view a guest. */
static bool groupd_answer(void *arg, const char *get, struct buf *out)
{
	struct groupd *gd = arg;
	int64_t now_ms = clock_ms();
	struct guest_view *view;
	bool first = true;
	struct guest *g;

	if (strcmp(get, "guests"))
		return false;
	guests_open(out);
	rcu_read_lock();
	cds_list_for_each_entry_rcu(g, &gd->guests, node) {
		view = rcu_dereference(g->view);
		if (!view)
			continue;
		guests_next(out, &first);
		guest_encode(view, now_ms, out);
	}
	rcu_read_unlock();
	guests_close(out);
	return true;
}

/**
 * groupd_json() - all guests as one JSON object
 * @gd: the daemon
 * @out: text is appended
 *
 * Context: the event loop's thread.
 */
void groupd_json(struct groupd *gd, struct buf *out)
{
	int64_t now_ms = clock_ms();
	bool first = true;
	struct guest *g;

	guests_open(out);
	cds_list_for_each_entry(g, &gd->guests, node) {
		guests_next(out, &first);
		guest_encode(&g->now, now_ms, out);
	}
	guests_close(out);
}

/**
 * groupd_table() - all guests as a table for people
 * @gd: the daemon
 * @out: text is appended
 *
 * Context: the event loop's thread.
 */
void groupd_table(struct groupd *gd, struct buf *out)
{
	int64_t now_ms = clock_ms();
	struct guest *g;
	struct table t;

	guests_table_begin(&t);
	cds_list_for_each_entry(g, &gd->guests, node)
		guests_table_row(&t, &g->now, now_ms);
	table_render(&t, out);
	table_free(&t);
}

/**
 * groupd_all_answered() - is there a report of every guest that has one?
 * @gd: the daemon
 * @named_only: look at those only that the administrator named
 *
 * Return: true when there is.
 */
bool groupd_all_answered(struct groupd *gd, bool named_only)
{
	struct guest *g;

	if (!named_only && gd->xen && !xensrc_settled(gd->xen))
		return false;
	cds_list_for_each_entry(g, &gd->guests, node) {
		if (!g->now.reported && !g->answered && (g->named || !named_only))
			return false;
	}
	return true;
}

static void watch_start(struct groupd *gd)
{
	gd->watch_wd = -1;
	gd->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (gd->watch_fd < 0) {
		log_warn("cannot watch for new guests: %s: those that are there now are all",
			 strerror(errno));
		groupd_scan(gd);
		return;
	}
	ev_io_init(&gd->watch, watch_cb, gd->watch_fd, EV_READ);
	gd->watch.data = gd;
	ev_io_start(gd->loop, &gd->watch);
	watch_directory(gd);
}

/**
 * groupd_start() - start the daemon's core
 * @gd: the daemon
 * @loop: its event loop
 * @conf: its configuration, checked; an empty @sockets looks for no guests
 * @control: serve the control socket
 *
 * Return: false after one log line.
 */
bool groupd_start(struct groupd *gd, struct ev_loop *loop, const struct groupd_conf *conf,
		  bool control)
{
	memset(gd, 0, sizeof(*gd));
	gd->loop = loop;
	gd->conf = *conf;
	gd->many.interval_ms = 60000;
	gd->odd_name.interval_ms = 60000;
	gd->domains.interval_ms = 2000;
	gd->domains.burst = 30;
	CDS_INIT_LIST_HEAD(&gd->guests);
	gd->tok = json_reader_new(JSON_DEPTH_MAX);
	if (!gd->tok) {
		log_err("cannot start: out of memory");
		return false;
	}
	if (control) {
		gd->ctl = ctl_start(conf->socket, CTL_IDLE_MS, groupd_answer, gd);
		if (!gd->ctl) {
			json_tokener_free(gd->tok);
			return false;
		}
	}
	ev_timer_init(&gd->tick, tick_cb, TICK_S, TICK_S);
	gd->tick.data = gd;
	ev_timer_start(loop, &gd->tick);
	watch_start(gd);
	guest_xen_start(gd);
	return true;
}

static bool glob_matches(const struct groupd *gd, const char *path)
{
	return *gd->conf.sockets && !fnmatch(gd->conf.sockets, path, FNM_PATHNAME | FNM_PERIOD);
}

/**
 * groupd_reconfigure() - change the configuration of a running daemon
 * @gd: the daemon
 * @conf: the new configuration, checked; another control socket needs a restart
 *
 * Guests that are not among the sockets any more are forgotten. A new rate is used
 * from a guest's next connection on.
 */
void groupd_reconfigure(struct groupd *gd, const struct groupd_conf *conf)
{
	char socket[CTL_PATH_MAX];
	struct guest *g, *next;

	text_copy(socket, sizeof(socket), gd->conf.socket);
	if (strcmp(gd->conf.xenstore, conf->xenstore) ||
	    gd->conf.max_guests != conf->max_guests ||
	    gd->conf.reports_per_s != conf->reports_per_s)
		guest_xen_stop(gd);
	if (strcmp(socket, conf->socket))
		log_warn("the control socket stays %s: another one needs a restart", socket);
	gd->conf = *conf;
	text_copy(gd->conf.socket, sizeof(gd->conf.socket), socket);
	cds_list_for_each_entry_safe(g, next, &gd->guests, node) {
		if (!g->named && g->now.domid < 0 && !glob_matches(gd, g->path))
			guest_remove(g);
	}
	if (gd->watch_wd >= 0)
		inotify_rm_watch(gd->watch_fd, gd->watch_wd);
	gd->watch_wd = -1;
	watch_directory(gd);
	guest_xen_start(gd);
}

/**
 * groupd_stop() - stop, and give everything back
 * @gd: the daemon
 */
void groupd_stop(struct groupd *gd)
{
	struct guest *g, *next;

	ctl_stop(gd->ctl);
	guest_xen_stop(gd);
	ev_timer_stop(gd->loop, &gd->tick);
	if (gd->watch_fd >= 0) {
		ev_io_stop(gd->loop, &gd->watch);
		close(gd->watch_fd);
	}
	cds_list_for_each_entry_safe(g, next, &gd->guests, node)
		guest_remove(g);
	pub_reclaim(&gd->retired);
	json_tokener_free(gd->tok);
}
