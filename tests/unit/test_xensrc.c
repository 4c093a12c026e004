// SPDX-License-Identifier: GPL-2.0
/* groupd in dom0: domains that come, go, are renamed, flood, and a xenstored that hangs. */
#include "test.h"

#include <malloc.h>

#include "fakestore.h"
#include "groupd.h"

static char *dir;
static char control[128];
static struct ev_loop *loop;
static struct groupd gd;
static struct fakestore fake;

static int setup(void **state)
{
	struct groupd_conf conf;

	(void)state;
	dir = test_dir();
	test_log_begin(dir);
	snprintf(control, sizeof(control), "%s/groupd.sock", dir);
	loop = ev_loop_new(EVFLAG_NOENV);
	fake_start(&fake, dir, -1);
	fake_write(&fake, "/local/domain/0/name", "Domain-0");
	groupd_conf_init(&conf);
	text_copy(conf.socket, sizeof(conf.socket), control);
	snprintf(conf.sockets, sizeof(conf.sockets), "%s/guests/*.sock", dir);
	test_write(dir, "guests/none", "");
	return !groupd_start(&gd, loop, &conf, true);
}

static int teardown(void **state)
{
	(void)state;
	groupd_stop(&gd);
	ev_loop_destroy(loop);
	fake_stop(&fake);
	test_log_end();
	test_rm(dir);
	return 0;
}

static void path_of(char *path, size_t size, int domid, const char *node)
{
	snprintf(path, size, "/local/domain/%d/%s", domid, node);
}

static void set(int domid, const char *node, const char *value)
{
	char path[128];

	path_of(path, sizeof(path), domid, node);
	fake_write(&fake, path, value);
}

static void create(int domid, const char *name)
{
	set(domid, "domid", "");
	if (name)
		set(domid, "name", name);
	fake_write(&fake, "/fake/fire", "@introduceDomain");
}

static void destroy(int domid)
{
	char path[128];

	snprintf(path, sizeof(path), "/local/domain/%d", domid);
	fake_rm(&fake, path);
	fake_write(&fake, "/fake/fire", "@releaseDomain");
}

static void send_report(int domid, int64_t seq)
{
	struct buf text = BUF_INIT(LINE_BYTES_MAX);
	struct report r;

	test_report(&r);
	r.seq = seq;
	r.uptime_ms = seq * 1000;
	report_encode(&r, &text);
	set(domid, "data/tandem/report", text.data);
	buf_free(&text);
}

static uint64_t reports_of(const char *name)
{
	struct guest *g = guest_find(&gd, name);

	return g ? g->now.reports : 0;
}

static enum guest_state state_of(const char *name)
{
	struct guest *g = guest_find(&gd, name);

	return g ? guest_state(&g->now, clock_ms()) : GUEST_STATE_NR;
}

static int64_t domid_of(const char *name)
{
	struct guest *g = guest_find(&gd, name);

	return g ? g->now.domid : -1;
}

static void found_and_shown(void **state)
{
	struct buf out = BUF_INIT(1 << 20);
	char error[256];

	(void)state;
	run_until(loop, state_of("Domain-0") == GUEST_WAITING);
	send_report(0, 1);
	run_until(loop, state_of("Domain-0") == GUEST_OK);
	create(5, "web");
	run_until(loop, state_of("web") == GUEST_WAITING);
	assert_int_equal(domid_of("web"), 5);
	send_report(5, 1);
	run_until(loop, reports_of("web") == 1);
	send_report(5, 2);
	run_until(loop, reports_of("web") == 2);
	groupd_table(&gd, &out);
	assert_non_null(strstr(out.data, "\nweb         2/4   1.05  1.23    1.64    25.0      0.0  flat      0s\n"));
	buf_reset(&out);
	assert_true(ctl_ask(control, "guests", 5000, &out, error, sizeof(error)));
	assert_non_null(strstr(out.data, "\"transport\":\"xenstore\",\"domid\":5,"));
	buf_reset(&out);
	assert_true(guests_table_from_json("{\"v\":1,\"guests\":[]}", 19, &out, error));
	buf_free(&out);
	/* The same node again is no news. */
	send_report(5, 2);
	send_report(5, 3);
	run_until(loop, reports_of("web") == 3);
	assert_true(groupd_all_answered(&gd, false));
	/* The agent ends. */
	fake_rm(&fake, "/local/domain/5/data/tandem");
	run_until(loop, state_of("web") == GUEST_WAITING);
	send_report(5, 1);
	run_until(loop, state_of("web") == GUEST_OK);
	/* The domain ends. */
	destroy(5);
	run_until(loop, state_of("web") == GUEST_STATE_NR);
	assert_int_equal(gd.count, 1);
	assert_int_equal(fake_count(&fake, "/fake/dirs"), 0);
	run_until(loop, fake_count(&fake, "/fake/watches") == 4);
}

/* A name comes late, is odd, changes, and is another domain's as well. */
static void names(void **state)
{
	struct fakestore *f = &fake;
	int vm;

	(void)state;
	create(3, NULL);
	run_until(loop, domid_of("domain-3") == 3);
	set(3, "name", "late");
	run_until(loop, domid_of("late") == 3);
	set(3, "name", "ev\x1bil name\xff");
	run_until(loop, domid_of("ev?il?name?") == 3);
	fake_write(f, "/local/domain/3/name",
		   "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn");
	run_until(loop, domid_of("nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn") == 3);
	set(3, "name", "");
	run_until(loop, domid_of("domain-3") == 3);
	/* Two with one name: each is shown, and the later one gets it when it is free. */
	set(3, "name", "vm");
	run_until(loop, domid_of("vm") == 3);
	create(4, "vm");
	run_until(loop, domid_of("vm#4") == 4);
	send_report(4, 1);
	run_until(loop, reports_of("vm#4") == 1);
	destroy(3);
	run_until(loop, domid_of("vm") == 4);
	assert_int_equal(reports_of("vm"), 1);
	/* A reboot is another domain with the name. */
	destroy(4);
	create(6, "vm");
	run_until(loop, domid_of("vm") == 6);
	assert_int_equal(reports_of("vm"), 0);
	assert_int_equal(gd.count, 2);
	/* Migration: the name moves from one to the other. */
	create(7, "vm--incoming");
	run_until(loop, domid_of("vm--incoming") == 7);
	set(6, "name", "vm--migratedaway");
	set(7, "name", "vm");
	run_until(loop, domid_of("vm") == 7);
	run_until(loop, domid_of("vm--migratedaway") == 6);
	/* And a guest behind a socket has it first. */
	{
		char path[160];

		snprintf(path, sizeof(path), "%s/guests/kvm.sock", dir);
		vm = test_listen(path);
	}
	run_until(loop, guest_find(&gd, "kvm"));
	create(8, "kvm");
	run_until(loop, domid_of("kvm#8") == 8);
	close(vm);
}

/* Writes of every hostile kind, beside a good domain. */
static void hostile(void **state)
{
	static char big[XENSTORE_PAYLOAD_MAX - 40];
	char path[160];
	struct guest *g;

	(void)state;
	create(1, "good");
	create(2, "bad");
	run_until(loop, state_of("bad") == GUEST_WAITING);
	g = guest_find(&gd, "bad");
	set(2, "data/tandem/report", "");
	run_until(loop, g->now.malformed == 1);
	fake_write_n(&fake, "/local/domain/2/data/tandem/report", "{\"v\":1\0}", 8);
	run_until(loop, g->now.malformed == 2);
	set(2, "data/tandem/report", "\x1b[2J{{{{{{{{");
	run_until(loop, g->now.malformed == 3);
	memset(big, '[', sizeof(big));
	fake_write_n(&fake, "/local/domain/2/data/tandem/report", big, sizeof(big));
	run_until(loop, g->now.malformed == 4);
	assert_int_equal(g->now.oversized, 0);
	/* Thousands of nodes, beside and below its report. */
	for (int i = 0; i < 2000; i++) {
		snprintf(path, sizeof(path), "/local/domain/2/data/tandem/%d", i);
		fake_write(&fake, path, "x");
		snprintf(path, sizeof(path), "/local/domain/2/data/tandem/report/%d", i);
		fake_write(&fake, path, "x");
		if (i % 400 == 0) {
			send_report(1, i + 1);
			run_until(loop, reports_of("good") == (uint64_t)i / 400 + 1);
		}
	}
	assert_int_equal(guest_find(&gd, "good")->now.limited, 0);
	run_until(loop, g->now.limited > 0);
	/* All of it removed, and the agent is a good one again. */
	fake_rm(&fake, "/local/domain/2/data");
	send_report(2, 1);
	run_until(loop, reports_of("bad") == 1);
	assert_int_equal(fake_count(&fake, "/fake/dirs"), 0);
	assert_true(test_logged("guest bad: ") <= 4);
}

/* However much it writes, xenstored sends no more than a few events: the node is not watched. */
static void flood(void **state)
{
	int64_t start_ms = clock_ms();
	size_t used = 0;
	long reads, took_s;
	struct guest *g;

	(void)state;
	create(1, "good");
	create(2, "bad");
	run_until(loop, state_of("bad") == GUEST_WAITING);
	g = guest_find(&gd, "bad");
	reads = fake_count(&fake, "/fake/reads");
	for (int64_t n = 1; n <= 10; n++) {
		int64_t sent_ms = clock_ms();

		fake_write(&fake, "/fake/flood", "/local/domain/2/data/tandem/report 5000");
		fake_write(&fake, "/fake/flood", "/local/domain/2/data/tandem/report/x/y 5000");
		send_report(1, n);
		run_until(loop, reports_of("good") == (uint64_t)n);
		assert_true(clock_ms() - sent_ms < 5000);
		/* A round takes 300 ms, so some begin with the node watched. */
		run_until(loop, clock_ms() - sent_ms >= 300);
		if (n == 3)
			used = mallinfo2().uordblks;
	}
	/* Nothing grows: the library's list of events neither. */
	assert_true(mallinfo2().uordblks < used + 100000);
	assert_true(g->now.limited > 0);
	took_s = (clock_ms() - start_ms) / 1000 + 1;
	assert_true((long)g->now.malformed <= 10 + 10 * took_s);
	assert_int_equal(guest_find(&gd, "good")->now.limited, 0);
	assert_true(fake_count(&fake, "/fake/reads") - reads < 50 + 20 * took_s);
	assert_true(test_logged("guest bad: ") <= 4);
	send_report(2, 1);
	run_until(loop, reports_of("bad") == 1);
}

/* A good agent at the greatest rate is not slowed down by its own watch. */
static void greatest_rate(void **state)
{
	(void)state;
	create(1, "vm");
	run_until(loop, state_of("vm") == GUEST_WAITING);
	for (int64_t n = 1; n <= 15; n++) {
		int64_t sent_ms = clock_ms();

		send_report(1, n);
		run_until(loop, clock_ms() - sent_ms >= 105 && reports_of("vm") == (uint64_t)n);
	}
	assert_int_equal(guest_find(&gd, "vm")->now.limited, 0);
}

/* xenstored was started anew, and dom0's nodes are made later, which no event tells. */
static void dom0_comes_late(void **state)
{
	int64_t gone_ms;

	(void)state;
	run_until(loop, state_of("Domain-0") == GUEST_WAITING);
	destroy(0);
	run_until(loop, state_of("Domain-0") == GUEST_STATE_NR);
	/* The domains are listed once more after an event. */
	gone_ms = clock_ms();
	run_until(loop, clock_ms() - gone_ms > 3000);
	fake_write(&fake, "/local/domain/0/name", "Domain-0");
	run_until(loop, state_of("Domain-0") == GUEST_WAITING);
}

static void restarted(void **state)
{
	struct guest *g;

	(void)state;
	create(1, "stays");
	create(2, "leaves");
	send_report(1, 1);
	run_until(loop, reports_of("stays") == 1 && state_of("leaves") == GUEST_WAITING);
	g = guest_find(&gd, "stays");
	fake_kill(&fake);
	run_until(loop, state_of("stays") == GUEST_GONE);
	assert_int_equal(state_of("leaves"), GUEST_GONE);
	fake_restart(&fake);
	fake_write(&fake, "/local/domain/0/name", "Domain-0");
	set(1, "name", "stays");
	send_report(1, 1);
	fake_write(&fake, "/fake/fire", "@introduceDomain");
	run_until(loop, state_of("stays") == GUEST_OK);
	assert_ptr_equal(g, guest_find(&gd, "stays"));
	run_until(loop, state_of("leaves") == GUEST_STATE_NR);
	send_report(1, 2);
	run_until(loop, reports_of("stays") == 3);
	create(9, "new");
	run_until(loop, state_of("new") == GUEST_WAITING);
	/* One line for the connection, and one for each guest. */
	assert_int_equal(test_logged("connection to xenstored was lost"), 1 + 3);
}

/* xenstored does not answer: everything else goes on, and stopping works. */
static void hangs(void **state)
{
	struct buf out = BUF_INIT(1 << 20);
	char error[256], path[160];
	struct groupd_conf conf;
	int64_t start_ms;
	int vm, fd = -1;

	(void)state;
	create(1, "vm");
	run_until(loop, state_of("vm") == GUEST_WAITING);
	set(1, "data/tandem/report", "x");
	kill(fake.pid, SIGSTOP);
	snprintf(path, sizeof(path), "%s/guests/kvm.sock", dir);
	vm = test_listen(path);
	run_until(loop, (fd = accept4(vm, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
	{
		struct buf text = BUF_INIT(LINE_BYTES_MAX);
		struct report r;

		test_report(&r);
		report_encode(&r, &text);
		buf_puts(&text, "\n");
		assert_int_equal(write(fd, text.data, text.len), text.len);
		buf_free(&text);
	}
	run_until(loop, reports_of("kvm") == 1);
	assert_true(ctl_ask(control, "guests", 5000, &out, error, sizeof(error)));
	buf_free(&out);
	start_ms = clock_ms();
	conf = gd.conf;
	groupd_stop(&gd);
	assert_in_range(clock_ms() - start_ms, 0, 5000);
	kill(fake.pid, SIGCONT);
	close(fd);
	close(vm);
	unlink(path);
	assert_true(groupd_start(&gd, loop, &conf, true));
	run_until(loop, state_of("vm") == GUEST_WAITING);
}

static void limits(void **state)
{
	struct groupd_conf conf = gd.conf;

	(void)state;
	conf.max_guests = 3;
	groupd_reconfigure(&gd, &conf);
	for (int i = 1; i <= 5; i++)
		create(i, NULL);
	run_until(loop, gd.count == 3);
	run_until(loop, test_logged("more than 3 domains, not added") == 1);
	/* One goes, another gets its place. */
	destroy(1);
	run_until(loop, gd.count == 3 && domid_of("domain-1") < 0);
	text_copy(conf.xenstore, sizeof(conf.xenstore), "off");
	groupd_reconfigure(&gd, &conf);
	assert_null(gd.xen);
	assert_int_equal(gd.count, 0);
	text_copy(conf.xenstore, sizeof(conf.xenstore), "on");
	conf.max_guests = 1000;
	groupd_reconfigure(&gd, &conf);
	run_until(loop, gd.count == 5);
	/* Many at once. */
	for (int i = 10; i < 310; i++)
		set(i, "name", "many");
	fake_write(&fake, "/fake/fire", "@introduceDomain");
	run_until(loop, gd.count == 305);
	for (int i = 10; i < 310; i++)
		send_report(i, 1);
	run_until(loop, reports_of("many#309") == 1);
	fake_rm(&fake, "/local/domain");
	fake_write(&fake, "/fake/fire", "@releaseDomain");
	run_until(loop, gd.count == 0);
	run_until(loop, fake_count(&fake, "/fake/watches") == 2);
}

/* Entries that are no domains, and a groupd that may not follow them. */
static void odd_entries(void **state)
{
	struct groupd_conf conf = gd.conf;

	(void)state;
	fake_write(&fake, "/local/domain/70000/name", "x");
	fake_write(&fake, "/local/domain/12a/name", "x");
	fake_write(&fake, "/local/domain/-3/name", "x");
	create(2, "real");
	run_until(loop, state_of("real") == GUEST_WAITING);
	assert_int_equal(gd.count, 2);
	groupd_stop(&gd);
	fake_write(&fake, "/fake/error", "@ EACCES");
	assert_true(groupd_start(&gd, loop, &conf, true));
	run_until(loop, test_logged("cannot watch @introduceDomain: Permission denied: domains are followed in dom0 only") == 1);
}

/* The list of domains is refused for a while. */
static void list_refused(void **state)
{
	struct groupd_conf conf = gd.conf;

	(void)state;
	groupd_stop(&gd);
	fake_write(&fake, "/fake/error", "/local/domain ENOMEM");
	assert_true(groupd_start(&gd, loop, &conf, true));
	run_until(loop, test_logged("cannot list /local/domain: Cannot allocate memory, trying again") == 1);
	assert_false(groupd_all_answered(&gd, false));
	fake_write(&fake, "/fake/error", "");
	run_until(loop, state_of("Domain-0") == GUEST_WAITING);
	run_until(loop, groupd_all_answered(&gd, false));
}

/* Which of them are asked for. */
static void asked_for(void **state)
{
	(void)state;
	assert_true(xensrc_here());
	fake_kill(&fake);
	assert_false(xensrc_here());
	fake_restart(&fake);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(found_and_shown), TEST(names), TEST(hostile), TEST(flood), TEST(greatest_rate),
		TEST(dom0_comes_late), TEST(restarted), TEST(hangs), TEST(limits), TEST(odd_entries),
		TEST(list_refused), TEST(asked_for),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
