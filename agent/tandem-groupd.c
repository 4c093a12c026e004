// SPDX-License-Identifier: GPL-2.0
/* tandem-groupd: the daemon on the host. Options, signals, main(). */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "groupd.h"
#include "opts.h"

#define GUESTS_NAMED_MAX 256
#define OUTPUT_MAX (8 << 20)
/* Standard files, event loops, the control socket and its clients, with some to spare. */
#define FILES_BESIDE_GUESTS 32

enum {
	OPT_SOCKET = 256,
	OPT_CONTROL,
	OPT_ONCE,
	OPT_TIMEOUT,
	OPT_JSON,
};

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "control", required_argument, NULL, OPT_CONTROL },
	{ "once", no_argument, NULL, OPT_ONCE },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ }
};

static const char usage[] =
"Usage: tandem-groupd [OPTION]...\n"
"Collect the load reports of the guests on this host.\n"
"\n"
"  -c, --config FILE        configuration, default " GROUPD_CONF_PATH "\n"
"      --socket NAME=PATH   a guest's virtio-serial socket; may be repeated; the\n"
"                           sockets of the configuration are not looked for then,\n"
"                           nor Xen domains, unless it says xenstore = on\n"
"      --control PATH       control socket, or none, default\n"
"                           " GROUPD_SOCKET_PATH "\n"
"      --once               ask every guest, print the answers, exit\n"
"      --timeout SECONDS    with --once: wait at most so long, 1 to 3600, default 5\n"
"      --json               print JSON instead of a table\n"
"  -h, --help               this text\n"
"  -V, --version            the version\n";

/**
 * struct main - what the command line says, and the daemon
 * @config: configuration file
 * @config_named: it was named, so it has to be there
 * @control: --control, or NULL
 * @named: arguments of --socket
 * @nr_named: how many
 * @once: --once
 * @json: --json
 * @timeout_s: --timeout
 * @print: prints the table
 * @done: ends --once
 * @failed: the table could not be printed
 * @gd: the daemon
 */
struct main {
	const char *config;
	bool config_named;
	const char *control;
	char *named[GUESTS_NAMED_MAX];
	size_t nr_named;
	bool once;
	bool json;
	int64_t timeout_s;
	ev_timer print;
	ev_timer done;
	bool failed;
	struct groupd gd;
};

static bool add_named(struct main *m, char *arg)
{
	char *equal = strchr(arg, '=');

	if (!equal || equal == arg || !equal[1]) {
		log_err("option --socket: '%.60s' is not valid, accepted: NAME=PATH", arg);
		return false;
	}
	if (m->nr_named == GUESTS_NAMED_MAX) {
		log_err("option --socket: too many, accepted: at most %d", GUESTS_NAMED_MAX);
		return false;
	}
	m->named[m->nr_named++] = arg;
	return true;
}

/* Returns -1 to go on, or the exit status. */
static int parse_options(struct main *m, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "c:hV", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			m->config = optarg;
			m->config_named = true;
			break;
		case OPT_SOCKET:
			if (!add_named(m, optarg))
				return EXIT_USAGE;
			break;
		case OPT_CONTROL:
			m->control = optarg;
			break;
		case OPT_ONCE:
			m->once = true;
			break;
		case OPT_TIMEOUT:
			if (!opt_int("timeout", optarg, 1, 3600, &m->timeout_s))
				return EXIT_USAGE;
			break;
		case OPT_JSON:
			m->json = true;
			break;
		case 'h':
			return opt_print(usage);
		case 'V':
			return opt_version("tandem-groupd");
		default:
			fputs("Try 'tandem-groupd --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind == argc)
		return -1;
	log_err("unexpected argument '%s', accepted: options only, see --help", argv[optind]);
	return EXIT_USAGE;
}

/* Each guest takes a descriptor, and none may take the control socket's. */
static void make_room(struct groupd_conf *conf)
{
	rlim_t want = (rlim_t)conf->max_guests + FILES_BESIDE_GUESTS;
	struct rlimit limit;
	int64_t room;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= want)
		return;
	limit.rlim_cur = want < limit.rlim_max ? want : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= want)
		return;
	room = (int64_t)limit.rlim_cur - FILES_BESIDE_GUESTS;
	room = room > 1 ? room : 1;
	log_warn("max_guests is %lld, but %llu open files are allowed: %lld guests at most, raise ulimit -n or LimitNOFILE=",
		 (long long)conf->max_guests, (unsigned long long)limit.rlim_cur, (long long)room);
	conf->max_guests = room;
}

/* The file, and the command line over it. Returns EXIT_OK or the exit status. */
static int load_conf(const struct main *m, struct groupd_conf *conf)
{
	int r;

	groupd_conf_init(conf);
	r = opts_conf_read(&groupd_conf_table, m->config, m->config_named, conf);
	if (r)
		return r;
	if (m->control && !opt_text("control", m->control, conf->socket, sizeof(conf->socket)))
		return EXIT_USAGE;
	if (m->nr_named) {
		conf->sockets[0] = '\0';
		if (!strcmp(conf->xenstore, "auto"))
			text_copy(conf->xenstore, sizeof(conf->xenstore), "off");
	}
	make_room(conf);
	return EXIT_OK;
}

static bool add_guests(struct main *m)
{
	for (size_t i = 0; i < m->nr_named; i++) {
		char *equal = strchr(m->named[i], '=');
		bool added;

		*equal = '\0';
		added = guest_add(&m->gd, m->named[i], equal + 1, true);
		*equal = '=';
		if (!added)
			return false;
	}
	return true;
}

static bool print_guests(struct main *m)
{
	struct buf out = BUF_INIT(OUTPUT_MAX);
	bool ok;

	if (m->json) {
		groupd_json(&m->gd, &out);
		buf_puts(&out, "\n");
	} else {
		groupd_table(&m->gd, &out);
	}
	if (!m->once && !m->json)
		buf_puts(&out, "\n");
	if (out.failed)
		log_err("cannot print the guests: it is more than %d bytes", OUTPUT_MAX);
	ok = !out.failed && opt_print(out.data) == EXIT_OK;
	buf_free(&out);
	return ok;
}

static void print_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct main *m = w->data;

	(void)revents;
	if (print_guests(m))
		return;
	/* The terminal is gone: do not keep the guests' sockets from the next one. */
	m->failed = true;
	ev_break(loop, EVBREAK_ALL);
}

static void changed_cb(void *arg)
{
	struct main *m = arg;

	if (groupd_all_answered(&m->gd, false))
		ev_break(m->gd.loop, EVBREAK_ALL);
}

static void done_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(loop, EVBREAK_ALL);
}

static void quit_cb(struct ev_loop *loop, ev_signal *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(loop, EVBREAK_ALL);
}

static void hangup_cb(struct ev_loop *loop, ev_signal *w, int revents)
{
	struct main *m = w->data;
	struct groupd_conf conf;

	(void)loop;
	(void)revents;
	if (load_conf(m, &conf)) {
		log_warn("the configuration is not reloaded, the old one stays");
		return;
	}
	groupd_reconfigure(&m->gd, &conf);
	if (ev_is_active(&m->print)) {
		m->print.repeat = (double)conf.interval_s;
		ev_timer_again(m->gd.loop, &m->print);
	}
	log_info("configuration reloaded");
}

static int run_once(struct main *m)
{
	m->gd.changed = changed_cb;
	m->gd.changed_arg = m;
	ev_timer_init(&m->done, done_cb, (double)m->timeout_s, 0.);
	ev_timer_start(m->gd.loop, &m->done);
	if ((m->gd.count || m->gd.xen) && !groupd_all_answered(&m->gd, false))
		ev_run(m->gd.loop, 0);
	ev_timer_stop(m->gd.loop, &m->done);
	if (!print_guests(m))
		return EXIT_FAILED;
	if (groupd_all_answered(&m->gd, true))
		return EXIT_OK;
	log_err("not every named guest has answered within %lld s", (long long)m->timeout_s);
	return EXIT_FAILED;
}

static int run_daemon(struct main *m)
{
	struct ev_loop *loop = m->gd.loop;
	ev_signal hangup;

	ev_signal_init(&hangup, hangup_cb, SIGHUP);
	hangup.data = m;
	ev_signal_start(loop, &hangup);
	ev_timer_init(&m->print, print_cb, 1., (double)m->gd.conf.interval_s);
	m->print.data = m;
	if (isatty(STDOUT_FILENO))
		ev_timer_start(loop, &m->print);
	ev_run(loop, 0);
	ev_signal_stop(loop, &hangup);
	ev_timer_stop(loop, &m->print);
	return m->failed ? EXIT_FAILED : EXIT_OK;
}

static int run(struct main *m, const struct groupd_conf *conf)
{
	struct ev_loop *loop = ev_default_loop(EVFLAG_NOENV);
	bool control = !m->once && strcmp(conf->socket, "none");
	ev_signal term, interrupt;
	int r = EXIT_FAILED;

	if (!loop) {
		log_err("cannot make an event loop");
		return EXIT_FAILED;
	}
	ev_signal_init(&term, quit_cb, SIGTERM);
	ev_signal_init(&interrupt, quit_cb, SIGINT);
	ev_signal_start(loop, &term);
	ev_signal_start(loop, &interrupt);
	if (groupd_start(&m->gd, loop, conf, control)) {
		if (!add_guests(m))
			r = EXIT_USAGE;
		else
			r = m->once ? run_once(m) : run_daemon(m);
		groupd_stop(&m->gd);
	}
	ev_loop_destroy(loop);
	return r;
}

int main(int argc, char **argv)
{
	static struct main m = { .config = GROUPD_CONF_PATH, .timeout_s = 5 };
	struct groupd_conf conf;
	int r;

	opts_std_files();
	mallopt(M_ARENA_MAX, 1);
	log_open("tandem-groupd", false);
	r = parse_options(&m, argc, argv);
	if (r >= 0)
		return r;
	r = load_conf(&m, &conf);
	if (r)
		return r;
	signal(SIGPIPE, SIG_IGN);
	return run(&m, &conf);
}
