// SPDX-License-Identifier: GPL-2.0
#include "test.h"

#include <poll.h>

#include "ctl.h"
#include "line.h"
#include "pub.h"

/* Longer than a busy machine keeps a test from its next request. */
#define IDLE_MS 1500

static char *dir;
static char path[128];
static struct ctl *ctl;

static bool answer(void *arg, const char *get, struct buf *out)
{
	(void)arg;
	if (!strcmp(get, "big")) {
		buf_puts(out, "{\"big\":\"");
		for (int i = 0; i < 200000; i++)
			buf_puts(out, "0123456789");
		buf_puts(out, "\"}");
		return true;
	}
	if (!strcmp(get, "huge")) {
		while (!out->failed)
			buf_puts(out, "0123456789012345678901234567890123456789");
		return true;
	}
	if (strcmp(get, "report"))
		return false;
	buf_puts(out, "{\"v\":1,\"answer\":42}");
	return true;
}

static int setup(void **state)
{
	(void)state;
	dir = test_dir();
	snprintf(path, sizeof(path), "%s/run/x.sock", dir);
	ctl = ctl_start(path, IDLE_MS, answer, NULL);
	return !ctl;
}

static int teardown(void **state)
{
	(void)state;
	ctl_stop(ctl);
	ctl = NULL;
	assert_int_equal(access(path, F_OK), -1);
	test_rm(dir);
	return 0;
}

/* Reads up to the newline or the end; waits for both no longer than the test's patience. */
static void receive(int fd, char *data, size_t size)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	size_t n = 0;
	ssize_t r;

	do {
		assert_int_equal(poll(&pfd, 1, TEST_PATIENCE_MS), 1);
		r = read(fd, data + n, size - 1 - n);
		if (r > 0)
			n += (size_t)r;
	} while (r > 0 && data[n - 1] != '\n' && n < size - 1);
	data[n] = '\0';
}

static void expect(int fd, const char *request, const char *want)
{
	char data[512];

	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	receive(fd, data, sizeof(data));
	if (strcmp(data, want))
		fail_msg("%s: '%s' is not '%s'", request, data, want);
}

static void good(void **state)
{
	struct buf out = BUF_INIT(4096);
	char error[256];
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	fd = test_connect(path);
	expect(fd, "{\"v\":1,\"get\":\"report\"}\n", "{\"v\":1,\"answer\":42}\n");
	/* The connection may be used again. */
	expect(fd, "\n{\"v\":1,\"get\":\"report\"}\n", "{\"v\":1,\"answer\":42}\n");
	close(fd);
	assert_true(ctl_ask(path, "report", 5000, &out, error, sizeof(error)));
	assert_string_equal(out.data, "{\"v\":1,\"answer\":42}");
	buf_free(&out);
}

static void garbage(void **state)
{
	int fd = test_connect(path);

	(void)state;
	expect(fd, "hello\n", "{\"v\":1,\"error\":\"not JSON: unexpected character\"}\n");
	expect(fd, "{}\n", "{\"v\":1,\"error\":\"v: not 1\"}\n");
	expect(fd, "[]\n", "{\"v\":1,\"error\":\"not one JSON object\"}\n");
	expect(fd, "{\"v\":2,\"get\":\"report\"}\n", "{\"v\":1,\"error\":\"v: not 1\"}\n");
	expect(fd, "{\"v\":1}\n", "{\"v\":1,\"error\":\"get: not a string\"}\n");
	expect(fd, "{\"v\":1,\"get\":7}\n", "{\"v\":1,\"error\":\"get: not a string\"}\n");
	expect(fd, "{\"v\":1,\"get\":\"x\"}\n",
	       "{\"v\":1,\"error\":\"get: there is no such thing here\"}\n");
	expect(fd, "{\"v\":1,\"get\":\"huge\"}\n",
	       "{\"v\":1,\"error\":\"the answer does not fit\"}\n");
	expect(fd, "{\"v\":1,\"get\":\"report\"}\n", "{\"v\":1,\"answer\":42}\n");
	close(fd);
}

static void oversized(void **state)
{
	static char junk[LINE_BYTES_MAX + 10];
	char data[512];
	int fd = test_connect(path);

	(void)state;
	memset(junk, 'j', sizeof(junk));
	assert_int_equal(send(fd, junk, sizeof(junk), MSG_NOSIGNAL), sizeof(junk));
	receive(fd, data, sizeof(data));
	assert_string_equal(data, "{\"v\":1,\"error\":\"the request is too long\"}\n");
	receive(fd, data, sizeof(data));
	assert_string_equal(data, "");
	close(fd);
}

/* A client that says nothing is closed; others are served meanwhile. */
static void silent_client(void **state)
{
	int silent = test_connect(path);
	int fd = test_connect(path);
	char data[16];

	(void)state;
	expect(fd, "{\"v\":1,\"get\":\"report\"}\n", "{\"v\":1,\"answer\":42}\n");
	receive(silent, data, sizeof(data));
	assert_string_equal(data, "");
	close(silent);
	close(fd);
}

/* A client that asks for much and never reads holds up nobody, and is closed. */
static void never_reads(void **state)
{
	static const char big[] = "{\"v\":1,\"get\":\"big\"}\n";
	struct pollfd pfd = { .events = 0 };
	int fd;

	(void)state;
	pfd.fd = test_connect(path);
	assert_int_equal(send(pfd.fd, big, sizeof(big) - 1, MSG_NOSIGNAL), sizeof(big) - 1);
	fd = test_connect(path);
	expect(fd, "{\"v\":1,\"get\":\"report\"}\n", "{\"v\":1,\"answer\":42}\n");
	close(fd);
	assert_int_equal(poll(&pfd, 1, TEST_PATIENCE_MS), 1);
	assert_true(pfd.revents & POLLHUP);
	close(pfd.fd);
}

/* The whole of a big answer arrives at one who does read. */
static void big_answer(void **state)
{
	struct buf out = BUF_INIT(4 << 20);
	char error[256];

	(void)state;
	assert_true(ctl_ask(path, "big", 5000, &out, error, sizeof(error)));
	assert_int_equal(out.len, 8 + 2000000 + 2);
	buf_free(&out);
}

static void too_many(void **state)
{
	int fds[CTL_CLIENTS_MAX], fd;
	char data[128];

	(void)state;
	for (int i = 0; i < CTL_CLIENTS_MAX; i++) {
		fds[i] = test_connect(path);
		expect(fds[i], "{\"v\":1,\"get\":\"report\"}\n", "{\"v\":1,\"answer\":42}\n");
	}
	fd = test_connect(path);
	receive(fd, data, sizeof(data));
	assert_string_equal(data, "{\"v\":1,\"error\":\"too many clients\"}\n");
	receive(fd, data, sizeof(data));
	assert_string_equal(data, "");
	close(fd);
	/* A place that is left is free for the next one; closing is noticed by the thread later. */
	close(fds[0]);
	for (int64_t until = clock_ms() + TEST_PATIENCE_MS;;) {
		fd = test_connect(path);
		if (send(fd, "{\"v\":1,\"get\":\"report\"}\n", 23, MSG_NOSIGNAL) == 23) {
			receive(fd, data, sizeof(data));
			if (!strcmp(data, "{\"v\":1,\"answer\":42}\n"))
				break;
		}
		close(fd);
		assert_true(clock_ms() < until);
	}
	close(fd);
	for (int i = 1; i < CTL_CLIENTS_MAX; i++)
		close(fds[i]);
}

static void paths(void **state)
{
	char other[256], error[256];
	struct buf out = BUF_INIT(64);
	int fd;

	(void)state;
	/* Served by another daemon; something that is no socket; too long. */
	assert_null(ctl_start(path, IDLE_MS, answer, NULL));
	test_write(dir, "file", "precious");
	snprintf(other, sizeof(other), "%s/file", dir);
	assert_null(ctl_start(other, IDLE_MS, answer, NULL));
	assert_int_equal(access(other, F_OK), 0);
	memset(other, 'x', 200);
	other[0] = '/';
	other[200] = '\0';
	assert_null(ctl_start(other, IDLE_MS, answer, NULL));
	assert_false(ctl_ask(other, "report", 100, &out, error, sizeof(error)));

	/* What a daemon that died left behind is replaced. */
	ctl_stop(ctl);
	fd = test_listen(path);
	close(fd);
	assert_false(ctl_ask(path, "report", 100, &out, error, sizeof(error)));
	assert_non_null(strstr(error, "is the daemon running?"));
	ctl = ctl_start(path, IDLE_MS, answer, NULL);
	assert_non_null(ctl);

	/* A daemon that never answers. */
	snprintf(other, sizeof(other), "%s/mute", dir);
	fd = test_listen(other);
	assert_false(ctl_ask(other, "report", 100, &out, error, sizeof(error)));
	assert_non_null(strstr(error, "timed out"));
	close(fd);
}

/* A daemon that ends removes its own socket, and not the one that stands there now. */
static void own_socket(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(unlink(path), 0);
	fd = test_listen(path);
	ctl_stop(ctl);
	assert_int_equal(access(path, F_OK), 0);
	close(fd);
	ctl = ctl_start(path, IDLE_MS, answer, NULL);
	assert_non_null(ctl);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(good), TEST(garbage), TEST(oversized), TEST(silent_client), TEST(never_reads),
		TEST(big_answer), TEST(too_many), TEST(paths), TEST(own_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
