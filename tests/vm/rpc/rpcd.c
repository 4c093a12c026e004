// SPDX-License-Identifier: GPL-2.0
/*
 * rpcd: runs the rig's commands inside a VM. Usage: rpcd DEVICE
 *
 * One command at a time; each in a process group of its own, which is killed
 * when its time is up, so that a hanging command never hangs the channel.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "rpc.h"

static bool on_console;	/* of a Xen domain, else a virtio-serial port */

static void die(const char *what)
{
	fprintf(stderr, "rpcd: %s: %s\n", what, strerror(errno));
	exit(1);
}

/*
 * While no client is connected on the host's side, the port reads as end of
 * file and does not write. The driver sends SIGIO when that changes
 * (drivers/char/virtio_console.c, send_sigio_to_port()): sleep until then, so
 * that an idle VM is silent. The time-out is for a signal that came before.
 */
static void wait_for_client(void)
{
	const struct timespec second = { .tv_sec = 1 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigtimedwait(&set, NULL, &second);
}

/* On a console: undo what pvcon escapes. Returns how many bytes are left. */
static ssize_t unescape(char *p, ssize_t n)
{
	static bool escaped;
	ssize_t i, out = 0;

	for (i = 0; i < n; i++) {
		if (!escaped && p[i] == RPC_ESCAPE) {
			escaped = true;
			continue;
		}
		p[out++] = escaped ? (char)(p[i] ^ RPC_FLIP) : p[i];
		escaped = false;
	}
	return out;
}

static void read_full(int fd, void *buf, size_t len)
{
	char *p = buf;

	while (len) {
		ssize_t n = read(fd, p, len);

		if (n > 0) {
			if (on_console)
				n = unescape(p, n);
			p += n;
			len -= (size_t)n;
		} else if (n == 0) {
			wait_for_client();
		} else if (errno != EINTR && errno != EAGAIN) {
			die("read");
		}
	}
}

static void write_full(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else if (n < 0 && errno != EINTR && errno != EAGAIN && errno != EPIPE) {
			die("write");
		} else {
			wait_for_client();
		}
	}
}

/* SIGIO is only ever waited for; what we run must not inherit that. */
static int open_port(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
	struct termios tio;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (fd < 0)
		die(path);
	on_console = !tcgetattr(fd, &tio);
	if (on_console) {
		cfmakeraw(&tio);
		if (tcsetattr(fd, TCSANOW, &tio))
			die(path);
	} else if (fcntl(fd, F_SETOWN, getpid()) || fcntl(fd, F_SETFL, O_RDWR | O_ASYNC)) {
		die(path);
	}
	return fd;
}

static void send_frame(int fd, uint32_t id, uint32_t type, const void *data, size_t len)
{
	struct rpc_frame f = { RPC_MAGIC, id, type, (uint32_t)len };
	static char buf[sizeof(f) + RPC_MAX];

	memcpy(buf, &f, sizeof(f));
	memcpy(buf + sizeof(f), data, len);
	write_full(fd, buf, sizeof(f) + len);
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

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void run(int fd, uint32_t id, uint32_t seconds, const char *command)
{
	int64_t end = now_ms() + seconds * 1000LL;
	uint32_t code = 124;
	bool late = false;
	char buf[16384];
	int out[2], status;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		setpgid(0, 0);
		dup2(open("/dev/null", O_RDONLY), 0);
		dup2(out[1], 1);
		dup2(out[1], 2);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	setpgid(pid, pid);
	close(out[1]);
	for (;;) {
		struct pollfd p = { .fd = out[0], .events = POLLIN };
		int64_t left = end - now_ms();
		ssize_t n;

		if (left <= 0) {
			late = true;
			kill(-pid, SIGKILL);
			break;
		}
		if (poll(&p, 1, left > 100 ? 100 : (int)left) > 0) {
			n = read(out[0], buf, sizeof(buf));
			if (n <= 0)
				break;
			send_frame(fd, id, RPC_OUT, buf, (size_t)n);
			continue;
		}
		/* a daemon that it left running may keep the pipe open */
		if (waitpid(pid, &status, WNOHANG) == pid) {
			while (poll(&p, 1, 0) > 0 && (n = read(out[0], buf, sizeof(buf))) > 0)
				send_frame(fd, id, RPC_OUT, buf, (size_t)n);
			pid = 0;
			break;
		}
	}
	close(out[0]);
	if (pid)
		waitpid(pid, &status, 0);
	if (!late)
		code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) :
					   128u + (uint32_t)WTERMSIG(status);
	send_frame(fd, id, RPC_EXIT, &code, sizeof(code));
}

int main(int argc, char **argv)
{
	static char command[RPC_MAX + 1];
	struct rpc_frame f;
	uint32_t seconds;
	int fd;

	if (argc != 2) {
		fprintf(stderr, "usage: rpcd DEVICE\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	fd = open_port(argv[1]);
	if (on_console)
		send_frame(fd, 0, RPC_HELLO, NULL, 0);
	for (;;) {
		read_header(fd, &f);
		if (f.type != RPC_RUN || f.len <= sizeof(seconds) || f.len > RPC_MAX)
			continue;
		read_full(fd, command, f.len);
		command[f.len] = '\0';
		memcpy(&seconds, command, sizeof(seconds));
		run(fd, f.id, seconds, command + sizeof(seconds));
	}
}
