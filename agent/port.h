/* SPDX-License-Identifier: GPL-2.0 */
/* The virtio-serial port in the guest, through its whole life. */
#ifndef TANDEM_PORT_H
#define TANDEM_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>

#include "line.h"
#include "link.h"

#define PORT_NAME_DEFAULT "org.tandem.agent.0"
#define PORT_NAME_MAX 108

enum port_state {
	PORT_UNSEEN,	/* not looked for yet */
	PORT_ABSENT,	/* there is no such port, or it was unplugged */
	PORT_HUNGUP,	/* open, but nobody reads on the host */
	PORT_OPEN,	/* the host reads */
};

/**
 * struct port - the port
 * @link: what the agent sees of it; its @dropped counts whole lines that were dropped
 *	because the host did not drain
 * @loop: event loop that serves it
 * @io: watches @fd while the host reads, and only then
 * @edge_io: watches @edge_fd while nobody reads on the host
 * @root_fd: directory that stands for "/"
 * @name: name of the port, or an absolute path
 * @fd: the port, or -1
 * @edge_fd: edge-triggered epoll on @fd, or -1
 * @state: see enum port_state
 * @error: errno of the last attempt to open it, so that each reason gives one line
 * @resync: the next line goes out behind an empty one
 * @out_len: bytes at @out
 * @out_pos: bytes of it that are written
 * @in: splitter for what the host sends
 * @out: a newline, if needed, and the line that is being written
 */
struct port {
	struct link link;
	struct ev_loop *loop;
	ev_io io;
	ev_io edge_io;
	int root_fd;
	char name[PORT_NAME_MAX];
	int fd;
	int edge_fd;
	enum port_state state;
	int error;
	bool resync;
	size_t out_len;
	size_t out_pos;
	struct line_splitter in;
	char out[LINE_BYTES_MAX + 1];
};

void port_init(struct port *p, struct ev_loop *loop, int root_fd,
	       const struct link_events *events, void *arg);
void port_set_name(struct port *p, const char *name);
const char *port_check_name(const char *name);
void port_look(struct port *p);
void port_attach(struct port *p, int fd);
bool port_send(struct port *p, const char *line, size_t len);
void port_close(struct port *p);

#endif
