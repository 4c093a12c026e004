// SPDX-License-Identifier: GPL-2.0
/*
 * The connection to one guest. Everything that comes from it is hostile: bytes and
 * lines are bounded by token buckets, a line is parsed only when it has a token, and
 * a guest that is over its rate is not read for a while, so that what it sends waits
 * in its own VMM. Per guest there is one splitter and no queue: memory is constant.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <urcu/rculist.h>

#include "groupd.h"

#define BACKOFF_FIRST_MS 250
#define BACKOFF_LAST_MS 10000

/**
 * guest_publish() - let the control thread see what is known about a guest
 * @g: the guest
 *
 * Without memory for it the older view stays.
 */
void guest_publish(struct guest *g)
{
	struct guest_view *view = malloc(sizeof(*view));

	if (!view)
		return;
	*view = g->now;
	pub_replace(&g->groupd->retired, &g->view, view);
	g->dirty = false;
}

static void guest_wait(struct guest *g, int64_t ms)
{
	g->timer.repeat = (double)ms / 1000.;
	ev_timer_again(g->groupd->loop, &g->timer);
}

static void guest_retry_later(struct guest *g)
{
	guest_wait(g, g->backoff_ms);
	g->backoff_ms *= 2;
	if (g->backoff_ms > BACKOFF_LAST_MS)
		g->backoff_ms = BACKOFF_LAST_MS;
}

static void guest_disconnect(struct guest *g, const char *why)
{
	struct ev_loop *loop = g->groupd->loop;

	ev_io_stop(loop, &g->io);
	close(g->fd);
	g->fd = -1;
	g->now.connected = false;
	g->now.reported = false;
	g->now.since_ms = clock_ms();
	g->now.hints_per_s_milli = REPORT_UNKNOWN;
	guest_publish(g);
	log_limited(&g->talk, LOG_INFO, "guest %s: gone: %s", g->now.name, why);
	guest_retry_later(g);
}

static void guest_seen(struct guest *g, const struct report *r)
{
	if (g->known && strcmp(g->boot_id, r->boot_id))
		log_limited(&g->talk, LOG_INFO, "guest %s: rebooted (boot %s)", g->now.name,
			    r->boot_id);
	else if (g->known && r->seq < g->seq)
		log_limited(&g->talk, LOG_INFO, "guest %s: its agent was restarted", g->now.name);
	g->known = true;
	text_copy(g->boot_id, sizeof(g->boot_id), r->boot_id);
	g->seq = r->seq;
}

static void guest_report(struct guest *g, const struct report *r)
{
	struct groupd *gd = g->groupd;

	guest_seen(g, r);
	g->now.hints_per_s_milli = g->now.reported ?
		guest_hints_rate(&g->now.report, r, g->now.hints_per_s_milli) : REPORT_UNKNOWN;
	g->now.report = *r;
	g->now.reported = true;
	g->now.report_ms = clock_ms();
	g->now.reports++;
	g->backoff_ms = BACKOFF_FIRST_MS;
	guest_publish(g);
	if (gd->changed)
		gd->changed(gd->changed_arg);
}

/**
 * guest_take() - take a report of a guest
 * @g: the guest
 * @text: the report, of any kind
 * @len: its length
 */
void guest_take(struct guest *g, const char *text, size_t len)
{
	char error[REPORT_ERROR_MAX];
	struct report r;

	if (report_decode(g->groupd->tok, text, len, &r, error)) {
		guest_report(g, &r);
		return;
	}
	g->now.malformed++;
	g->dirty = true;
	log_limited(&g->odd, LOG_WARNING, "guest %s: a report is dropped: %s", g->now.name, error);
}

static bool guest_line(void *arg, char *line, size_t len)
{
	struct guest *g = arg;

	if (rate_take(&g->lines, 1, clock_ms())) {
		guest_take(g, line, len);
		return true;
	}
	g->now.limited++;
	g->dirty = true;
	log_limited(&g->odd, LOG_WARNING,
		    "guest %s: sends too fast, lines over the rate are dropped", g->now.name);
	return true;
}

/*
 * Reads go on when the guest has a token of either kind again. Returns false when it
 * has one now.
 */
static bool guest_throttle(struct guest *g, int64_t now_ms)
{
	int64_t lines_ms = rate_wait_ms(&g->lines, now_ms);
	int64_t bytes_ms = rate_wait_ms(&g->bytes, now_ms);
	int64_t ms = lines_ms > bytes_ms ? lines_ms : bytes_ms;

	if (!ms)
		return false;
	ev_io_stop(g->groupd->loop, &g->io);
	guest_wait(g, ms);
	return true;
}

static void guest_read(struct guest *g)
{
	uint64_t oversized = g->in.oversized;
	char data[LINE_BYTES_MAX];
	ssize_t n = recv(g->fd, data, sizeof(data), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		guest_disconnect(g, n ? strerror(errno) : "its socket was closed");
		return;
	}
	line_feed(&g->in, data, (size_t)n, guest_line, g);
	if (g->in.oversized != oversized) {
		g->now.oversized = g->in.oversized;
		g->dirty = true;
		log_limited(&g->odd, LOG_WARNING,
			    "guest %s: a line of more than %d bytes is dropped", g->now.name,
			    LINE_BYTES_MAX);
	}
	rate_charge(&g->bytes, n, clock_ms());
	guest_throttle(g, clock_ms());
}

static int guest_open(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd, error;

	if (!text_copy(sa.sun_path, sizeof(sa.sun_path), path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static void guest_connect(struct guest *g)
{
	/* The empty line ends what an earlier client may have left half sent. */
	static const char poll[] = "\n{\"v\":1,\"type\":\"poll\"}\n";
	struct groupd *gd = g->groupd;
	int64_t now_ms = clock_ms();

	g->fd = guest_open(g->path);
	if (g->fd < 0) {
		if (errno != g->error)
			log_limited(&g->talk, LOG_INFO, "guest %s: cannot connect to %s: %s",
				    g->now.name, g->path, strerror(errno));
		g->error = errno;
		guest_retry_later(g);
		return;
	}
	g->error = 0;
	g->now.connected = true;
	g->now.since_ms = now_ms;
	line_reset(&g->in);
	rate_init(&g->lines, gd->conf.reports_per_s, gd->conf.reports_per_s, now_ms);
	rate_init(&g->bytes, gd->conf.reports_per_s * LINE_BYTES_MAX,
		  gd->conf.reports_per_s * LINE_BYTES_MAX, now_ms);
	guest_publish(g);
	log_limited(&g->talk, LOG_INFO, "guest %s: connected", g->now.name);
	if (send(g->fd, poll, sizeof(poll) - 1, MSG_NOSIGNAL) != sizeof(poll) - 1) {
		guest_disconnect(g, "it does not take a message");
		return;
	}
	ev_io_set(&g->io, g->fd, EV_READ);
	ev_io_start(gd->loop, &g->io);
}

static void guest_io_cb(struct ev_loop *loop, ev_io *w, int revents)
{
	(void)loop;
	(void)revents;
	guest_read(w->data);
}

static void guest_timer_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct guest *g = w->data;

	(void)revents;
	ev_timer_stop(loop, w);
	/* The loop's time lags behind the clock while it is busy, so this may be early. */
	if (g->fd < 0)
		guest_connect(g);
	else if (!guest_throttle(g, clock_ms()))
		ev_io_start(loop, &g->io);
}

/**
 * guest_connect_now() - connect without waiting for the backoff
 * @g: the guest; nothing happens when it is connected
 */
void guest_connect_now(struct guest *g)
{
	if (g->fd >= 0 || g->now.domid >= 0)
		return;
	ev_timer_stop(g->groupd->loop, &g->timer);
	g->backoff_ms = BACKOFF_FIRST_MS;
	guest_connect(g);
}

/**
 * guest_find() - find a guest by name
 * @gd: the daemon
 * @name: the name
 *
 * Return: the guest, or NULL.
 */
struct guest *guest_find(struct groupd *gd, const char *name)
{
	struct guest *g;

	cds_list_for_each_entry(g, &gd->guests, node) {
		if (!strcmp(g->now.name, name))
			return g;
	}
	return NULL;
}

/**
 * guest_new() - add a guest without connecting to it
 * @gd: the daemon
 * @name: its name, 1 to GUEST_NAME_MAX - 1 bytes
 * @path: its socket, or ""
 * @named: never forget it
 *
 * Return: the guest; NULL, after a line, when there are too many, the name is
 * taken, or name or path cannot be used.
 */
struct guest *guest_new(struct groupd *gd, const char *name, const char *path, bool named)
{
	struct guest *g;

	if (gd->count >= gd->conf.max_guests) {
		log_limited(&gd->many, LOG_WARNING, "guest %s: more than %lld guests, not added",
			    name, (long long)gd->conf.max_guests);
		return NULL;
	}
	if (!*name || strlen(name) >= GUEST_NAME_MAX || !text_printable(name) ||
	    strlen(path) >= CTL_PATH_MAX || guest_find(gd, name)) {
		log_limited(&gd->odd_name, LOG_WARNING,
			    "guest '%.80s' at %.120s: not added, accepted: a name of 1 to %d printable bytes that no other guest has, a path of at most %d bytes",
			    name, path, GUEST_NAME_MAX - 1, CTL_PATH_MAX - 1);
		return NULL;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->groupd = gd;
	g->fd = -1;
	g->named = named;
	g->odd.interval_ms = 60000;
	g->talk.interval_ms = 10000;
	/* A reboot is "gone", "cannot connect", "connected" and "rebooted" in a second. */
	g->talk.burst = 7;
	g->backoff_ms = BACKOFF_FIRST_MS;
	g->now.since_ms = clock_ms();
	g->now.domid = -1;
	g->now.hints_per_s_milli = REPORT_UNKNOWN;
	text_copy(g->now.name, sizeof(g->now.name), name);
	text_copy(g->path, sizeof(g->path), path);
	ev_init(&g->io, guest_io_cb);
	ev_init(&g->timer, guest_timer_cb);
	g->io.data = g;
	g->timer.data = g;
	guest_publish(g);
	cds_list_add_tail_rcu(&g->node, &gd->guests);
	gd->count++;
	return g;
}

/**
 * guest_add() - add a guest, and connect to it
 * @gd: the daemon
 * @name: as for guest_new()
 * @path: its socket
 * @named: as for guest_new()
 *
 * Return: as for guest_new().
 */
struct guest *guest_add(struct groupd *gd, const char *name, const char *path, bool named)
{
	struct guest *g = guest_new(gd, name, path, named);

	if (g)
		guest_connect(g);
	return g;
}

/**
 * guest_remove() - forget a guest
 * @g: the guest; freed once the control thread cannot see it any more
 */
void guest_remove(struct guest *g)
{
	struct groupd *gd = g->groupd;

	ev_io_stop(gd->loop, &g->io);
	ev_timer_stop(gd->loop, &g->timer);
	if (g->fd >= 0)
		close(g->fd);
	cds_list_del_rcu(&g->node);
	gd->count--;
	pub_replace(&gd->retired, &g->view, NULL);
	pub_retire(&gd->retired, &g->item);
}
