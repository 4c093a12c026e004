// SPDX-License-Identifier: GPL-2.0
/* The agent over xenstore: round trips, refusals, a xenstored that hangs or restarts. */
#include "test.h"

#include <dirent.h>

#include <json-c/json.h>

#include "agent.h"
#include "fakestore.h"
#include "xswork.h"

#define HOME "/local/domain/7/"
#define HOST "sys/kernel/tandem/topology/host"

static char *dir;
static struct ev_loop *loop;
static struct agent agent;
static struct fakestore fake;
static struct json_tokener *tok;

static void start(const char *transport)
{
	struct agent_conf conf;

	agent_conf_init(&conf);
	text_copy(conf.socket, sizeof(conf.socket), "none");
	text_copy(conf.transport, sizeof(conf.transport), transport);
	conf.period_ms = 60000;
	conf.heartbeat_ms = 60000;
	assert_true(agent_start(&agent, loop, &conf, dir, false));
}

static int setup(void **state)
{
	(void)state;
	dir = test_dir();
	test_log_begin(dir);
	test_root(dir, 100, 500, 70);
	test_write(dir, "sys/hypervisor/type", "xen\n");
	tok = json_reader_new(JSON_DEPTH_MAX);
	loop = ev_loop_new(EVFLAG_NOENV);
	fake_start(&fake, dir, 7);
	start("auto");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	agent_stop(&agent);
	ev_loop_destroy(loop);
	json_tokener_free(tok);
	fake_stop(&fake);
	test_log_end();
	test_rm(dir);
	return 0;
}

static struct xswork *base(void)
{
	return (struct xswork *)agent.xen.work;
}

/* The report in the store; seq 0 when there is none. */
static struct report stored_at(const char *path)
{
	char error[REPORT_ERROR_MAX];
	char *text = fake_read(&fake, path);
	struct report r = { .seq = 0 };

	if (text && !report_decode(tok, text, strlen(text), &r, error))
		fail_msg("%s: %s", error, text);
	free(text);
	return r;
}

static struct report stored(void)
{
	return stored_at(HOME XENLINK_REPORT);
}

static bool stored_group(const char *group)
{
	struct report r = stored();

	return r.seq && !strcmp(r.group, group);
}

static bool module_told(const char *word)
{
	char path[256], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/" HOST, dir);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		*text = '\0';
	fclose(f);
	return !strcmp(text, word);
}

static void writes_its_report(void **state)
{
	struct report r;
	char *text;

	(void)state;
	assert_ptr_equal(agent.link, &agent.xen.link);
	run_until(loop, stored().seq == 1);
	test_root(dir, 101, 600, 90);
	agent_tick(&agent);
	run_until(loop, stored().seq == 2);
	r = stored();
	assert_int_equal(r.used_mcpu, 1000);
	assert_int_equal(r.steal_mcpu, 200);
	assert_string_equal(r.group, "");
	/* No change worth a report: nothing is written. */
	test_root(dir, 102, 701, 110);
	agent_tick(&agent);
	assert_int_equal(agent.sample->report.seq, 3);
	test_root(dir, 103, 701, 110);
	agent_tick(&agent);
	run_until(loop, stored().seq == 4);
	text = fake_read(&fake, HOME XENLINK_REPORT);
	assert_null(strchr(text, '\n'));
	free(text);
	assert_int_equal(r.dropped, 0);
	assert_int_equal(fake_count(&fake, "/fake/watches"), 1);
	/* An agent that ends takes its report with it. */
	agent_stop(&agent);
	assert_null(fake_read(&fake, HOME "data/tandem"));
	start("auto");
	run_until(loop, stored().seq == 1);
}

static void obeys(void **state)
{
	(void)state;
	test_module(dir);
	test_write(dir, HOST, "none\n");
	run_until(loop, stored().seq == 1);
	agent_tick(&agent);
	fake_write(&fake, HOME "control/tandem/group", "web");
	run_until(loop, stored_group("web"));
	fake_write(&fake, HOME "control/tandem/period_ms", "100");
	run_until(loop, stored().period_ms == 100);
	/* And samples come by themselves. */
	run_until(loop, agent.sample->report.seq >= 5);
	assert_int_equal(stored().heartbeat_ms, 60000);
	fake_write(&fake, HOME "control/tandem/topology", "pinned");
	run_until(loop, module_told("pinned"));
	fake_write(&fake, HOME "control/tandem/topology", "trusted");
	run_until(loop, module_told("trusted"));
	/* The module is loaded anew and knows nothing. */
	test_write(dir, HOST, "none\n");
	run_until(loop, module_told("trusted"));
	/* Not valid: as if it said nothing, with a line. */
	fake_write(&fake, HOME "control/tandem/topology", "pinnd\x1b[2J");
	run_until(loop, module_told("none"));
	assert_int_equal(test_logged("topology = 'pinnd\\x1b[2J' is not valid, accepted: pinned or trusted"), 1);
	/* Everything is taken back. */
	fake_rm(&fake, HOME "control/tandem");
	run_until(loop, stored().period_ms == 60000);
	run_until(loop, stored_group(""));
	assert_string_equal(agent.said.topology, "none");
	/* Nothing of that has replaced a report before it was written. */
	assert_int_equal(agent.link->dropped, 0);
}

/* What the host has said before the agent came is obeyed in its first report. */
static void obeys_from_the_start(void **state)
{
	struct report r;

	(void)state;
	run_until(loop, stored().seq == 1);
	agent_stop(&agent);
	test_module(dir);
	test_write(dir, HOST, "none\n");
	fake_write(&fake, HOME "control/tandem/group", "db");
	fake_write(&fake, HOME "control/tandem/topology", "pinned");
	fake_write(&fake, HOME "control/tandem/period_ms", "30000");
	start("auto");
	run_until(loop, stored().seq == 1);
	r = stored();
	assert_string_equal(r.group, "db");
	assert_int_equal(r.period_ms, 30000);
	assert_true(module_told("pinned"));
	/* Over a reload, too. */
	agent_reconfigure(&agent, &agent.conf);
	assert_true(agent.tick.repeat > 29. && agent.tick.repeat < 31.);
}

static void module_without_the_file(void **state)
{
	(void)state;
	run_until(loop, stored().seq == 1);
	test_module(dir);
	agent_tick(&agent);
	fake_write(&fake, HOME "control/tandem/topology", "pinned");
	run_until(loop, test_logged("cannot tell the module that the host says pinned") == 1);
	agent_tick(&agent);
	fake_write(&fake, HOME "control/tandem/topology", "trusted");
	run_until(loop, !strcmp(agent.said.topology, "trusted"));
	agent_tick(&agent);
	assert_int_equal(test_logged("cannot tell the module"), 1);
}

/* A dom0 that speaks to the socket has no home there. */
static void dom0(void **state)
{
	(void)state;
	agent_stop(&agent);
	fake_write(&fake, "/fake/self", "-1");
	start("xenstore");
	run_until(loop, stored_at("/local/domain/0/data/tandem/report").seq == 1);
	fake_write(&fake, "/local/domain/0/control/tandem/period_ms", "500");
	run_until(loop, agent.said.period_ms == 500);
}

/* Each refusal gives one line, and the agent goes on. */
static void refused(void **state)
{
	static const struct {
		const char *error;
		const char *line;
	} tests[] = {
		{ "EACCES", "Permission denied: the toolstack has to let" },
		{ "ENOSPC", "No space left on device: is the guest's quota" },
		{ "E2BIG", "Argument list too long: is the guest's quota" },
		{ "EINVAL", "Invalid argument: is the guest's quota" },
		{ "EIO", "Input/output error" },
	};
	char text[128];

	(void)state;
	run_until(loop, stored().seq == 1);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		agent_stop(&agent);
		start("auto");
		run_until(loop, stored().seq == 1);
		snprintf(text, sizeof(text), HOME "data %s", tests[i].error);
		fake_write(&fake, "/fake/error", text);
		for (uint64_t n = 1; n <= 3; n++) {
			agent.pushed.valid = false;
			agent_tick(&agent);
			run_until(loop, agent.link->dropped == n);
		}
		assert_int_equal(test_logged(tests[i].line), 1);
		fake_write(&fake, "/fake/error", "");
		agent.pushed.valid = false;
		agent_tick(&agent);
		run_until(loop, stored().seq == agent.sample->report.seq);
		run_until(loop, test_logged("can be written again") == (long)i + 1);
		assert_int_equal(stored().dropped, 3);
	}
	assert_int_equal(test_logged("connection to xenstored was lost"), 0);
}

/* The host's nodes cannot be read, or watched. */
static void control_refused(void **state)
{
	(void)state;
	agent_stop(&agent);
	fake_write(&fake, "/fake/error", HOME "control EACCES");
	start("auto");
	run_until(loop, stored().seq == 1);
	assert_int_equal(test_logged("cannot watch control/tandem: Permission denied"), 1);
}

static void restarted(void **state)
{
	(void)state;
	fake_write(&fake, HOME "control/tandem/group", "web");
	run_until(loop, stored_group("web"));
	fake_kill(&fake);
	/* Nobody tells that it is gone: the next report finds out. */
	agent.pushed.valid = false;
	agent_tick(&agent);
	run_until(loop, !agent.xen.connected);
	agent_tick(&agent);
	run_until(loop, test_logged("cannot connect: ") == 1);
	fake_restart(&fake);
	run_until(loop, stored().seq == agent.sample->report.seq);
	/* What it has forgotten is not said any more; and it is watched again. */
	run_until(loop, stored_group(""));
	fake_write(&fake, HOME "control/tandem/group", "db");
	run_until(loop, stored_group("db"));
	assert_int_equal(test_logged("connection to xenstored was lost"), 1);
	assert_int_equal(test_logged("xenstore: connected"), 2);
}

static int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = 0;

	while (readdir(tasks))
		n++;
	closedir(tasks);
	/* "." and ".." are none. */
	return n - 2;
}

/* xenstored does not answer: the agent goes on, the newest report wins, and stopping works. */
static void hangs(void **state)
{
	int64_t start_ms;

	(void)state;
	run_until(loop, stored().seq == 1);
	kill(fake.pid, SIGSTOP);
	for (int i = 0; i < 5; i++) {
		agent.pushed.valid = false;
		agent_tick(&agent);
		ev_run(loop, EVRUN_NOWAIT);
	}
	run_until(loop, atomic_load(&base()->busy_ms));
	agent.pushed.valid = false;
	agent_tick(&agent);
	agent.pushed.valid = false;
	agent_tick(&agent);
	assert_true(agent.link->dropped >= 1);
	/* As if it were for long. */
	atomic_fetch_sub(&base()->busy_ms, XSWORK_SLOW_MS);
	agent_tick(&agent);
	agent_tick(&agent);
	assert_int_equal(test_logged("no answer from xenstored for 5 s (writing a node)"), 1);
	kill(fake.pid, SIGCONT);
	run_until(loop, stored().seq == 8);
	agent_tick(&agent);
	assert_int_equal(test_logged("xenstored answers again"), 1);

	kill(fake.pid, SIGSTOP);
	agent.pushed.valid = false;
	agent_tick(&agent);
	run_until(loop, atomic_load(&base()->busy_ms));
	start_ms = clock_ms();
	agent_stop(&agent);
	assert_in_range(clock_ms() - start_ms, 900, 5000);
	assert_int_equal(test_logged("ending without it"), 1);
	/* The thread that was left ends by itself, and leaves alone what the next one makes. */
	start("auto");
	kill(fake.pid, SIGCONT);
	run_until(loop, stored().seq == 1);
	run_until(loop, threads() == 3);
	assert_int_equal(stored().seq, 1);
}

/* How often threads other than this one went to sleep. */
static long naps(void)
{
	char path[64], line[128];
	struct dirent *entry;
	DIR *tasks = opendir("/proc/self/task");
	long n, sum = 0;
	FILE *f;

	while ((entry = readdir(tasks))) {
		if (*entry->d_name == '.' || atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", entry->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
				sum += n;
		}
		if (f)
			fclose(f);
	}
	closedir(tasks);
	return sum;
}

/* While nothing is said and nothing to say, nobody wakes up. */
static void silent(void **state)
{
	int64_t until_ms = clock_ms() + TEST_PATIENCE_MS;
	long before;

	(void)state;
	run_until(loop, stored().seq == 1);
	do {
		before = naps();
		usleep(400000);
	} while (naps() != before && clock_ms() < until_ms);
	assert_int_equal(naps(), before);
}

/* A report that is too long for a domU's node goes without what can be spared. */
static void long_report(void **state)
{
	char text[256];
	struct report r;

	(void)state;
	run_until(loop, stored().seq == 1);
	test_module(dir);
	memset(text, 'x', sizeof(text));
	text[254] = '\0';
	test_write(dir, "sys/kernel/tandem/features", text);
	text[126] = '\0';
	test_write(dir, "sys/kernel/tandem/topology/reason", text);
	test_write(dir, "sys/kernel/tandem/topology/state", text);
	for (size_t i = 0; i < MODULE_STAT_NR; i++) {
		char path[128];

		snprintf(path, sizeof(path), "sys/kernel/tandem/stats/%s", module_stat_names[i]);
		test_write(dir, path, "9223372036854775807\n");
	}
	text[63] = '\0';
	test_write(dir, "proc/sys/kernel/hostname", text);
	text[30] = '\0';
	test_write(dir, "sys/kernel/tandem/topology/variant", text);
	test_write(dir, "sys/kernel/tandem/version", text);
	test_write(dir, "sys/kernel/tandem/hypervisor", text);
	test_write(dir, "sys/kernel/tandem/hints/state", text);
	test_write(dir, "sys/kernel/tandem/gate/state", text);
	memset(text, 'g', 64);
	text[64] = '\0';
	fake_write(&fake, HOME "control/tandem/group", text);
	run_until(loop, stored_group(text));
	agent_tick(&agent);
	run_until(loop, stored().seq == 2);
	r = stored();
	assert_string_equal(r.module.features, "");
	assert_int_equal(strlen(r.module.topology), 126);
	assert_true(r.module.stats[MODULE_STAT_sent] == INT64_MAX);
}

/* A host that never stops talking, and odd values: each as good as nothing. */
static void host_floods(void **state)
{
	static char big[4000];

	(void)state;
	run_until(loop, stored().seq == 1);
	memset(big, 'x', sizeof(big));
	fake_write_n(&fake, HOME "control/tandem/group", big, sizeof(big));
	run_until(loop, test_logged("group = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' is not valid") == 1);
	fake_write_n(&fake, HOME "control/tandem/group", "a\0b", 3);
	run_until(loop, test_logged("group = 'a' is not valid") == 1);
	fake_write(&fake, "/fake/flood", HOME "control/tandem/group 20000");
	fake_write(&fake, "/fake/flood", HOME "control/tandem/x/y 20000");
	fake_write(&fake, HOME "control/tandem/group", "last");
	run_until(loop, !strcmp(agent.said.group, "last"));
	assert_true(fake_count(&fake, "/fake/reads") < 200);
	assert_true(test_logged("is not valid") <= 9);
}

static void no_xenstored(void **state)
{
	(void)state;
	agent_stop(&agent);
	fake_kill(&fake);
	start("auto");
	agent_tick(&agent);
	run_until(loop, test_logged("cannot connect: No such file or directory") == 1);
	assert_false(agent.xen.connected);
	fake_restart(&fake);
	run_until(loop, stored().seq == 2);
}

/* The transport may change in a reload. */
static void transport_changes(void **state)
{
	struct agent_conf conf;

	(void)state;
	run_until(loop, stored().seq == 1);
	conf = agent.conf;
	text_copy(conf.transport, sizeof(conf.transport), "virtio-serial");
	agent_reconfigure(&agent, &conf);
	assert_ptr_equal(agent.link, &agent.port.link);
	assert_null(agent.xen.work);
	assert_int_equal(stored().seq, 0);
	text_copy(conf.transport, sizeof(conf.transport), "auto");
	agent_reconfigure(&agent, &conf);
	agent_tick(&agent);
	run_until(loop, stored().seq == 2);
	assert_true(!agent_conf_table.keys[0].check("auto"));
	assert_non_null(agent_conf_table.keys[0].check("vsock"));
}

static void which_transport(void **state)
{
	int root = open(dir, O_PATH | O_DIRECTORY);

	(void)state;
	assert_true(xenlink_here(root));
	test_write(dir, "sys/hypervisor/type", "kvm\n");
	assert_false(xenlink_here(root));
	test_unlink(dir, "sys/hypervisor/type");
	assert_false(xenlink_here(root));
	test_write(dir, "dev/xen/xenbus", "");
	assert_true(xenlink_here(root));
	close(root);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(writes_its_report), TEST(obeys), TEST(obeys_from_the_start),
		TEST(module_without_the_file), TEST(dom0), TEST(refused), TEST(control_refused),
		TEST(restarted), TEST(hangs), TEST(silent), TEST(long_report), TEST(host_floods),
		TEST(no_xenstored), TEST(transport_changes), TEST(which_transport),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
