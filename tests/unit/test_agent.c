// SPDX-License-Identifier: GPL-2.0
/* The whole agent in one process: fake root, socket pair as port, control socket. */
#include "test.h"

#include <pthread.h>
#include <signal.h>

#include <json-c/json.h>

#include "agent.h"

static char *dir;
static char sock[128];
static struct ev_loop *loop;
static struct agent agent;
static struct json_tokener *tok;
static int host = -1;

static int setup(void **state)
{
	struct agent_conf conf;

	(void)state;
	dir = test_dir();
	snprintf(sock, sizeof(sock), "%s/t.sock", dir);
	test_root(dir, 100, 500, 70);
	tok = json_reader_new(JSON_DEPTH_MAX);
	loop = ev_loop_new(EVFLAG_NOENV);
	agent_conf_init(&conf);
	text_copy(conf.socket, sizeof(conf.socket), sock);
	conf.period_ms = 60000;
	conf.heartbeat_ms = 60000;
	return !agent_start(&agent, loop, &conf, dir, false);
}

static int teardown(void **state)
{
	(void)state;
	agent_stop(&agent);
	ev_loop_destroy(loop);
	json_tokener_free(tok);
	if (host >= 0)
		close(host);
	host = -1;
	test_rm(dir);
	return 0;
}

static void attach(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	host = fds[1];
	port_attach(&agent.port, fds[0]);
}

/* Takes what the host got; returns the number of reports, and the last one. */
static int received(struct report *r)
{
	static char data[1 << 18];
	char error[REPORT_ERROR_MAX];
	ssize_t n = read(host, data, sizeof(data));
	int count = 0;
	char *line, *rest = data;

	if (n <= 0)
		return 0;
	assert_int_equal(data[n - 1], '\n');
	data[n - 1] = '\0';
	while ((line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		if (!report_decode(tok, line, strlen(line), r, error))
			fail_msg("%s: %s", error, line);
		count++;
	}
	return count;
}

static void say(const char *text)
{
	assert_int_equal(write(host, text, strlen(text)), strlen(text));
}

static void push_policy(void **state)
{
	struct report r;

	(void)state;
	/* The first sample was taken before the host came: it goes out at once. */
	attach();
	assert_int_equal(received(&r), 1);
	assert_int_equal(r.seq, 1);
	assert_int_equal(r.used_ms, 5000);
	assert_int_equal(r.used_mcpu, REPORT_UNKNOWN);
	test_root(dir, 101, 510, 70);
	agent_tick(&agent);
	assert_int_equal(received(&r), 1);
	assert_int_equal(r.used_mcpu, 100);
	/* No change worth a report. */
	test_root(dir, 102, 521, 70);
	agent_tick(&agent);
	assert_int_equal(received(&r), 0);
	/* Much changed. */
	test_root(dir, 103, 600, 90);
	agent_tick(&agent);
	assert_int_equal(received(&r), 1);
	assert_int_equal(r.used_mcpu, 790);
	assert_int_equal(r.steal_mcpu, 200);
	assert_int_equal(r.seq, 4);
	/* The module appears, and vanishes. */
	test_module(dir);
	agent_tick(&agent);
	assert_int_equal(received(&r), 1);
	assert_true(r.module.present);
	test_unlink(dir, "sys/kernel/tandem/version");
	agent_tick(&agent);
	assert_int_equal(received(&r), 1);
	assert_false(r.module.present);
}

static void host_asks(void **state)
{
	static char big[LINE_BYTES_MAX + 2];
	struct report r;
	int answers = 0;

	(void)state;
	attach();
	assert_int_equal(received(&r), 1);
	say("\n{\"v\":1,\"type\":\"poll\"}\n");
	run_until(loop, received(&r) == 1);
	assert_int_equal(r.seq, 1);
	/* What is not known or not valid is no reason to answer, nor to stop. */
	say("{\"v\":1,\"type\":\"entitlement\"}\nrubbish\n{\"v\":2,\"type\":\"poll\"}\n[]\n{}\n");
	say("{\"v\":1,\"type\":\"poll\",\"more\":[1]}\n");
	run_until(loop, received(&r) == 1);
	/* A host that floods gets as many answers as it has tokens. */
	for (int i = 0; i < 200; i++)
		say("{\"v\":1,\"type\":\"poll\"}\n");
	run_until(loop, (answers += received(&r), agent.fast.missed > 150));
	assert_in_range(answers, 0, 15);
	/* A line that is too long is told as such, whatever else was told before. */
	assert_int_equal(agent.large.next_ms, 0);
	memset(big, 'x', sizeof(big) - 2);
	big[sizeof(big) - 2] = '\n';
	say(big);
	run_until(loop, agent.large.next_ms > 0);
}

static void host_gone_and_back(void **state)
{
	struct report r;

	(void)state;
	attach();
	assert_int_equal(received(&r), 1);
	close(host);
	run_until(loop, agent.port.state == PORT_HUNGUP);
	agent_tick(&agent);
	assert_int_equal(agent.port.state, PORT_HUNGUP);
	/* It comes back, on the same descriptor: the new reader gets the newest sample. */
	{
		int fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
		assert_true(dup2(fds[0], agent.port.fd) >= 0);
		close(fds[0]);
		host = fds[1];
	}
	agent_tick(&agent);
	assert_int_equal(received(&r), 1);
	assert_int_equal(r.seq, 3);
	assert_int_equal(r.dropped, 0);
}

static void control_socket(void **state)
{
	struct buf out = BUF_INIT(LINE_BYTES_MAX), want = BUF_INIT(LINE_BYTES_MAX);
	char error[256];

	(void)state;
	/* What the control socket says is what the sampler read, to the byte. */
	for (unsigned int i = 0; i < 50; i++) {
		test_root(dir, 101 + i, 500 + 7 * i, 70 + i);
		agent_tick(&agent);
		buf_reset(&want);
		report_encode(&agent.sample->report, &want);
		buf_reset(&out);
		assert_true(ctl_ask(sock, "report", 5000, &out, error, sizeof(error)));
		assert_string_equal(out.data, want.data);
	}
	buf_free(&out);
	buf_free(&want);
}

static void *ask_often(void *arg)
{
	struct json_tokener *mine = json_reader_new(JSON_DEPTH_MAX);
	struct buf out = BUF_INIT(LINE_BYTES_MAX);
	char error[256];
	struct report r;
	long *failed = arg;

	for (int i = 0; i < 300; i++) {
		buf_reset(&out);
		if (!ctl_ask(sock, "report", 5000, &out, error, sizeof(error)) ||
		    !report_decode(mine, out.data, out.len, &r, error) ||
		    r.used_ms != 10 * (int64_t)(r.uptime_ms / 1000))
			(*failed)++;
	}
	buf_free(&out);
	json_tokener_free(mine);
	return NULL;
}

/* Publishing under readers: each sees one whole sample (ASan sees a use after free). */
static void published_whole(void **state)
{
	unsigned int i = 1000;
	long failed = 0;
	pthread_t t;

	(void)state;
	test_root(dir, i, i, 0);
	agent_tick(&agent);
	assert_int_equal(pthread_create(&t, NULL, ask_often, &failed), 0);
	for (; i < 1500; i++) {
		test_root(dir, i, i, 0);
		agent_tick(&agent);
	}
	pthread_join(t, NULL);
	assert_int_equal(failed, 0);
}

static void reconfigure(void **state)
{
	struct agent_conf conf = agent.conf;
	struct report r;

	(void)state;
	attach();
	assert_int_equal(received(&r), 1);
	conf.period_ms = 100;
	conf.threshold_permille = 0;
	agent_reconfigure(&agent, &conf);
	/* The timer runs with the new period: samples come by themselves. */
	run_until(loop, agent.sample->report.seq >= 3);
	assert_int_equal(agent.sample->report.period_ms, 100);
}

static void once_prints(void **state)
{
	struct agent_conf conf = agent.conf;
	char *text = NULL, error[REPORT_ERROR_MAX];
	size_t size = 0;
	struct report r;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	conf.period_ms = 100;
	assert_true(agent_once(&conf, dir, f));
	fclose(f);
	text[--size] = '\0';
	assert_true(report_decode(tok, text, size, &r, error));
	assert_int_equal(r.seq, 2);
	free(text);
	/* And on the real machine. */
	f = open_memstream(&text, &size);
	assert_true(agent_once(&conf, "/", f));
	fclose(f);
	assert_true(report_decode(tok, text, size - 1, &r, error));
	assert_true(r.interval_ms >= 100);
	free(text);
	assert_false(agent_once(&conf, "/nonexistent", stdout));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(push_policy), TEST(host_asks), TEST(host_gone_and_back), TEST(control_socket),
		TEST(published_whole), TEST(reconfigure), TEST(once_prints),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
