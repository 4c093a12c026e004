// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <xenstore.h>

#include "thread.h"
#include "xswork.h"

#define XSWORK_STACK (128 * 1024)
#define BACKOFF_FIRST_MS 250
#define BACKOFF_LAST_MS 10000
/* Look at what else is to be done after so many events. */
#define EVENTS_AT_ONCE 256

enum call {
	CALL_NONE,
	CALL_CONNECT,
	CALL_WATCH,
	CALL_UNWATCH,
	CALL_READ,
	CALL_WRITE,
	CALL_RM,
	CALL_DIRECTORY,
};

static const char *const calls[] = {
	[CALL_NONE] = "starting",
	[CALL_CONNECT] = "connecting",
	[CALL_WATCH] = "watching a node",
	[CALL_UNWATCH] = "ending a watch",
	[CALL_READ] = "reading a node",
	[CALL_WRITE] = "writing a node",
	[CALL_RM] = "removing a node",
	[CALL_DIRECTORY] = "listing the domains",
};

/* Each call of libxenstore stands between the two, so that the event loop sees it last. */
static void call_begin(struct xswork *w, enum call call)
{
	atomic_store(&w->call, call);
	atomic_store(&w->busy_ms, clock_ms());
}

static void call_end(struct xswork *w, bool ok)
{
	atomic_store(&w->busy_ms, 0);
	if (!ok)
		w->doubt = true;
}

/**
 * xswork_watch() - watch a node and what is below it
 * @w: the thread
 * @path: the node
 * @token: comes with each event
 *
 * xenstored sends one event at once.
 *
 * Context: the thread, with the connection open; so are all the calls below. Waits for
 * xenstored.
 *
 * Return: false with errno; whether that is xenstored's answer or the end of the connection
 * is for xswork_lost() to say.
 */
bool xswork_watch(struct xswork *w, const char *path, const char *token)
{
	bool ok;

	call_begin(w, CALL_WATCH);
	ok = xs_watch(w->h, path, token);
	call_end(w, ok);
	return ok;
}

/**
 * xswork_unwatch() - watch a node no more
 * @w: the thread
 * @path: as for xswork_watch()
 * @token: likewise; events that carry it may still come
 *
 * Return: false with errno.
 */
bool xswork_unwatch(struct xswork *w, const char *path, const char *token)
{
	bool ok;

	call_begin(w, CALL_UNWATCH);
	ok = xs_unwatch(w->h, path, token);
	call_end(w, ok);
	return ok;
}

/**
 * xswork_read() - read a node
 * @w: the thread
 * @path: the node
 * @len: set to the length of its value
 *
 * Return: its value, to be freed, with a NUL behind it; NULL with errno.
 */
char *xswork_read(struct xswork *w, const char *path, unsigned int *len)
{
	char *value;

	call_begin(w, CALL_READ);
	value = xs_read(w->h, XBT_NULL, path, len);
	call_end(w, value);
	return value;
}

/**
 * xswork_write() - write a node
 * @w: the thread
 * @path: the node
 * @data: its new value
 * @len: length of that
 *
 * Return: false with errno.
 */
bool xswork_write(struct xswork *w, const char *path, const char *data, size_t len)
{
	bool ok;

	call_begin(w, CALL_WRITE);
	ok = xs_write(w->h, XBT_NULL, path, data, (unsigned int)len);
	call_end(w, ok);
	return ok;
}

/**
 * xswork_rm() - remove a node and what is below it
 * @w: the thread
 * @path: the node
 *
 * Return: false with errno.
 */
bool xswork_rm(struct xswork *w, const char *path)
{
	bool ok;

	call_begin(w, CALL_RM);
	ok = xs_rm(w->h, XBT_NULL, path);
	call_end(w, ok);
	return ok;
}

/**
 * xswork_directory() - list the children of a node
 * @w: the thread
 * @path: the node; never one that a domU may write below, for the list has no bound
 * @num: set to their number
 *
 * Return: their names, to be freed as one; NULL with errno.
 */
char **xswork_directory(struct xswork *w, const char *path, unsigned int *num)
{
	char **names;

	call_begin(w, CALL_DIRECTORY);
	names = xs_directory(w->h, XBT_NULL, path, num);
	call_end(w, names);
	return names;
}

/**
 * xswork_by_socket() - is xenstored a process of this system?
 *
 * Then libxenstore speaks to its socket, which has no home: paths have to be absolute.
 *
 * Return: true when it is.
 */
bool xswork_by_socket(void)
{
	const char *path = xs_daemon_socket();
	struct stat st;

	return path && !stat(path, &st) && S_ISSOCK(st.st_mode);
}

/* Takes events off the library's list. Returns false when the connection is gone. */
static bool take_events(struct xswork *w, bool *more)
{
	char **event;

	for (int i = 0; i < EVENTS_AT_ONCE; i++) {
		errno = 0;
		event = xs_check_watch(w->h);
		if (!event)
			return errno == EAGAIN;
		w->ops->event(w, event[XS_WATCH_PATH], event[XS_WATCH_TOKEN]);
		free(event);
	}
	*more = true;
	return true;
}

/**
 * xswork_lost() - was a call's failure the end of the connection?
 * @w: the thread
 *
 * Return: false when it was xenstored's answer.
 */
bool xswork_lost(struct xswork *w)
{
	int error = errno;
	bool more = false;
	bool lost = !take_events(w, &more);

	errno = error;
	return lost;
}

static void open_failed(struct xswork *w, int error)
{
	if (error != w->error)
		log_limited(&w->talk, LOG_WARNING,
			    "xenstore: cannot connect: %s, trying again: is this a Xen guest with /dev/xen/xenbus, or a dom0 with xenstored?",
			    strerror(error));
	w->error = error;
}

/* Returns when to come back. */
static int64_t connection_open(struct xswork *w)
{
	int64_t wait = w->backoff_ms;

	call_begin(w, CALL_CONNECT);
	w->h = xs_open(0);
	call_end(w, true);
	if (w->h && xs_fileno(w->h) < 0) {
		xs_close(w->h);
		w->h = NULL;
		errno = EMFILE;
	}
	w->backoff_ms = wait * 2 < BACKOFF_LAST_MS ? wait * 2 : BACKOFF_LAST_MS;
	if (!w->h) {
		open_failed(w, errno);
		return wait;
	}
	w->error = 0;
	w->doubt = false;
	w->opened_ms = clock_ms();
	log_limited(&w->talk, LOG_INFO, "xenstore: connected");
	w->ops->opened(w);
	return 0;
}

static int64_t connection_gone(struct xswork *w)
{
	int64_t now_ms = clock_ms();

	log_limited(&w->talk, LOG_WARNING, "xenstore: the connection to xenstored was lost");
	xs_close(w->h);
	w->h = NULL;
	w->ops->lost(w);
	/* One that is lost at once shall not be tried without a pause. */
	if (now_ms - w->opened_ms >= BACKOFF_LAST_MS)
		w->backoff_ms = BACKOFF_FIRST_MS;
	return w->backoff_ms;
}

/* Events first, then work. Returns when to come back. */
static int64_t xswork_turn(struct xswork *w)
{
	bool more = false;
	int64_t wait;

	if (!w->h)
		return connection_open(w);
	w->doubt = false;
	if (!take_events(w, &more))
		return connection_gone(w);
	wait = w->ops->work(w);
	return more || w->doubt ? 0 : wait;
}

static bool stopped(struct xswork *w)
{
	bool stop;

	pthread_mutex_lock(&w->lock);
	stop = w->stop;
	pthread_mutex_unlock(&w->lock);
	return stop;
}

static void eventfd_clear(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		count = 0;
}

static void eventfd_set(int fd)
{
	uint64_t one = 1;

	/* It can only fail when it is set already. */
	if (write(fd, &one, sizeof(one)) < 0)
		one = 0;
}

static void xswork_wait(struct xswork *w, int64_t ms)
{
	struct pollfd fds[] = {
		{ .fd = w->wake_fd, .events = POLLIN },
		{ .fd = w->h ? xs_fileno(w->h) : -1, .events = POLLIN },
	};

	if (poll(fds, 2, (int)ms) > 0 && (fds[0].revents & POLLIN))
		eventfd_clear(w->wake_fd);
}

static bool xswork_abandoned(struct xswork *w)
{
	bool abandoned;

	pthread_mutex_lock(&w->lock);
	abandoned = w->abandoned;
	pthread_mutex_unlock(&w->lock);
	return abandoned;
}

static void *xswork_thread(void *arg)
{
	struct xswork *w = arg;
	bool abandoned, more = false;

	while (!stopped(w))
		xswork_wait(w, xswork_turn(w));
	if (w->h) {
		/* One that comes so late could destroy what the next one has made. */
		if (take_events(w, &more) && !xswork_abandoned(w))
			w->ops->closing(w);
		xs_close(w->h);
	}
	pthread_mutex_lock(&w->lock);
	w->over = true;
	abandoned = w->abandoned;
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->lock);
	if (abandoned)
		w->ops->free(w);
	return NULL;
}

/**
 * xswork_free() - give back what xswork_start() took
 * @w: the thread, which is over; the structure itself is the owner's
 */
void xswork_free(struct xswork *w)
{
	close(w->wake_fd);
	close(w->note_fd);
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->lock);
}

/**
 * xswork_start() - start the thread
 * @w: zeroed memory
 * @ops: the owner's functions
 *
 * It connects by itself, now and whenever the connection was lost.
 *
 * Return: false after one log line.
 */
bool xswork_start(struct xswork *w, const struct xswork_ops *ops)
{
	pthread_condattr_t attr;
	int error;

	w->ops = ops;
	w->backoff_ms = BACKOFF_FIRST_MS;
	w->talk.interval_ms = 10000;
	w->talk.burst = 7;
	w->slow.interval_ms = 60000;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->ended, &attr);
	pthread_condattr_destroy(&attr);
	w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	w->note_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	error = w->wake_fd < 0 || w->note_fd < 0 ? errno : 0;
	if (!error)
		error = thread_start(&w->thread, XSWORK_STACK, xswork_thread, w);
	if (!error)
		return true;
	log_err("xenstore: cannot start its thread: %s", strerror(error));
	xswork_free(w);
	return false;
}

/**
 * xswork_stop() - end the thread
 * @w: the thread; gone afterwards, with the owner's structure
 * @patience_ms: wait at most so long for xenstored
 *
 * A thread that xenstored does not let go is left to itself: it touches nothing but its own
 * structure, and frees that when it gets an answer after all.
 */
void xswork_stop(struct xswork *w, int64_t patience_ms)
{
	int64_t until_ms = clock_ms() + patience_ms;
	struct timespec until = {
		.tv_sec = until_ms / 1000,
		.tv_nsec = until_ms % 1000 * 1000000,
	};
	int r = 0;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	eventfd_set(w->wake_fd);
	while (!w->over && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&w->ended, &w->lock, &until);
	if (!w->over) {
		w->abandoned = true;
		pthread_detach(w->thread);
		log_warn("xenstore: xenstored does not answer (%s): ending without it",
			 calls[atomic_load(&w->call)]);
		pthread_mutex_unlock(&w->lock);
		return;
	}
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	w->ops->free(w);
}

/**
 * xswork_wake() - let the thread look for work
 * @w: the thread
 *
 * Context: any thread.
 */
void xswork_wake(struct xswork *w)
{
	eventfd_set(w->wake_fd);
}

/**
 * xswork_note() - let the event loop look for news: @note_fd becomes readable
 * @w: the thread
 *
 * Context: any thread.
 */
void xswork_note(struct xswork *w)
{
	eventfd_set(w->note_fd);
}

/**
 * xswork_noted() - @note_fd shall not be readable any more
 * @w: the thread
 *
 * Context: the event loop's thread, before it looks for news.
 */
void xswork_noted(struct xswork *w)
{
	eventfd_clear(w->note_fd);
}

/**
 * xswork_check() - one line when xenstored does not answer, and one when it does again
 * @w: the thread
 *
 * Context: the event loop's thread; call it on a tick.
 */
void xswork_check(struct xswork *w)
{
	int64_t busy_ms = atomic_load(&w->busy_ms);
	int64_t now_ms = clock_ms();
	unsigned long missed;

	if (w->slow_ms && busy_ms != w->slow_ms) {
		if (w->slow_told)
			log_info("xenstore: xenstored answers again, after about %lld s",
				 (long long)((now_ms - w->slow_ms) / 1000));
		w->slow_ms = 0;
	}
	if (!busy_ms || w->slow_ms || now_ms - busy_ms < XSWORK_SLOW_MS)
		return;
	w->slow_ms = busy_ms;
	w->slow_told = log_allowed(&w->slow, now_ms, &missed);
	if (w->slow_told)
		log_warn("xenstore: no answer from xenstored for %d s (%s): look at xenstored in dom0; going on without it until it answers",
			 XSWORK_SLOW_MS / 1000, calls[atomic_load(&w->call)]);
}
