// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl.h"
#include "log.h"
#include "report.h"

static bool wait_for(int fd, short events, int64_t deadline_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int64_t left;
	int r;

	do {
		left = deadline_ms - clock_ms();
		if (left <= 0) {
			errno = ETIMEDOUT;
			return false;
		}
		r = poll(&pfd, 1, (int)left);
	} while (r < 0 && errno == EINTR);
	if (!r)
		errno = ETIMEDOUT;
	return r > 0;
}

static bool send_all(int fd, const struct buf *text, int64_t deadline_ms)
{
	size_t pos = 0;

	while (pos < text->len) {
		ssize_t n = send(fd, text->data + pos, text->len - pos, MSG_NOSIGNAL);

		if (n > 0)
			pos += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return false;
		else if (!wait_for(fd, POLLOUT, deadline_ms))
			return false;
	}
	return true;
}

static bool receive_line(int fd, struct buf *answer, int64_t deadline_ms)
{
	char data[4096];

	for (;;) {
		ssize_t n = recv(fd, data, sizeof(data), 0);

		if (n > 0) {
			buf_add(answer, data, (size_t)n);
			if (answer->failed) {
				errno = EMSGSIZE;
				return false;
			}
			if (data[n - 1] == '\n')
				break;
			continue;
		}
		if (!n) {
			errno = ECONNRESET;
			return false;
		}
		if (errno != EAGAIN && errno != EINTR)
			return false;
		if (!wait_for(fd, POLLIN, deadline_ms))
			return false;
	}
	answer->data[--answer->len] = '\0';
	return true;
}

static const char *connect_hint(int error)
{
	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		return "is the daemon running?";
	case EACCES:
	case EPERM:
		return "run as root, or as a member of the socket's group";
	default:
		return "try again";
	}
}

/**
 * ctl_ask() - ask a daemon's control socket for one thing
 * @path: the socket
 * @get: what to ask for
 * @timeout_ms: how long to wait for all of the answer
 * @answer: the line that came back, without newline
 * @error: set on failure: what, why, and what to do, in one line
 * @error_size: bytes at @error
 *
 * Context: blocks, at most @timeout_ms.
 *
 * Return: true when an answer came, which may still be an error of the daemon.
 */
bool ctl_ask(const char *path, const char *get, int timeout_ms, struct buf *answer, char *error,
	     size_t error_size)
{
	int64_t deadline_ms = clock_ms() + timeout_ms;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct buf req = BUF_INIT(1024);
	bool ok = false;
	int fd;

	if (!text_copy(sa.sun_path, sizeof(sa.sun_path), path)) {
		snprintf(error, error_size, "socket %s: the path is too long, at most %zu bytes",
			 path, sizeof(sa.sun_path) - 1);
		return false;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		snprintf(error, error_size, "cannot connect to %s: %s: %s", path, strerror(errno),
			 connect_hint(errno));
		goto out;
	}
	buf_printf(&req, "{\"v\":%d,\"get\":", PROTOCOL_VERSION);
	buf_json_string(&req, get);
	buf_puts(&req, "}\n");
	ok = !req.failed && send_all(fd, &req, deadline_ms) &&
	     receive_line(fd, answer, deadline_ms);
	if (!ok)
		snprintf(error, error_size, "no answer from %s: %s: look at the daemon's log",
			 path, strerror(errno));
out:
	buf_free(&req);
	if (fd >= 0)
		close(fd);
	return ok;
}
