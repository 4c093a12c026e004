// SPDX-License-Identifier: GPL-2.0
/*
 * What drivers/char/virtio_console.c does (read in 6.1, 6.12 and 7.3, which do not
 * differ in this), and what follows from it:
 *
 * - While nobody has the chardev open on the host, poll() says POLLHUP and
 *   POLLIN at once and without end, read() gives what had arrived before and then
 *   0, write() gives EAGAIN. A level-triggered watcher would spin. So the port is
 *   watched only while the host reads. While it does not, an edge-triggered epoll
 *   set tells when the driver wakes up its queue, which it does when the host
 *   connects and when the port is unplugged; and port_look(), called on the
 *   sampling tick, would notice even without.
 * - After hot-unplug read() and write() give ENODEV, and poll() POLLHUP alone. The
 *   descriptor never works again, and closing it is safe; a port that is plugged
 *   in again is a new device.
 * - A port can be open once: the second open() gives EBUSY.
 * - write() takes at most 32 KiB, all of it or nothing. It gives EAGAIN when the
 *   queue is full, and 0 when the queue does not take the buffer for another
 *   reason, such as a device that is broken or suspending: poll() goes on to say
 *   POLLOUT then, so only the next tick tries again.
 * - SIGIO is for those who ask for it with O_ASYNC. Nobody does here.
 * - The host may go and come back between two looks. Nothing here can see that;
 *   the host asks for a report when it connects.
 * - What was half written when the host went is lost, and the next reader may
 *   find its tail: the first line to a new reader follows an empty line.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "port.h"
#include "text.h"

static const struct link_ops port_link_ops;

static void port_set_state(struct port *p, enum port_state state)
{
	static const char *const lines[] = {
		[PORT_ABSENT] = "port %s: not there, looking for it with every sample",
		[PORT_HUNGUP] = "port %s: nobody reads on the host, reports wait for somebody",
		[PORT_OPEN] = "port %s: the host reads",
	};
	enum port_state before = p->state;

	if (state == before)
		return;
	p->state = state;
	if (state == PORT_ABSENT && before != PORT_UNSEEN)
		log_info("port %s: removed, looking for it with every sample", p->name);
	else if (lines[state])
		log_info(lines[state], p->name);
}

static void port_watch(struct port *p, int events)
{
	if (ev_is_active(&p->io) && (p->io.events & (EV_READ | EV_WRITE)) == events)
		return;
	ev_io_stop(p->loop, &p->io);
	if (!events)
		return;
	ev_io_set(&p->io, p->fd, events);
	ev_io_start(p->loop, &p->io);
}

static void port_drop_output(struct port *p)
{
	if (p->out_len)
		p->link.dropped++;
	p->out_len = 0;
	p->out_pos = 0;
}

static void port_edge_stop(struct port *p)
{
	if (p->edge_fd < 0)
		return;
	ev_io_stop(p->loop, &p->edge_io);
	close(p->edge_fd);
	p->edge_fd = -1;
}

/* Without it the host's coming is noticed on the next tick: no error is fatal here. */
static void port_edge_start(struct port *p)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };

	if (p->edge_fd >= 0)
		return;
	p->edge_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->edge_fd < 0)
		return;
	if (epoll_ctl(p->edge_fd, EPOLL_CTL_ADD, p->fd, &event)) {
		close(p->edge_fd);
		p->edge_fd = -1;
		return;
	}
	ev_io_set(&p->edge_io, p->edge_fd, EV_READ);
	ev_io_start(p->loop, &p->edge_io);
}

static void port_release(struct port *p)
{
	if (p->fd < 0)
		return;
	port_watch(p, 0);
	port_edge_stop(p);
	port_drop_output(p);
	close(p->fd);
	p->fd = -1;
}

static void port_removed(struct port *p)
{
	port_release(p);
	port_set_state(p, PORT_ABSENT);
}

static void port_hungup(struct port *p)
{
	port_watch(p, 0);
	port_drop_output(p);
	/* Now and not when the next one comes: its first bytes may be read by then. */
	line_reset(&p->in);
	port_edge_start(p);
	port_set_state(p, PORT_HUNGUP);
}

static void port_opened(struct port *p)
{
	if (p->state == PORT_OPEN)
		return;
	port_edge_stop(p);
	p->resync = true;
	port_set_state(p, PORT_OPEN);
	port_watch(p, EV_READ);
	p->link.events->opened(p->link.arg);
}

static void port_flush(struct port *p)
{
	while (p->out_pos < p->out_len) {
		ssize_t n = write(p->fd, p->out + p->out_pos, p->out_len - p->out_pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			port_watch(p, EV_READ | EV_WRITE);
			return;
		}
		if (n < 0) {
			port_removed(p);
			return;
		}
		if (!n)
			break;
		p->out_pos += (size_t)n;
	}
	if (p->out_pos == p->out_len) {
		p->out_len = 0;
		p->out_pos = 0;
	}
	port_watch(p, EV_READ);
}

static bool port_line(void *arg, char *line, size_t len)
{
	struct port *p = arg;

	p->link.events->line(p->link.arg, line, len);
	return p->fd >= 0;
}

enum port_input { INPUT_NONE, INPUT_SOME, INPUT_END, INPUT_GONE };

/* One read, so that a host that never stops sending gets no more than its turn. */
static enum port_input port_read(struct port *p)
{
	uint64_t oversized = p->in.oversized;
	char data[LINE_BYTES_MAX];
	ssize_t n = read(p->fd, data, sizeof(data));

	if (n > 0) {
		if (!line_feed(&p->in, data, (size_t)n, port_line, p))
			return INPUT_GONE;
		if (p->in.oversized != oversized)
			p->link.events->oversized(p->link.arg);
		return INPUT_SOME;
	}
	if (!n || errno == ECONNRESET)
		return INPUT_END;
	return errno == EAGAIN || errno == EINTR ? INPUT_NONE : INPUT_GONE;
}

static void port_check(struct port *p)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN | POLLOUT };
	enum port_input input = INPUT_NONE;
	bool hup;

	if (poll(&pfd, 1, 0) < 0)
		return;
	hup = pfd.revents & (POLLHUP | POLLERR);
	if (hup || (pfd.revents & POLLIN))
		input = port_read(p);
	if (p->fd < 0)
		return;
	if (input == INPUT_GONE) {
		port_removed(p);
		return;
	}
	if (hup || input == INPUT_END) {
		port_hungup(p);
		return;
	}
	port_opened(p);
	if (p->state == PORT_OPEN && (pfd.revents & POLLOUT) && p->out_len)
		port_flush(p);
}

static void port_io_cb(struct ev_loop *loop, ev_io *w, int revents)
{
	(void)loop;
	(void)revents;
	port_check(w->data);
}

static void port_edge_cb(struct ev_loop *loop, ev_io *w, int revents)
{
	struct port *p = w->data;
	struct epoll_event event;

	(void)loop;
	(void)revents;
	/* Takes the edge back, or the outer loop would see it for ever. */
	if (epoll_wait(p->edge_fd, &event, 1, 0) > 0)
		port_check(p);
}

static void port_rename(struct port *p, const char *name)
{
	text_copy(p->name, sizeof(p->name), name);
	snprintf(p->link.label, sizeof(p->link.label), "port %s", name);
}

/**
 * port_init() - a port that has not been looked for
 * @p: the port
 * @loop: event loop that shall serve it
 * @root_fd: directory that stands for "/"
 * @events: the owner's functions
 * @arg: passed to them
 */
void port_init(struct port *p, struct ev_loop *loop, int root_fd,
	       const struct link_events *events, void *arg)
{
	memset(p, 0, sizeof(*p));
	p->link.ops = &port_link_ops;
	p->link.events = events;
	p->link.arg = arg;
	p->link.max = LINE_BYTES_MAX - 1;
	p->loop = loop;
	p->root_fd = root_fd;
	p->fd = -1;
	p->edge_fd = -1;
	port_rename(p, PORT_NAME_DEFAULT);
	ev_init(&p->io, port_io_cb);
	ev_init(&p->edge_io, port_edge_cb);
	p->io.data = p;
	p->edge_io.data = p;
}

/**
 * port_check_name() - is this the name of a port?
 * @name: name given by the administrator
 *
 * Return: NULL when it is, or else what is accepted.
 */
const char *port_check_name(const char *name)
{
	if (strlen(name) >= PORT_NAME_MAX)
		return "at most 107 bytes";
	if (*name == '/')
		return NULL;
	if (!*name || *name == '.' || strchr(name, '/') || !text_printable(name))
		return "the name of a virtio-serial port, or an absolute path";
	return NULL;
}

/**
 * port_set_name() - use another port
 * @p: the port; what is open is closed when the name is a new one
 * @name: a name that port_check_name() accepts
 */
void port_set_name(struct port *p, const char *name)
{
	if (!strcmp(p->name, name))
		return;
	port_close(p);
	port_rename(p, name);
}

static int port_open_at(struct port *p, const char *path)
{
	return openat(p->root_fd, path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

/* udev made no link: find the device by the name that the driver shows. */
static int port_open_by_class(struct port *p)
{
	char path[320], name[PORT_NAME_MAX + 1];
	int fd = -1, dir_fd, error = ENOENT;
	struct dirent *entry;
	DIR *dir;

	dir_fd = openat(p->root_fd, "sys/class/virtio-ports", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -1;
	dir = fdopendir(dir_fd);
	if (!dir) {
		close(dir_fd);
		return -1;
	}
	while (fd < 0 && (entry = readdir(dir))) {
		ssize_t n;
		int f;

		if (*entry->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/name", entry->d_name);
		f = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (f < 0)
			continue;
		n = read(f, name, sizeof(name) - 1);
		close(f);
		if (n <= 0)
			continue;
		name[n] = '\0';
		name[strcspn(name, "\n")] = '\0';
		if (strcmp(name, p->name))
			continue;
		snprintf(path, sizeof(path), "dev/%s", entry->d_name);
		fd = port_open_at(p, path);
		if (fd < 0)
			error = errno;
	}
	closedir(dir);
	errno = error;
	return fd;
}

/* Not there, or unplugged while it was being opened. */
static bool port_no_such(int error)
{
	return !error || error == ENOENT || error == ENOTDIR || error == ENXIO || error == ENODEV;
}

/* Returns -1 with errno when there is none, or none that can be opened. */
static int port_find(struct port *p)
{
	char path[PORT_NAME_MAX + 32];
	struct stat st;
	int fd;

	if (*p->name == '/') {
		fd = port_open_at(p, p->name + 1);
	} else {
		snprintf(path, sizeof(path), "dev/virtio-ports/%s", p->name);
		fd = port_open_at(p, path);
		if (fd < 0 && port_no_such(errno))
			fd = port_open_by_class(p);
	}
	if (fd < 0)
		return -1;
	/* A regular file would take reports until the disk is full. */
	if (!fstat(fd, &st) && S_ISCHR(st.st_mode))
		return fd;
	close(fd);
	errno = ENODEV;
	return -1;
}

/**
 * port_attach() - use an open file as the port
 * @p: the port, not open
 * @fd: the file, non-blocking; belongs to the port from now on
 */
void port_attach(struct port *p, int fd)
{
	p->fd = fd;
	line_reset(&p->in);
	port_check(p);
}

/**
 * port_look() - see whether anything has changed; call it on every tick
 * @p: the port
 *
 * Cheap while the host reads, as the event loop tells everything then but that a
 * write that took nothing may be tried again.
 */
void port_look(struct port *p)
{
	int fd, error;

	if (p->fd >= 0) {
		if (p->state != PORT_OPEN || p->out_len)
			port_check(p);
		return;
	}
	errno = 0;
	fd = port_find(p);
	if (fd >= 0) {
		p->error = 0;
		port_attach(p, fd);
		return;
	}
	error = port_no_such(errno) ? 0 : errno;
	if (error && error != p->error) {
		log_warn("port %s: cannot open it: %s, trying again with every sample", p->name,
			 strerror(error));
		p->state = PORT_ABSENT;
	}
	p->error = error;
	port_set_state(p, PORT_ABSENT);
}

/**
 * port_send() - send one line
 * @p: the port
 * @line: the line without newline
 * @len: its length, less than LINE_BYTES_MAX
 *
 * A line is sent as a whole or not at all, unless the host goes away in its
 * midst. While the rest of an older one waits for the host to read, a newer one
 * is dropped and counted.
 *
 * Return: true when the line was sent or waits to be.
 */
bool port_send(struct port *p, const char *line, size_t len)
{
	if (p->state != PORT_OPEN || len >= LINE_BYTES_MAX)
		return false;
	if (p->out_len) {
		p->link.dropped++;
		return false;
	}
	if (p->resync)
		p->out[p->out_len++] = '\n';
	p->resync = false;
	memcpy(p->out + p->out_len, line, len);
	p->out_len += len;
	p->out[p->out_len++] = '\n';
	port_flush(p);
	return p->state == PORT_OPEN;
}

/**
 * port_close() - close the port
 * @p: the port; port_look() would open it again
 */
void port_close(struct port *p)
{
	port_release(p);
	p->state = PORT_UNSEEN;
}

static void link_look(struct link *l)
{
	port_look((struct port *)l);
}

static bool link_ready(const struct link *l)
{
	return ((const struct port *)l)->state == PORT_OPEN;
}

static bool link_send(struct link *l, const char *text, size_t len)
{
	return port_send((struct port *)l, text, len);
}

static void link_close(struct link *l)
{
	port_close((struct port *)l);
}

static const struct link_ops port_link_ops = {
	.look = link_look,
	.ready = link_ready,
	.send = link_send,
	.close = link_close,
};
