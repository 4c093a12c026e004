// SPDX-License-Identifier: GPL-2.0
/*
 * rpc: run a command in a VM of the rig. Usage: rpc SOCKET SECONDS COMMAND
 *
 * Prints what the command prints; exits with its status, with 124 when the
 * command ran too long, and with 125 when the VM itself did not answer.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rpc.h"

#define RPC_DEAD	125
#define RPC_GRACE	15	/* seconds for the VM's own time-out to arrive */

static int64_t deadline;

static void dead(const char *what)
{
	fprintf(stderr, "rpc: %s\n", what);
	exit(RPC_DEAD);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void read_full(int fd, void *buf, size_t len)
{
	char *p = buf;

	while (len) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		int64_t left = deadline - now_ms();
		ssize_t n;

		if (left <= 0 || poll(&pfd, 1, (int)left) == 0)
			dead("no answer from the VM");
		n = read(fd, p, len);
		if (n <= 0)
			dead("the VM is gone");
		p += n;
		len -= (size_t)n;
	}
}

static void read_header(int fd, struct rpc_frame *f)
{
	read_full(fd, &f->magic, sizeof(f->magic));
	while (f->magic != RPC_MAGIC) {
		f->magic >>= 8;
		read_full(fd, (char *)&f->magic + 3, 1);
	}
	read_full(fd, &f->id, sizeof(*f) - sizeof(f->magic));
}

static void send_command(int fd, uint32_t id, uint32_t seconds, const char *command)
{
	size_t n = strlen(command), done = 0;
	struct rpc_frame f = { RPC_MAGIC, id, RPC_RUN, (uint32_t)(n + sizeof(seconds)) };
	static char buf[sizeof(f) + RPC_MAX];

	if (f.len > RPC_MAX)
		dead("the command is too long");
	memcpy(buf, &f, sizeof(f));
	memcpy(buf + sizeof(f), &seconds, sizeof(seconds));
	memcpy(buf + sizeof(f) + sizeof(seconds), command, n);
	while (done < sizeof(f) + f.len) {
		ssize_t w = write(fd, buf + done, sizeof(f) + f.len - done);

		if (w <= 0)
			dead("the VM is gone");
		done += (size_t)w;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	uint32_t id, seconds, code;
	static char buf[RPC_MAX];
	struct rpc_frame f;
	int fd;

	if (argc != 4 || strlen(argv[1]) >= sizeof(sa.sun_path)) {
		fprintf(stderr, "usage: rpc SOCKET SECONDS COMMAND\n");
		return 2;
	}
	seconds = (uint32_t)atoi(argv[2]);
	deadline = now_ms() + (seconds + RPC_GRACE) * 1000LL;
	strcpy(sa.sun_path, argv[1]);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		dead(strerror(errno));
	id = (uint32_t)(now_ms() ^ (getpid() << 16));
	send_command(fd, id, seconds, argv[3]);
	for (;;) {
		read_header(fd, &f);
		if (f.len > RPC_MAX)
			continue;
		read_full(fd, buf, f.len);
		if (f.id != id)
			continue;
		if (f.type == RPC_OUT) {
			fwrite(buf, 1, f.len, stdout);
			fflush(stdout);
		} else if (f.type == RPC_EXIT && f.len == sizeof(code)) {
			memcpy(&code, buf, sizeof(code));
			return (int)(code & 0xff);
		}
	}
}
