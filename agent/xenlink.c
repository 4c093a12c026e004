// SPDX-License-Identifier: GPL-2.0
/*
 * The report is one node that is overwritten; there are no transactions. What the host says
 * are nodes below control/tandem, which one watch covers. All calls are made by the thread of
 * xswork.h; between it and the event loop there are one report (the newest wins), and the
 * last value of each of the host's nodes, whatever either side does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rate.h"
#include "sample.h"
#include "xenlink.h"
#include "xswork.h"

/* The agent's end waits so long for xenstored. */
#define STOP_MS 1000
/* Looks at what the host says: in a second, and at once. */
#define LOOKS_PER_S 2
#define LOOKS_AT_ONCE 10
#define QUOTA_HINT \
	": is the guest's quota in xenstored used up? Remove what fills its data, or raise the quota in dom0"
#define HOME_DOM0 "/local/domain/0/"

/**
 * struct xenlink_said - one thing that the host says
 * @news: the event loop has not seen it yet
 * @there: it says something
 * @len: length of @text, or of what would not fit
 * @text: what it says
 */
struct xenlink_said {
	bool news;
	bool there;
	size_t len;
	char text[SAID_VALUE_MAX];
};

/**
 * struct xenlink_work - what the thread and the event loop share
 * @base: the thread
 * @out_len: length of the report that waits to be written; 0 for none. Protected by
 *	@base.lock, as is all below up to @home
 * @out: that report
 * @said: what the host says
 * @opened: the event loop does not know yet that there is a connection
 * @lost: nor that there is none
 * @refused: reports that xenstored did not take, and the event loop has not counted
 * @home: what stands before a path; the thread's, as is all below
 * @fresh: the connection is a new one
 * @look: read what the host says
 * @looks: bounds that
 * @written: the report's node is there
 * @error: errno of the last write, so that each reason gives one line
 * @odd: limit for that line
 * @deaf: limit for the line about the host's nodes
 */
struct xenlink_work {
	struct xswork base;
	size_t out_len;
	char out[XENLINK_REPORT_MAX];
	struct xenlink_said said[SAID_NR];
	bool opened;
	bool lost;
	uint64_t refused;
	char home[sizeof(HOME_DOM0)];
	bool fresh;
	bool look;
	struct rate_bucket looks;
	bool written;
	int error;
	struct log_limit odd;
	struct log_limit deaf;
};

static const char *full_path(const struct xenlink_work *xw, const char *path, char *dst,
			     size_t size)
{
	snprintf(dst, size, "%s%s", xw->home, path);
	return dst;
}

/*
 * A domU's relative paths begin at its home. A dom0 that speaks to xenstored's socket has no
 * home there: "domid", which every home has, is not found.
 */
static void find_home(struct xenlink_work *xw)
{
	unsigned int len;
	char *domid = xswork_read(&xw->base, "domid", &len);

	*xw->home = '\0';
	if (!domid && errno != EACCES && xswork_by_socket())
		text_copy(xw->home, sizeof(xw->home), HOME_DOM0);
	free(domid);
}

static void work_opened(struct xswork *w)
{
	struct xenlink_work *xw = (struct xenlink_work *)w;
	char path[128];

	find_home(xw);
	if (!xswork_watch(w, full_path(xw, XENLINK_CONTROL, path, sizeof(path)), "host") &&
	    !xswork_lost(w))
		log_limited(&xw->deaf, LOG_WARNING,
			    "xenstore: cannot watch %s: %s: what the host says is read when connecting only",
			    path, strerror(errno));
	xw->fresh = true;
	xw->look = true;
	xw->written = false;
	xw->error = 0;
}

static void work_lost(struct xswork *w)
{
	struct xenlink_work *xw = (struct xenlink_work *)w;

	pthread_mutex_lock(&w->lock);
	xw->lost = true;
	xw->opened = false;
	pthread_mutex_unlock(&w->lock);
	xswork_note(w);
}

static void work_event(struct xswork *w, const char *path, const char *token)
{
	struct xenlink_work *xw = (struct xenlink_work *)w;

	(void)path;
	(void)token;
	xw->look = true;
}

/* Returns true when it is another value than before. */
static bool said_differs(const struct xenlink_said *s, const char *value, size_t len)
{
	if (s->there != !!value)
		return true;
	return value && (s->len != len || len >= sizeof(s->text) || memcmp(s->text, value, len));
}

static void look_at(struct xenlink_work *xw, int key)
{
	struct xenlink_said *s = &xw->said[key];
	char path[128], name[64];
	unsigned int len = 0;
	char *value;

	snprintf(name, sizeof(name), XENLINK_CONTROL "/%s", said_names[key]);
	value = xswork_read(&xw->base, full_path(xw, name, path, sizeof(path)), &len);
	if (!value && xswork_lost(&xw->base))
		return;
	if (!value && errno != ENOENT)
		log_limited(&xw->deaf, LOG_WARNING,
			    "xenstore: cannot read %s: %s: as if the host said nothing there",
			    path, strerror(errno));
	pthread_mutex_lock(&xw->base.lock);
	if (xw->fresh || said_differs(s, value, len)) {
		s->news = true;
		s->there = value;
		s->len = len;
		if (value)
			memcpy(s->text, value, len < sizeof(s->text) ? len : sizeof(s->text));
	}
	pthread_mutex_unlock(&xw->base.lock);
	free(value);
}

static const char *refusal_hint(int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
		return ": the toolstack has to let the guest write below its data";
	case ENOSPC:
	case E2BIG:
	case ENOMEM:
	case EINVAL:
		return QUOTA_HINT;
	default:
		return "";
	}
}

static void write_report(struct xenlink_work *xw, const char *report, size_t len)
{
	bool refused = false;
	char path[128];
	int error = 0;

	full_path(xw, XENLINK_REPORT, path, sizeof(path));
	if (!xswork_write(&xw->base, path, report, len)) {
		error = errno;
		/* The connection's end is said elsewhere, and the next one gets a report. */
		refused = !xswork_lost(&xw->base);
	}
	if (refused && error != xw->error)
		log_limited(&xw->odd, LOG_WARNING,
			    "xenstore: cannot write %s (%zu bytes): %s%s; trying again with the next report",
			    path, len, strerror(error), refusal_hint(error));
	else if (!error && xw->error)
		log_limited(&xw->odd, LOG_INFO, "xenstore: %s can be written again", path);
	if (!error)
		xw->written = true;
	if (!error || refused)
		xw->error = error;
	if (!error)
		return;
	pthread_mutex_lock(&xw->base.lock);
	xw->refused++;
	pthread_mutex_unlock(&xw->base.lock);
	xswork_note(&xw->base);
}

/* Returns after how many ms there is more to look at. */
static int64_t look(struct xenlink_work *xw)
{
	int64_t now_ms = clock_ms();

	if (!xw->look)
		return -1;
	if (!rate_take(&xw->looks, 1, now_ms))
		return rate_wait_ms(&xw->looks, now_ms);
	xw->look = false;
	for (int key = 0; key < SAID_NR; key++)
		look_at(xw, key);
	xswork_note(&xw->base);
	return -1;
}

static int64_t work_work(struct xswork *w)
{
	struct xenlink_work *xw = (struct xenlink_work *)w;
	char report[XENLINK_REPORT_MAX];
	int64_t wait = look(xw);
	size_t len;

	pthread_mutex_lock(&w->lock);
	len = xw->out_len;
	memcpy(report, xw->out, len);
	xw->out_len = 0;
	/* Told behind what the host says, so that the first report obeys it. */
	if (xw->fresh)
		xw->opened = true;
	pthread_mutex_unlock(&w->lock);
	if (xw->fresh)
		xswork_note(w);
	xw->fresh = false;
	if (len)
		write_report(xw, report, len);
	return wait;
}

static void work_closing(struct xswork *w)
{
	struct xenlink_work *xw = (struct xenlink_work *)w;
	char path[128];

	/* Nobody shall take it for the report of an agent that runs. */
	if (xw->written)
		xswork_rm(w, full_path(xw, XENLINK_DATA, path, sizeof(path)));
}

static void work_free(struct xswork *w)
{
	xswork_free(w);
	free(w);
}

static const struct xswork_ops work_ops = {
	.opened = work_opened,
	.lost = work_lost,
	.event = work_event,
	.work = work_work,
	.closing = work_closing,
	.free = work_free,
};

/* The event loop's side from here on. */

static void news_cb(struct ev_loop *loop, ev_io *io, int revents)
{
	struct xenlink *x = io->data;
	struct xenlink_work *xw = x->work;
	struct xenlink_said said[SAID_NR];
	bool opened, lost;

	(void)loop;
	(void)revents;
	xswork_noted(&xw->base);
	pthread_mutex_lock(&xw->base.lock);
	memcpy(said, xw->said, sizeof(said));
	for (int key = 0; key < SAID_NR; key++)
		xw->said[key].news = false;
	opened = xw->opened;
	lost = xw->lost;
	xw->opened = false;
	xw->lost = false;
	x->link.dropped += xw->refused;
	xw->refused = 0;
	pthread_mutex_unlock(&xw->base.lock);

	if (lost)
		x->connected = false;
	for (int key = 0; key < SAID_NR; key++) {
		struct xenlink_said *s = &said[key];

		if (s->news)
			x->link.events->said(x->link.arg, (enum said_key)key,
					     s->there ? s->text : NULL, s->len);
	}
	if (!opened)
		return;
	x->connected = true;
	x->link.events->opened(x->link.arg);
}

static void link_look(struct link *l)
{
	struct xenlink *x = (struct xenlink *)l;

	if (x->work) {
		xswork_check(&x->work->base);
		return;
	}
	if (x->failed)
		return;
	x->work = calloc(1, sizeof(*x->work));
	if (!x->work)
		return;
	x->work->odd.interval_ms = 60000;
	x->work->odd.burst = 3;
	x->work->deaf.interval_ms = 60000;
	rate_init(&x->work->looks, LOOKS_PER_S, LOOKS_AT_ONCE, clock_ms());
	if (!xswork_start(&x->work->base, &work_ops)) {
		free(x->work);
		x->work = NULL;
		x->failed = true;
		return;
	}
	ev_io_set(&x->io, x->work->base.note_fd, EV_READ);
	ev_io_start(x->loop, &x->io);
}

static bool link_ready(const struct link *l)
{
	return ((const struct xenlink *)l)->connected;
}

static bool link_send(struct link *l, const char *text, size_t len)
{
	struct xenlink *x = (struct xenlink *)l;
	struct xenlink_work *xw = x->work;

	if (!xw || len > sizeof(xw->out))
		return false;
	pthread_mutex_lock(&xw->base.lock);
	if (xw->out_len)
		l->dropped++;
	memcpy(xw->out, text, len);
	xw->out_len = len;
	pthread_mutex_unlock(&xw->base.lock);
	xswork_wake(&xw->base);
	return true;
}

static void link_close(struct link *l)
{
	struct xenlink *x = (struct xenlink *)l;

	if (!x->work)
		return;
	ev_io_stop(x->loop, &x->io);
	xswork_stop(&x->work->base, STOP_MS);
	x->work = NULL;
	x->connected = false;
}

static const struct link_ops xenlink_ops = {
	.look = link_look,
	.ready = link_ready,
	.send = link_send,
	.close = link_close,
};

/**
 * xenlink_init() - xenstore, not connected to
 * @x: the link; its thread starts with the first look
 * @loop: the event loop
 * @events: the owner's functions
 * @arg: passed to them
 */
void xenlink_init(struct xenlink *x, struct ev_loop *loop, const struct link_events *events,
		  void *arg)
{
	memset(x, 0, sizeof(*x));
	x->link.ops = &xenlink_ops;
	x->link.events = events;
	x->link.arg = arg;
	x->link.max = XENLINK_REPORT_MAX;
	text_copy(x->link.label, sizeof(x->link.label), "xenstore");
	x->loop = loop;
	ev_init(&x->io, news_cb);
	x->io.data = x;
}

/**
 * xenlink_here() - is this a Xen domain?
 * @root_fd: directory that stands for "/"
 *
 * Return: true when the kernel says so, or has a way to xenstored.
 */
bool xenlink_here(int root_fd)
{
	struct buf text = BUF_INIT(64);
	bool here;

	here = file_read(root_fd, "sys/hypervisor/type", &text) && text.len >= 3 &&
	       !memcmp(text.data, "xen", 3);
	buf_free(&text);
	return here || !faccessat(root_fd, "dev/xen/xenbus", F_OK, 0);
}
