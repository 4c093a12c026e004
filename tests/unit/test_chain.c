// SPDX-License-Identifier: GPL-2.0
/* The agent and groupd, one speaking to the other: what the host shows is what /proc said. */
#include "test.h"

#include <signal.h>

#include "agent.h"
#include "groupd.h"

static char *dir;
static char path[128];
static struct ev_loop *loop;
static struct agent agent;
static struct groupd gd;
static int listener;

static int setup(void **state)
{
	struct agent_conf conf;

	(void)state;
	dir = test_dir();
	snprintf(path, sizeof(path), "%s/vm.sock", dir);
	test_root(dir, 100, 500, 70);
	test_module(dir);
	listener = test_listen(path);
	loop = ev_loop_new(EVFLAG_NOENV);
	agent_conf_init(&conf);
	strcpy(conf.socket, "none");
	conf.period_ms = 60000;
	conf.heartbeat_ms = 60000;
	return !agent_start(&agent, loop, &conf, dir, false);
}

static int teardown(void **state)
{
	(void)state;
	agent_stop(&agent);
	ev_loop_destroy(loop);
	close(listener);
	test_rm(dir);
	return 0;
}

/* groupd's connection becomes the agent's port, as QEMU would pass it through. */
static bool plug(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return false;
	port_attach(&agent.port, fd);
	return true;
}

static struct guest *host_start(void)
{
	struct groupd_conf conf;
	struct guest *g;

	groupd_conf_init(&conf);
	conf.sockets[0] = '\0';
	assert_true(groupd_start(&gd, loop, &conf, false));
	g = guest_add(&gd, "vm", path, true);
	assert_non_null(g);
	run_until(loop, plug());
	run_until(loop, g->now.reported);
	return g;
}

static void same_as_proc(void **state)
{
	struct guest *g = host_start();

	(void)state;
	assert_int_equal(g->now.report.used_ms, 5000);
	assert_int_equal(g->now.report.steal_ms, 700);
	assert_int_equal(g->now.report.load1_centi, 105);
	assert_int_equal(g->now.report.module.stats[MODULE_STAT_contended_spin], 1002);
	test_root(dir, 102, 620, 110);
	test_write(dir, "sys/kernel/tandem/stats/sent", "2013\n");
	agent_tick(&agent);
	run_until(loop, g->now.report.seq == 2);
	assert_int_equal(g->now.report.used_mcpu, 600);
	assert_int_equal(g->now.report.steal_mcpu, 200);
	assert_int_equal(g->now.hints_per_s_milli, 500000);
	assert_memory_equal(&g->now.report, &agent.sample->report, offsetof(struct report, module));
	assert_int_equal(g->now.malformed, 0);
	groupd_stop(&gd);
}

/* The host's daemon is restarted: the agent sees it go, and the new one gets a report. */
static void host_restarts(void **state)
{
	struct guest *g;

	(void)state;
	host_start();
	for (int i = 0; i < 5; i++) {
		groupd_stop(&gd);
		run_until(loop, agent.port.state == PORT_HUNGUP);
		port_close(&agent.port);
		g = host_start();
		assert_int_equal(agent.port.state, PORT_OPEN);
		assert_int_equal(g->now.malformed, 0);
		assert_int_equal(g->now.report.seq, 1);
	}
	groupd_stop(&gd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(same_as_proc), TEST(host_restarts),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
