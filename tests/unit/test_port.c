// SPDX-License-Identifier: GPL-2.0
/*
 * The port over socket pairs and a pty. A socket pair stands for the port: closing
 * our end is the host's reader that goes away; putting another socket in the
 * place of the port's descriptor is a reader that comes back on the same port.
 */
#include "test.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/syscall.h>

#include "port.h"

static struct ev_loop *loop;
static struct port port;
static int root_fd;
static int opened;
static int lines;
static int large;
static bool write_nothing;
static char last[LINE_BYTES_MAX];

static void on_opened(void *arg)
{
	assert_ptr_equal(arg, &port);
	opened++;
}

static void on_line(void *arg, char *line, size_t len)
{
	(void)arg;
	lines++;
	memcpy(last, line, len + 1);
}

static void on_oversized(void *arg)
{
	(void)arg;
	large++;
}

static const struct link_events ops = {
	.opened = on_opened,
	.line = on_line,
	.oversized = on_oversized,
};

/* In the place of libc's: a virtio queue that takes no buffer makes write() give 0. */
ssize_t write(int fd, const void *data, size_t len)
{
	return write_nothing ? 0 : syscall(SYS_write, fd, data, len);
}

static int setup(void **state)
{
	(void)state;
	loop = ev_loop_new(EVFLAG_NOENV);
	opened = 0;
	lines = 0;
	large = 0;
	root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	port_init(&port, loop, root_fd, &ops, &port);
	return !loop || root_fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	port_close(&port);
	close(root_fd);
	ev_loop_destroy(loop);
	return 0;
}

static void pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
}

static void no_watcher(void)
{
	assert_false(ev_is_active(&port.io));
	assert_false(ev_is_pending(&port.io));
}

static void send_and_receive(void **state)
{
	char data[64];
	int fds[2];

	(void)state;
	pair(fds);
	port_attach(&port, fds[0]);
	assert_int_equal(port.state, PORT_OPEN);
	assert_int_equal(opened, 1);
	assert_true(port_send(&port, "one", 3));
	assert_true(port_send(&port, "two", 3));
	/* The first line to a new reader follows an empty one. */
	assert_int_equal(read(fds[1], data, sizeof(data)), 9);
	assert_memory_equal(data, "\none\ntwo\n", 9);
	assert_int_equal(write(fds[1], "\n{\"a\":1}\nhalf", 13), 13);
	run_until(loop, lines == 1);
	assert_string_equal(last, "{\"a\":1}");
	assert_int_equal(port.link.dropped, 0);
	close(fds[1]);
}

static void reader_gone_and_back(void **state)
{
	char data[64];
	int fds[2], back[2];

	(void)state;
	pair(fds);
	port_attach(&port, fds[0]);
	assert_int_equal(write(fds[1], "half", 4), 4);
	run_until(loop, port.in.len == 4);
	close(fds[1]);
	run_until(loop, port.state == PORT_HUNGUP);
	/* No watcher that would spin, and looking again changes nothing. */
	no_watcher();
	for (int i = 0; i < 100; i++) {
		port_look(&port);
		ev_run(loop, EVRUN_NOWAIT);
	}
	assert_int_equal(port.state, PORT_HUNGUP);
	no_watcher();
	assert_false(port_send(&port, "lost", 4));
	assert_int_equal(opened, 1);

	pair(back);
	assert_true(dup2(back[0], port.fd) >= 0);
	close(back[0]);
	port_look(&port);
	assert_int_equal(port.state, PORT_OPEN);
	assert_int_equal(opened, 2);
	assert_true(port_send(&port, "x", 1));
	assert_int_equal(read(back[1], data, sizeof(data)), 3);
	assert_memory_equal(data, "\nx\n", 3);
	/* The half line of the old connection is not part of the new one. */
	assert_int_equal(write(back[1], "whole\n", 6), 6);
	run_until(loop, lines == 1);
	assert_string_equal(last, "whole");
	close(back[1]);
}

/* What the host sent before its coming was noticed is the start of its first line. */
static void half_a_line_first(void **state)
{
	int fds[2];

	(void)state;
	pair(fds);
	assert_int_equal(write(fds[1], "{\"a\"", 4), 4);
	port_attach(&port, fds[0]);
	assert_int_equal(port.state, PORT_OPEN);
	assert_int_equal(write(fds[1], ":1}\n", 4), 4);
	run_until(loop, lines == 1);
	assert_string_equal(last, "{\"a\":1}");
	close(fds[1]);
}

/* While hung up, nothing that the loop watches is ready: it would sleep, not spin. */
static void hungup_is_quiet(void **state)
{
	struct pollfd pfd = { .events = POLLIN };
	int fds[2];

	(void)state;
	pair(fds);
	port_attach(&port, fds[0]);
	close(fds[1]);
	run_until(loop, port.state == PORT_HUNGUP);
	/* The edge that the set begins with is taken back once. */
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, EVRUN_NOWAIT);
	pfd.fd = port.edge_fd;
	assert_true(pfd.fd >= 0);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	no_watcher();
	assert_int_equal(port.state, PORT_HUNGUP);
}

static void slow_host(void **state)
{
	static char line[LINE_BYTES_MAX - 1];
	static char data[1 << 20];
	size_t sent = 0, got = 0;
	int fds[2], small = 4608;
	ssize_t n;

	(void)state;
	pair(fds);
	assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	port_attach(&port, fds[0]);
	memset(line, 'x', sizeof(line));
	/* Until one does not fit, and then some that are dropped whole. */
	while (!port.out_len) {
		assert_true(port_send(&port, line, sizeof(line)));
		sent++;
		assert_true(sent < 1000);
	}
	assert_false(port_send(&port, line, sizeof(line)));
	assert_false(port_send(&port, "small", 5));
	assert_int_equal(port.link.dropped, 2);

	/* The host drains: the rest of the pending line follows, and newer ones may. */
	while (port.out_len || got < 1 + sent * sizeof(line) + sent) {
		n = read(fds[1], data + got, sizeof(data) - got);
		if (n > 0)
			got += (size_t)n;
		else
			ev_run(loop, EVRUN_ONCE);
	}
	assert_true(port_send(&port, "end", 3));
	n = read(fds[1], data + got, sizeof(data) - got);
	assert_int_equal(n, 4);
	got += (size_t)n;
	/* Framing: an empty line, whole lines, nothing in between. */
	assert_int_equal(data[0], '\n');
	for (size_t i = 0; i < sent; i++) {
		assert_memory_equal(data + 1 + i * LINE_BYTES_MAX, line, sizeof(line));
		assert_int_equal(data[(i + 1) * LINE_BYTES_MAX], '\n');
	}
	assert_memory_equal(data + got - 4, "end\n", 4);
	assert_int_equal(port.io.events & EV_WRITE, 0);
	close(fds[1]);
}

static void partial_then_gone(void **state)
{
	static char line[LINE_BYTES_MAX - 1];
	int fds[2], small = 4608;

	(void)state;
	pair(fds);
	assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	port_attach(&port, fds[0]);
	memset(line, 'x', sizeof(line));
	while (!port.out_len)
		assert_true(port_send(&port, line, sizeof(line)));
	close(fds[1]);
	run_until(loop, port.state != PORT_OPEN);
	assert_int_equal(port.out_len, 0);
	assert_int_equal(port.link.dropped, 1);
}

static void oversized_line(void **state)
{
	static char junk[3 * LINE_BYTES_MAX];
	int fds[2];

	(void)state;
	pair(fds);
	port_attach(&port, fds[0]);
	memset(junk, 'j', sizeof(junk));
	assert_int_equal(write(fds[1], junk, sizeof(junk)), sizeof(junk));
	assert_int_equal(write(fds[1], "\nok\n", 4), 4);
	run_until(loop, lines == 1);
	assert_string_equal(last, "ok");
	assert_int_equal(port.in.oversized, 1);
	assert_int_equal(large, 1);
	assert_false(port_send(&port, junk, LINE_BYTES_MAX));
	close(fds[1]);
}

/* Nothing is lost, nothing spins, and the next tick tries again. */
static void write_takes_nothing(void **state)
{
	char data[16];
	int fds[2];

	(void)state;
	pair(fds);
	port_attach(&port, fds[0]);
	write_nothing = true;
	assert_true(port_send(&port, "one", 3));
	assert_int_equal(port.out_len, 5);
	assert_int_equal(port.io.events & EV_WRITE, 0);
	ev_run(loop, EVRUN_NOWAIT);
	port_look(&port);
	assert_false(port_send(&port, "two", 3));
	assert_int_equal(port.link.dropped, 1);
	assert_int_equal(port.out_len, 5);
	write_nothing = false;
	port_look(&port);
	assert_int_equal(port.out_len, 0);
	assert_int_equal(read(fds[1], data, sizeof(data)), 5);
	assert_memory_equal(data, "\none\n", 5);
	close(fds[1]);
}

static void pty_comes_and_goes(void **state)
{
	char name[128];
	char data[16];
	int master, slave;

	(void)state;
	port_set_name(&port, "/nonexistent/port");
	port_look(&port);
	assert_int_equal(port.state, PORT_ABSENT);
	assert_int_equal(openpty(&master, &slave, name, NULL, NULL), 0);
	port_set_name(&port, name);
	port_look(&port);
	assert_int_equal(port.state, PORT_OPEN);
	assert_true(port_send(&port, "x", 1));
	assert_true(read(master, data, sizeof(data)) > 0);
	/* A terminal that is hung up reads as a port without a reader: 0, and POLLHUP. */
	close(slave);
	close(master);
	run_until(loop, port.state == PORT_HUNGUP);
	no_watcher();
}

/*
 * Hot-unplug: read() fails with an error that is none of the usual ones, ENODEV. A
 * directory in the descriptor's place fails in the same way, with EISDIR.
 */
static void unplugged_while_hungup(void **state)
{
	int fds[2], gone;

	(void)state;
	port_set_name(&port, "/nonexistent/port");
	pair(fds);
	port_attach(&port, fds[0]);
	close(fds[1]);
	run_until(loop, port.state == PORT_HUNGUP);
	gone = open("/", O_RDONLY | O_DIRECTORY);
	assert_true(dup2(gone, port.fd) >= 0);
	close(gone);
	port_look(&port);
	assert_int_equal(port.state, PORT_ABSENT);
	assert_int_equal(port.fd, -1);
	assert_int_equal(port.edge_fd, -1);
	no_watcher();
	assert_false(port_send(&port, "x", 1));
	port_look(&port);
	assert_int_equal(port.state, PORT_ABSENT);
	/* Plugged in again. */
	pair(fds);
	port_attach(&port, fds[0]);
	assert_int_equal(port.state, PORT_OPEN);
	assert_int_equal(opened, 2);
	close(fds[1]);
}

/* The first to notice is a write: EPIPE, ENODEV. */
static void unplugged_in_write(void **state)
{
	int fds[2];

	(void)state;
	port_set_name(&port, "/nonexistent/port");
	pair(fds);
	port_attach(&port, fds[0]);
	close(fds[1]);
	assert_false(port_send(&port, "x", 1));
	assert_int_equal(port.state, PORT_ABSENT);
	assert_int_equal(port.fd, -1);
	no_watcher();
}

static void not_a_port(void **state)
{
	char path[64];
	char *dir = test_dir();

	(void)state;
	/* A regular file is no port; /dev/null is one that nobody reads. */
	test_write(dir, "file", "");
	snprintf(path, sizeof(path), "%s/file", dir);
	port_set_name(&port, path);
	port_look(&port);
	assert_int_equal(port.state, PORT_ABSENT);
	port_set_name(&port, "/dev/null");
	port_look(&port);
	assert_int_equal(port.state, PORT_HUNGUP);
	no_watcher();
	test_rm(dir);
}

/* Without udev's link the name is found in sysfs. */
static void found_by_class(void **state)
{
	char *dir = test_dir();
	char path[128], name[128];
	int master, slave, root;

	(void)state;
	assert_int_equal(openpty(&master, &slave, name, NULL, NULL), 0);
	test_write(dir, "sys/class/virtio-ports/vport0p1/name", "org.other.0\n");
	test_write(dir, "sys/class/virtio-ports/vport0p2/name", "org.tandem.agent.0\n");
	test_write(dir, "dev/null", "");
	snprintf(path, sizeof(path), "%s/dev/vport0p2", dir);
	assert_int_equal(symlink(name, path), 0);
	root = open(dir, O_PATH | O_DIRECTORY);
	assert_true(root >= 0);
	port.root_fd = root;
	port_look(&port);
	assert_int_equal(port.state, PORT_OPEN);
	close(slave);
	close(master);
	close(root);
	test_rm(dir);
}

/* A port that is there and cannot be opened is told from none, once a reason. */
static void busy(void **state)
{
	char *dir = test_dir();
	char path[64];

	(void)state;
	/* A loop of links fails with ELOOP; a port that another process has, with EBUSY. */
	snprintf(path, sizeof(path), "%s/loop", dir);
	assert_int_equal(symlink(path, path), 0);
	port_set_name(&port, path);
	port_look(&port);
	assert_int_equal(port.state, PORT_ABSENT);
	assert_int_equal(port.error, ELOOP);
	port_look(&port);
	assert_int_equal(port.error, ELOOP);
	assert_int_equal(unlink(path), 0);
	port_look(&port);
	assert_int_equal(port.state, PORT_ABSENT);
	assert_int_equal(port.error, 0);
	test_rm(dir);
}

static void names(void **state)
{
	(void)state;
	assert_null(port_check_name("org.tandem.agent.0"));
	assert_null(port_check_name("/dev/vport0p1"));
	assert_non_null(port_check_name(""));
	assert_non_null(port_check_name("../x"));
	assert_non_null(port_check_name("a/b"));
	assert_non_null(port_check_name(".x"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(send_and_receive), TEST(reader_gone_and_back), TEST(half_a_line_first),
		TEST(hungup_is_quiet),
		TEST(slow_host), TEST(partial_then_gone), TEST(oversized_line), TEST(write_takes_nothing),
		TEST(pty_comes_and_goes), TEST(unplugged_while_hungup),
		TEST(unplugged_in_write), TEST(not_a_port), TEST(found_by_class), TEST(busy),
		TEST(names),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
