/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread that owns a connection to xenstored.
 *
 * Calls of libxenstore wait for xenstored's answer, and so for ever when xenstored hangs, or
 * when a domU's xenstored is gone: /dev/xen/xenbus knows no end. So all of them are made in
 * this thread, and the event loop never waits for it: what the two hand each other lies in
 * the owner's structure under @lock, and eventfds say that there is something.
 *
 * What libxenstore (4.17 and 4.20) makes necessary:
 *
 * - xs_watch() starts a thread of the library's own, which puts watch events on a list
 *   without a bound: the list is emptied first and at once, whatever else is to be done.
 * - XS_UNWATCH_FILTER is not used: for each event that xs_unwatch() takes off that list it
 *   leaks the event's text (measured: 800 KB for 20000 events), and a domU can cause any
 *   number of them. A token that nobody knows any more does the same without.
 * - When the connection ends, the library's thread tells nobody. A call fails with an errno
 *   that xenstored's answers have as well (EINVAL, EBADF, EIO); only xs_check_watch() says
 *   it clearly: anything but EAGAIN. So it has the last word after each call that failed.
 */
#ifndef TANDEM_XSWORK_H
#define TANDEM_XSWORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "log.h"

/* Said once when there was no answer for so long. */
#define XSWORK_SLOW_MS 5000
/* Most bytes of a node: xenstored takes path, NUL and value in one message of 4096. */
#define XSWORK_PAYLOAD_MAX 4096

struct xs_handle;
struct xswork;

/**
 * struct xswork_ops - what the owner does; all but @free with the connection open
 * @opened: there is a new connection, which knows no watches
 * @lost: the connection is gone; may not call xenstored
 * @event: a watch has fired; may not call xenstored
 * @work: do what is due; returns after how many ms there is more to do, or -1 for only
 *	  when an event or xswork_wake() comes
 * @closing: the owner stops: leave nothing behind
 * @free: the thread is at its end: give everything back, @base too
 *
 * Context: the thread.
 */
struct xswork_ops {
	void (*opened)(struct xswork *w);
	void (*lost)(struct xswork *w);
	void (*event)(struct xswork *w, const char *path, const char *token);
	int64_t (*work)(struct xswork *w);
	void (*closing)(struct xswork *w);
	void (*free)(struct xswork *w);
};

/**
 * struct xswork - the thread; first member of the owner's structure, which is from malloc()
 * @ops: the owner's functions
 * @thread: the thread
 * @lock: protects what the owner says it does, and the next three
 * @ended: signalled at the thread's end
 * @stop: the thread shall end
 * @over: it has
 * @abandoned: nobody waits for it: it frees everything itself
 * @wake_fd: wakes the thread
 * @note_fd: wakes the event loop
 * @busy_ms: clock_ms() when the call began that xenstored has not answered; 0 for none
 * @call: which call that is
 * @h: the connection, or NULL; the thread's, as is all below
 * @doubt: a call failed: see whether the connection is still there
 * @opened_ms: clock_ms() when it was opened
 * @backoff_ms: wait so long before the next attempt to open it
 * @error: errno of the last attempt, so that each reason gives one line
 * @talk: limit for lines about the connection
 * @slow: limit for the line about no answer; the event loop's, as is all below
 * @slow_ms: @busy_ms of a call that takes too long; 0 for none
 * @slow_told: there was a line about it
 */
struct xswork {
	const struct xswork_ops *ops;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool stop;
	bool over;
	bool abandoned;
	int wake_fd;
	int note_fd;
	atomic_int_least64_t busy_ms;
	atomic_int call;
	struct xs_handle *h;
	bool doubt;
	int64_t opened_ms;
	int64_t backoff_ms;
	int error;
	struct log_limit talk;
	struct log_limit slow;
	int64_t slow_ms;
	bool slow_told;
};

bool xswork_start(struct xswork *w, const struct xswork_ops *ops);
void xswork_stop(struct xswork *w, int64_t patience_ms);
void xswork_free(struct xswork *w);
void xswork_wake(struct xswork *w);
void xswork_note(struct xswork *w);
void xswork_noted(struct xswork *w);
void xswork_check(struct xswork *w);

bool xswork_watch(struct xswork *w, const char *path, const char *token);
bool xswork_unwatch(struct xswork *w, const char *path, const char *token);
char *xswork_read(struct xswork *w, const char *path, unsigned int *len);
bool xswork_write(struct xswork *w, const char *path, const char *data, size_t len);
bool xswork_rm(struct xswork *w, const char *path);
char **xswork_directory(struct xswork *w, const char *path, unsigned int *num);
bool xswork_lost(struct xswork *w);
bool xswork_by_socket(void);

#endif
