// SPDX-License-Identifier: GPL-2.0
/* groupd's core against fake guests over UNIX sockets, in one event loop. */
#include "test.h"

#include <pthread.h>
#include <signal.h>

#include "groupd.h"

static char *dir;
static char control[128];
static struct ev_loop *loop;
static struct groupd gd;

static int setup(void **state)
{
	struct groupd_conf conf;
	char guests[160];

	(void)state;
	dir = test_dir();
	snprintf(control, sizeof(control), "%s/groupd.sock", dir);
	snprintf(guests, sizeof(guests), "%s/guests", dir);
	assert_int_equal(mkdir(guests, 0755), 0);
	loop = ev_loop_new(EVFLAG_NOENV);
	groupd_conf_init(&conf);
	text_copy(conf.socket, sizeof(conf.socket), control);
	snprintf(conf.sockets, sizeof(conf.sockets), "%s/guests/*.sock", dir);
	return !groupd_start(&gd, loop, &conf, true);
}

static int teardown(void **state)
{
	(void)state;
	groupd_stop(&gd);
	ev_loop_destroy(loop);
	test_rm(dir);
	return 0;
}

/* A guest's VMM: listens, and has at most one client. */
struct fake {
	char path[160];
	int listener;
	int fd;
	struct report report;
};

static void fake_listen(struct fake *f, const char *name)
{
	snprintf(f->path, sizeof(f->path), "%s/guests/%s.sock", dir, name);
	unlink(f->path);
	f->listener = test_listen(f->path);
	f->fd = -1;
	test_report(&f->report);
}

static bool fake_accept(struct fake *f)
{
	f->fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	return f->fd >= 0;
}

static void fake_send(struct fake *f, const char *data, size_t len)
{
	assert_int_equal(send(f->fd, data, len, MSG_NOSIGNAL), len);
}

static void fake_report(struct fake *f)
{
	struct buf text = BUF_INIT(LINE_BYTES_MAX);

	report_encode(&f->report, &text);
	buf_puts(&text, "\n");
	fake_send(f, text.data, text.len);
	f->report.seq++;
	f->report.uptime_ms += 1000;
	buf_free(&text);
}

static void fake_close(struct fake *f)
{
	if (f->fd >= 0)
		close(f->fd);
	close(f->listener);
	unlink(f->path);
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

/* A new socket is found by inotify, polled, and its report shown. */
static void found_and_polled(void **state)
{
	struct buf out = BUF_INIT(1 << 20);
	char data[128] = "", error[256];
	struct fake f;

	(void)state;
	fake_listen(&f, "alpha");
	run_until(loop, fake_accept(&f));
	run_until(loop, read(f.fd, data, sizeof(data) - 1) > 0);
	assert_string_equal(data, "\n{\"v\":1,\"type\":\"poll\"}\n");
	assert_int_equal(state_of("alpha"), GUEST_WAITING);
	assert_false(groupd_all_answered(&gd, false));
	assert_true(groupd_all_answered(&gd, true));
	fake_report(&f);
	run_until(loop, reports_of("alpha") == 1);
	assert_int_equal(state_of("alpha"), GUEST_OK);
	assert_true(groupd_all_answered(&gd, false));
	f.report.module.stats[MODULE_STAT_sent] += 5;
	fake_report(&f);
	run_until(loop, reports_of("alpha") == 2);
	assert_int_equal(guest_find(&gd, "alpha")->now.hints_per_s_milli, 5000);

	assert_true(ctl_ask(control, "guests", 5000, &out, error, sizeof(error)));
	assert_non_null(strstr(out.data, "{\"name\":\"alpha\",\"state\":\"ok\",\"age_ms\":"));
	assert_non_null(strstr(out.data, "\"used_ms\":5000,"));
	assert_true(ctl_ask(control, "guests", 5000, &out, error, sizeof(error)));
	buf_reset(&out);
	groupd_table(&gd, &out);
	assert_non_null(strstr(out.data,
				       "\nalpha    2/4   1.05  1.23    1.64    25.0      5.0  flat      0s\n"));
	buf_free(&out);
	fake_close(&f);
}

/* The VMM restarts: gone, then connected to again, although nothing was reported yet. */
static void vmm_restarts(void **state)
{
	struct fake f;

	(void)state;
	fake_listen(&f, "vm");
	run_until(loop, fake_accept(&f));
	fake_report(&f);
	run_until(loop, reports_of("vm") == 1);
	fake_close(&f);
	run_until(loop, state_of("vm") == GUEST_GONE);
	assert_false(groupd_all_answered(&gd, false));
	fake_listen(&f, "vm");
	run_until(loop, fake_accept(&f));
	assert_int_equal(state_of("vm"), GUEST_WAITING);
	fake_report(&f);
	run_until(loop, reports_of("vm") == 2);
	assert_int_equal(gd.count, 1);
	fake_close(&f);
}

static void guest_reboots(void **state)
{
	struct guest *g;
	struct fake f;

	(void)state;
	fake_listen(&f, "vm");
	run_until(loop, fake_accept(&f));
	fake_report(&f);
	fake_report(&f);
	run_until(loop, reports_of("vm") == 2);
	g = guest_find(&gd, "vm");
	assert_int_equal(g->now.hints_per_s_milli, 0);
	f.report.boot_id[0] = 'b';
	f.report.seq = 1;
	f.report.uptime_ms = 10;
	f.report.module.stats[MODULE_STAT_sent] = 0;
	fake_report(&f);
	run_until(loop, reports_of("vm") == 3);
	assert_string_equal(g->boot_id, f.report.boot_id);
	assert_int_equal(g->seq, 1);
	/* No rate across the boot, and one again after it. */
	assert_int_equal(g->now.hints_per_s_milli, REPORT_UNKNOWN);
	fake_report(&f);
	run_until(loop, reports_of("vm") == 4);
	assert_int_equal(g->now.hints_per_s_milli, 0);
	/* The VMM, too, and at once: each of the changes has its line. */
	fake_close(&f);
	run_until(loop, state_of("vm") == GUEST_GONE);
	fake_listen(&f, "vm");
	run_until(loop, fake_accept(&f));
	f.report.boot_id[0] = 'c';
	fake_report(&f);
	run_until(loop, reports_of("vm") == 5);
	assert_string_equal(g->boot_id, f.report.boot_id);
	assert_int_equal(g->talk.missed, 0);
	fake_close(&f);
}

/* Sends what fits, and says whether anything did. */
static bool flood(struct fake *f, const char *data, size_t len)
{
	return send(f->fd, data, len, MSG_NOSIGNAL) > 0;
}

/* Floods of every kind beside a good guest: each is bounded, the good one is not hurt. */
static void flood_beside_good(void **state)
{
	static char endless[65536], newlines[65536];
	struct buf text = BUF_INIT(LINE_BYTES_MAX);
	struct fake good, reports, bytes, lines;
	int64_t start_ms;
	double took_s;

	(void)state;
	memset(endless, 'x', sizeof(endless));
	for (size_t i = 0; i < sizeof(newlines); i += 2)
		memcpy(newlines + i, "x\n", 2);
	fake_listen(&good, "good");
	fake_listen(&reports, "reports");
	fake_listen(&bytes, "bytes");
	fake_listen(&lines, "lines");
	run_until(loop, fake_accept(&good));
	run_until(loop, fake_accept(&reports));
	run_until(loop, fake_accept(&bytes));
	run_until(loop, fake_accept(&lines));
	report_encode(&reports.report, &text);
	buf_puts(&text, "\n");

	start_ms = clock_ms();
	for (uint64_t n = 1; n <= 20; n++) {
		int64_t sent_ms = clock_ms();

		fake_report(&good);
		run_until(loop, (flood(&reports, text.data, text.len),
				 flood(&bytes, endless, sizeof(endless)),
				 flood(&lines, newlines, sizeof(newlines)),
				 reports_of("good") == n || clock_ms() - sent_ms > 2000));
		assert_int_equal(reports_of("good"), n);
	}
	took_s = (double)(clock_ms() - start_ms) / 1000.;
	/* 10 at once and 10 a second, parsed; of the bytes 10 * 4096 likewise, and a read more. */
	assert_true((double)reports_of("reports") <= 11. + 10. * took_s);
	assert_true(reports_of("reports") >= 1);
	assert_true(guest_find(&gd, "reports")->now.limited > 0);
	assert_int_equal(reports_of("lines"), 0);
	assert_true((double)guest_find(&gd, "lines")->now.malformed <= 11. + 10. * took_s);
	assert_true(guest_find(&gd, "lines")->now.limited > 100);
	assert_int_equal(guest_find(&gd, "bytes")->now.oversized, 1);
	assert_int_equal(guest_find(&gd, "good")->now.limited, 0);
	assert_int_equal(guest_find(&gd, "good")->now.malformed, 0);
	/* Not read any more, rather than read and thrown away: its socket is full. */
	assert_false(ev_is_active(&guest_find(&gd, "bytes")->io) &&
		     ev_is_active(&guest_find(&gd, "lines")->io) &&
		     ev_is_active(&guest_find(&gd, "reports")->io));
	buf_free(&text);
	fake_close(&good);
	fake_close(&reports);
	fake_close(&bytes);
	fake_close(&lines);
}

/* The timer fires before there is a token: what is sent waits, and is not dropped. */
static void timer_early(void **state)
{
	struct guest *g;
	struct fake f;

	(void)state;
	gd.conf.reports_per_s = 1;
	fake_listen(&f, "vm");
	run_until(loop, fake_accept(&f));
	g = guest_find(&gd, "vm");
	fake_report(&f);
	run_until(loop, reports_of("vm") == 1);
	fake_report(&f);
	ev_invoke(loop, &g->timer, EV_TIMER);
	run_until(loop, reports_of("vm") == 2);
	assert_int_equal(g->now.limited, 0);
	fake_close(&f);
}

static void garbage(void **state)
{
	static const char junk[] =
		"\x00\x01\xff\xfe\n{\"v\":1}\n[[[[[[[[[[\n\x1b[2J\x1b]0;pwned\x07\n"
		"{\"v\":1,\"type\":\"report\",\"seq\":NaN}\n";
	struct buf out = BUF_INIT(1 << 20);
	static char big[3 * LINE_BYTES_MAX];
	struct fake f;
	struct guest *g;

	(void)state;
	fake_listen(&f, "bad");
	run_until(loop, fake_accept(&f));
	fake_send(&f, junk, sizeof(junk) - 1);
	memset(big, '{', sizeof(big));
	big[sizeof(big) - 1] = '\n';
	fake_send(&f, big, sizeof(big));
	/* And still a good report behind it all counts. */
	f.report.host[0] = '%';
	fake_report(&f);
	run_until(loop, reports_of("bad") == 1);
	g = guest_find(&gd, "bad");
	assert_int_equal(g->now.malformed, 5);
	assert_int_equal(g->now.oversized, 1);
	groupd_json(&gd, &out);
	assert_non_null(strstr(out.data, "\"malformed\":5,\"oversized\":1,\"limited\":0"));
	buf_free(&out);
	fake_close(&f);
}

static void silence(void **state)
{
	struct fake f;
	struct guest *g;

	(void)state;
	fake_listen(&f, "quiet");
	run_until(loop, fake_accept(&f));
	fake_report(&f);
	run_until(loop, reports_of("quiet") == 1);
	g = guest_find(&gd, "quiet");
	assert_int_equal(guest_state(&g->now, g->now.report_ms + 30000), GUEST_OK);
	assert_int_equal(guest_state(&g->now, g->now.report_ms + 30001), GUEST_SILENT);
	fake_close(&f);
}

static void limits(void **state)
{
	char name[256], path[128];

	(void)state;
	gd.conf.max_guests = 3;
	memset(name, 'n', sizeof(name));
	name[GUEST_NAME_MAX] = '\0';
	assert_null(guest_add(&gd, name, "/x", true));
	assert_null(guest_add(&gd, "", "/x", true));
	assert_null(guest_add(&gd, "ev\x1bil", "/x", true));
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		snprintf(path, sizeof(path), "%s/none%d", dir, i);
		assert_non_null(guest_add(&gd, name, path, true));
	}
	assert_null(guest_add(&gd, "g3", path, true));
	gd.conf.max_guests = 10;
	assert_null(guest_add(&gd, "g2", path, true));
	assert_int_equal(gd.count, 3);
	assert_int_equal(state_of("g0"), GUEST_GONE);
	assert_false(groupd_all_answered(&gd, true));
}

/* Files that appear in the directory and are no sockets of guests. */
static void odd_files(void **state)
{
	struct fake f;

	(void)state;
	test_write(dir, "guests/readme.txt", "x");
	test_write(dir, "guests/.hidden.sock", "x");
	test_write(dir, "guests/file.sock", "x");
	fake_listen(&f, "real");
	run_until(loop, fake_accept(&f));
	assert_null(guest_find(&gd, "readme"));
	assert_null(guest_find(&gd, ".hidden"));
	assert_int_equal(state_of("file"), GUEST_GONE);
	fake_close(&f);
}

/* Two files that give one name: the first one stays, and it is said. */
static void same_name(void **state)
{
	struct groupd_conf conf = gd.conf;
	char first[CTL_PATH_MAX];
	struct fake f;

	(void)state;
	fake_listen(&f, "vm");
	run_until(loop, fake_accept(&f));
	snprintf(conf.sockets, sizeof(conf.sockets), "%s/guests/*", dir);
	groupd_reconfigure(&gd, &conf);
	text_copy(first, sizeof(first), guest_find(&gd, "vm")->path);
	test_write(dir, "guests/vm", "x");
	run_until(loop, gd.odd_name.next_ms > 0);
	assert_int_equal(gd.count, 1);
	assert_string_equal(guest_find(&gd, "vm")->path, first);
	fake_close(&f);
}

/* However often a guest reboots, its lines are few. */
static void reboots_without_end(void **state)
{
	struct fake f;

	(void)state;
	gd.conf.reports_per_s = 1000;
	fake_listen(&f, "vm");
	run_until(loop, fake_accept(&f));
	for (uint64_t n = 1; n <= 50; n++) {
		f.report.boot_id[0] = n % 2 ? 'b' : 'c';
		fake_report(&f);
		run_until(loop, reports_of("vm") == n);
	}
	assert_true(guest_find(&gd, "vm")->talk.missed >= 40);
	assert_true(guest_find(&gd, "vm")->talk.interval_ms >= 10000);
	fake_close(&f);
}

/* The directory is removed and made again. */
static void directory_returns(void **state)
{
	char guests[160];
	struct fake f;

	(void)state;
	snprintf(guests, sizeof(guests), "%s/guests", dir);
	assert_int_equal(gd.watch_error, 0);
	assert_int_equal(rmdir(guests), 0);
	run_until(loop, gd.watch_wd < 0);
	run_until(loop, gd.watch_error == ENOENT);
	assert_int_equal(mkdir(guests, 0755), 0);
	fake_listen(&f, "late");
	run_until(loop, fake_accept(&f));
	assert_true(gd.watch_wd >= 0);
	assert_int_equal(gd.watch_error, 0);
	fake_close(&f);
}

static void reconfigured(void **state)
{
	struct groupd_conf conf = gd.conf;
	struct fake f;

	(void)state;
	fake_listen(&f, "vm");
	run_until(loop, fake_accept(&f));
	snprintf(conf.sockets, sizeof(conf.sockets), "%s/guests/vm*", dir);
	groupd_reconfigure(&gd, &conf);
	assert_non_null(guest_find(&gd, "vm"));
	snprintf(conf.sockets, sizeof(conf.sockets), "%s/guests/other*", dir);
	groupd_reconfigure(&gd, &conf);
	assert_null(guest_find(&gd, "vm"));
	fake_close(&f);
}

/* Guests come and go under a client that asks all the time (ASan watches). */
static void *ask_often(void *arg)
{
	struct buf out = BUF_INIT(1 << 20), table = BUF_INIT(1 << 20);
	char error[256];
	long *failed = arg;

	for (int i = 0; i < 200; i++) {
		buf_reset(&out);
		buf_reset(&table);
		if (!ctl_ask(control, "guests", 5000, &out, error, sizeof(error)) ||
		    !guests_table_from_json(out.data, out.len, &table, error))
			(*failed)++;
	}
	buf_free(&out);
	buf_free(&table);
	return NULL;
}

static void published_whole(void **state)
{
	long failed = 0;
	char name[32];
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, ask_often, &failed), 0);
	for (int i = 0; i < 3000; i++) {
		struct guest *g;

		snprintf(name, sizeof(name), "g%d", i % 50);
		g = guest_find(&gd, name);
		if (g)
			guest_remove(g);
		else
			assert_non_null(guest_add(&gd, name, "/nonexistent", false));
		ev_run(loop, EVRUN_NOWAIT);
	}
	pthread_join(t, NULL);
	assert_int_equal(failed, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(found_and_polled), TEST(vmm_restarts), TEST(guest_reboots),
		TEST(flood_beside_good), TEST(timer_early), TEST(garbage), TEST(silence),
		TEST(limits), TEST(odd_files), TEST(same_name), TEST(reboots_without_end), TEST(directory_returns),
		TEST(reconfigured),
		TEST(published_whole),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
