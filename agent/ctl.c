// SPDX-License-Identifier: GPL-2.0
/*
 * The control socket has a thread and an event loop of its own. What it reads it
 * finds by RCU (pub.h), so that no client can hold up sampling or reports. A
 * client that sends nothing, or does not read its answer, is closed after
 * idle_ms without progress and holds nothing but one of CTL_CLIENTS_MAX places.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <ev.h>
#include <json-c/json.h>

#include "ctl.h"
#include "line.h"
#include "log.h"
#include "pub.h"
#include "report.h"
#include "thread.h"

#define CTL_STACK (256 * 1024)
/* What to do about a socket that cannot be made. */
#define HINT "run as root, or name another path, or none"

/**
 * struct ctl_client - a client's place
 * @ctl: whose client
 * @io: its socket; reads while there is no answer to write, and then writes
 * @timer: closes it when nothing moves
 * @fd: its socket, or -1 when the place is free
 * @out: the answer
 * @out_pos: bytes of it that are written
 * @closing: close it when the answer is written
 * @in: splitter for its requests
 */
struct ctl_client {
	struct ctl *ctl;
	ev_io io;
	ev_timer timer;
	int fd;
	struct buf out;
	size_t out_pos;
	bool closing;
	struct line_splitter in;
};

/**
 * struct ctl - the control socket
 * @thread: serves it
 * @loop: the thread's event loop
 * @io: accepts
 * @retry: accepts again after the process ran out of descriptors
 * @stop: tells the thread to end
 * @fd: listening socket
 * @path: its path
 * @dev: device of the socket's file
 * @ino: its inode, so that nobody else's is removed
 * @idle_s: patience with clients
 * @answer: the owner's function
 * @arg: passed to it
 * @tok: the thread's JSON parser
 * @busy: limit for the line about too many clients
 * @starved: limit for the line about clients that cannot be accepted
 * @clients: their places; taken from the heap with the first client
 */
struct ctl {
	pthread_t thread;
	struct ev_loop *loop;
	ev_io io;
	ev_timer retry;
	ev_async stop;
	int fd;
	char path[CTL_PATH_MAX];
	dev_t dev;
	ino_t ino;
	double idle_s;
	ctl_answer_fn *answer;
	void *arg;
	struct json_tokener *tok;
	struct log_limit busy;
	struct log_limit starved;
	struct ctl_client *clients[CTL_CLIENTS_MAX];
};

static void client_close(struct ctl_client *c)
{
	struct ctl *ctl = c->ctl;

	ev_io_stop(ctl->loop, &c->io);
	ev_timer_stop(ctl->loop, &c->timer);
	close(c->fd);
	buf_free(&c->out);
	for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
		if (ctl->clients[i] == c)
			ctl->clients[i] = NULL;
	}
	free(c);
}

static void client_watch(struct ctl_client *c, int events)
{
	ev_io_stop(c->ctl->loop, &c->io);
	ev_io_set(&c->io, c->fd, events);
	ev_io_start(c->ctl->loop, &c->io);
}

/* Returns false when the client is gone. */
static bool client_flush(struct ctl_client *c)
{
	while (c->out_pos < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->out_pos, c->out.len - c->out_pos,
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			client_watch(c, EV_WRITE);
			return true;
		}
		if (n < 0) {
			client_close(c);
			return false;
		}
		c->out_pos += (size_t)n;
		ev_timer_again(c->ctl->loop, &c->timer);
	}
	if (c->closing) {
		client_close(c);
		return false;
	}
	buf_free(&c->out);
	c->out_pos = 0;
	client_watch(c, EV_READ);
	return true;
}

static void put_error(struct buf *out, const char *what)
{
	buf_reset(out);
	buf_printf(out, "{\"v\":%d,\"error\":", PROTOCOL_VERSION);
	buf_json_string(out, what);
	buf_puts(out, "}");
}

static void client_answer(struct ctl_client *c, const char *line, size_t len)
{
	char error[REPORT_ERROR_MAX];
	struct json_object *req;
	const char *get;

	req = json_read(c->ctl->tok, line, len, error);
	if (!req) {
		put_error(&c->out, error);
		return;
	}
	get = json_get_text(req, "get");
	if (!json_get_version(req))
		put_error(&c->out, "v: not 1");
	else if (!get)
		put_error(&c->out, "get: not a string");
	else if (!c->ctl->answer(c->ctl->arg, get, &c->out))
		put_error(&c->out, "get: there is no such thing here");
	else if (c->out.failed)
		put_error(&c->out, "the answer does not fit");
	json_object_put(req);
}

static bool client_line(void *arg, char *line, size_t len)
{
	struct ctl_client *c = arg;

	/* One request at a time: what was sent behind it without waiting is dropped. */
	if (c->out.len)
		return true;
	client_answer(c, line, len);
	buf_puts(&c->out, "\n");
	if (c->out.failed) {
		client_close(c);
		return false;
	}
	return true;
}

static void client_read(struct ctl_client *c)
{
	char data[1024];
	uint64_t oversized = c->in.oversized;
	ssize_t n = recv(c->fd, data, sizeof(data), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_close(c);
		return;
	}
	if (!line_feed(&c->in, data, (size_t)n, client_line, c))
		return;
	if (c->in.oversized != oversized) {
		put_error(&c->out, "the request is too long");
		buf_puts(&c->out, "\n");
		c->closing = true;
	}
	if (c->out.len)
		client_flush(c);
}

static void client_io_cb(struct ev_loop *loop, ev_io *w, int revents)
{
	struct ctl_client *c = w->data;

	(void)loop;
	if (revents & EV_WRITE)
		client_flush(c);
	else
		client_read(c);
}

static void client_timer_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	client_close(w->data);
}

static struct ctl_client **free_place(struct ctl *ctl)
{
	for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
		if (!ctl->clients[i])
			return &ctl->clients[i];
	}
	return NULL;
}

static void refuse(struct ctl *ctl, int fd)
{
	static const char busy[] = "{\"v\":1,\"error\":\"too many clients\"}\n";

	log_limited(&ctl->busy, LOG_WARNING, "control socket %s: more than %d clients, one refused",
		    ctl->path, CTL_CLIENTS_MAX);
	/* If it does not fit into an empty socket buffer, so be it. */
	if (send(fd, busy, sizeof(busy) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("control socket %s: refused without a word", ctl->path);
	close(fd);
}

static void accept_cb(struct ev_loop *loop, ev_io *w, int revents)
{
	struct ctl *ctl = w->data;
	struct ctl_client **place, *c;
	int fd;

	(void)revents;
	fd = accept4(ctl->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		/* Out of descriptors the socket stays readable: do not spin on it. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			log_limited(&ctl->starved, LOG_WARNING,
				    "control socket %s: cannot accept a client: %s, trying again every second",
				    ctl->path, strerror(errno));
			ev_io_stop(loop, &ctl->io);
			ev_timer_again(loop, &ctl->retry);
		}
		return;
	}
	place = free_place(ctl);
	c = place ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		refuse(ctl, fd);
		return;
	}
	*place = c;
	c->ctl = ctl;
	c->fd = fd;
	c->out.max = CTL_ANSWER_MAX;
	ev_io_init(&c->io, client_io_cb, fd, EV_READ);
	ev_timer_init(&c->timer, client_timer_cb, 0., ctl->idle_s);
	c->io.data = c;
	c->timer.data = c;
	ev_io_start(loop, &c->io);
	ev_timer_again(loop, &c->timer);
}

static void retry_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct ctl *ctl = w->data;

	(void)revents;
	ev_timer_stop(loop, w);
	ev_io_start(loop, &ctl->io);
}

static void stop_cb(struct ev_loop *loop, ev_async *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(loop, EVBREAK_ALL);
}

static void *ctl_thread(void *arg)
{
	struct ctl *ctl = arg;

	rcu_register_thread();
	ev_run(ctl->loop, 0);
	for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
		if (ctl->clients[i])
			client_close(ctl->clients[i]);
	}
	rcu_unregister_thread();
	return NULL;
}

static bool socket_address(const char *path, struct sockaddr_un *sa)
{
	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	return text_copy(sa->sun_path, sizeof(sa->sun_path), path);
}

/* A socket that somebody answers is another daemon's; a dead one is ours to remove. */
static bool remove_stale(const struct sockaddr_un *sa)
{
	struct stat st;
	int fd, error;

	if (lstat(sa->sun_path, &st))
		return true;
	if (!S_ISSOCK(st.st_mode)) {
		log_err("control socket %s: something else is there, remove it or name another path",
			sa->sun_path);
		return false;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		log_err("control socket %s: cannot make a socket: %s", sa->sun_path,
			strerror(errno));
		return false;
	}
	error = connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) ? errno : 0;
	close(fd);
	if (!error || error == EAGAIN)
		log_err("control socket %s: another daemon serves it, stop that one first",
			sa->sun_path);
	else if (error != ECONNREFUSED && error != ENOENT)
		log_err("control socket %s: cannot tell whether it is in use: %s: " HINT,
			sa->sun_path, strerror(error));
	else if (unlink(sa->sun_path) && errno != ENOENT)
		log_err("control socket %s: cannot remove what a dead daemon left: %s: " HINT,
			sa->sun_path, strerror(errno));
	else
		return true;
	return false;
}

static bool make_directory(const char *path)
{
	char dir[CTL_PATH_MAX];
	char *slash;

	if (!text_copy(dir, sizeof(dir), path))
		return true;
	slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return true;
	*slash = '\0';
	if (!mkdir(dir, 0755) || errno == EEXIST)
		return true;
	log_err("control socket %s: cannot make the directory %s: %s: " HINT, path, dir,
		strerror(errno));
	return false;
}

static int ctl_listen(const char *path)
{
	struct sockaddr_un sa;
	mode_t mask;
	int fd, r;

	if (!socket_address(path, &sa)) {
		log_err("control socket %s: the path is too long, at most %zu bytes", path,
			sizeof(sa.sun_path) - 1);
		return -1;
	}
	if (!make_directory(path) || !remove_stale(&sa))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		log_err("control socket %s: cannot make a socket: %s", path, strerror(errno));
		return -1;
	}
	/* The file never exists with wider permissions than 0660. */
	mask = umask(0117);
	r = bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	umask(mask);
	if (!r && !listen(fd, CTL_CLIENTS_MAX))
		return fd;
	log_err("control socket %s: cannot bind: %s: " HINT, path, strerror(errno));
	close(fd);
	return -1;
}

/* The file may be another daemon's by now, if somebody removed ours. */
static void remove_own(const struct ctl *ctl)
{
	struct stat st;

	if (!lstat(ctl->path, &st) && st.st_dev == ctl->dev && st.st_ino == ctl->ino)
		unlink(ctl->path);
}

static bool ctl_start_thread(struct ctl *ctl)
{
	int r = thread_start(&ctl->thread, CTL_STACK, ctl_thread, ctl);

	if (r)
		log_err("control socket %s: cannot start its thread: %s", ctl->path, strerror(r));
	return !r;
}

/**
 * ctl_start() - serve a control socket in a thread of its own
 * @path: where the socket shall be; its directory is made when it is missing
 * @idle_ms: close a client that does not move for so long; usually CTL_IDLE_MS
 * @answer: answers requests
 * @arg: passed to @answer
 *
 * Return: the socket, or NULL after one log line.
 */
struct ctl *ctl_start(const char *path, int idle_ms, ctl_answer_fn *answer, void *arg)
{
	struct ctl *ctl = calloc(1, sizeof(*ctl));
	struct stat st;

	if (!ctl) {
		log_err("control socket %s: out of memory", path);
		return NULL;
	}
	ctl->answer = answer;
	ctl->arg = arg;
	ctl->idle_s = idle_ms / 1000.;
	ctl->busy.interval_ms = 60000;
	ctl->starved.interval_ms = 60000;
	ctl->tok = json_reader_new(JSON_DEPTH_MAX);
	ctl->loop = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
	if (!ctl->tok || !ctl->loop) {
		log_err("control socket %s: out of memory", path);
		goto free_ctl;
	}
	ctl->fd = ctl_listen(path);
	if (ctl->fd < 0)
		goto free_ctl;
	text_copy(ctl->path, sizeof(ctl->path), path);
	if (!lstat(path, &st)) {
		ctl->dev = st.st_dev;
		ctl->ino = st.st_ino;
	}
	ev_io_init(&ctl->io, accept_cb, ctl->fd, EV_READ);
	ev_timer_init(&ctl->retry, retry_cb, 0., 1.);
	ev_async_init(&ctl->stop, stop_cb);
	ctl->io.data = ctl;
	ctl->retry.data = ctl;
	ev_io_start(ctl->loop, &ctl->io);
	ev_async_start(ctl->loop, &ctl->stop);
	if (ctl_start_thread(ctl))
		return ctl;
	remove_own(ctl);
	close(ctl->fd);
free_ctl:
	if (ctl->loop)
		ev_loop_destroy(ctl->loop);
	if (ctl->tok)
		json_tokener_free(ctl->tok);
	free(ctl);
	return NULL;
}

/**
 * ctl_stop() - end the thread and remove the socket
 * @ctl: from ctl_start(), or NULL
 *
 * Waits for the thread, which is never longer than one answer's making.
 */
void ctl_stop(struct ctl *ctl)
{
	if (!ctl)
		return;
	ev_async_send(ctl->loop, &ctl->stop);
	pthread_join(ctl->thread, NULL);
	remove_own(ctl);
	close(ctl->fd);
	ev_loop_destroy(ctl->loop);
	json_tokener_free(ctl->tok);
	free(ctl);
}

/**
 * ctl_check_path() - may a control socket be configured so?
 * @value: an absolute path, or "none" for no control socket
 *
 * Return: NULL when it may, or else what is accepted.
 */
const char *ctl_check_path(const char *value)
{
	if (!strcmp(value, "none") || *value == '/')
		return NULL;
	return "an absolute path, or none";
}
