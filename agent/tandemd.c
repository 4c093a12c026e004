// SPDX-License-Identifier: GPL-2.0
/* tandemd: the agent in the guest. Options, signals, main(). */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent.h"
#include "opts.h"

/* Let the kernel put our wake-up together with others. */
#define TIMER_SLACK_NS 50000000UL

enum {
	OPT_ROOT = 256,
	OPT_ONCE,
	OPT_DRY_RUN,
	OPT_PERIOD,
	OPT_TRANSPORT,
	OPT_SOCKET,
	OPT_JSON,
	OPT_DEBUG,
};

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "once", no_argument, NULL, OPT_ONCE },
	{ "dry-run", no_argument, NULL, OPT_DRY_RUN },
	{ "port", required_argument, NULL, 'p' },
	{ "transport", required_argument, NULL, OPT_TRANSPORT },
	{ "period-ms", required_argument, NULL, OPT_PERIOD },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "debug", no_argument, NULL, OPT_DEBUG },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ }
};

static const char usage[] =
"Usage: tandemd [OPTION]...\n"
"Report this guest's load to the host over a virtio-serial port or xenstore.\n"
"\n"
"  -c, --config FILE     configuration, default " AGENT_CONF_PATH "\n"
"  -p, --port PATH|NAME  virtio-serial port, default " PORT_NAME_DEFAULT "\n"
"      --transport NAME  virtio-serial, xenstore, or auto, the default: xenstore\n"
"                        on Xen\n"
"      --period-ms MS    sample this often, 100 to 60000, default 1000\n"
"      --socket PATH     control socket, or none, default\n"
"                        " AGENT_SOCKET_PATH "\n"
"      --once            print one report and exit\n"
"      --dry-run         print reports instead of sending them\n"
"      --json            reports are printed as JSON: they are anyway\n"
"      --root DIR        read /proc, /sys and /dev below DIR: for tests\n"
"      --debug           log more\n"
"  -h, --help            this text\n"
"  -V, --version         the version\n";

/**
 * struct tandemd - what the command line says, and the agent
 * @config: configuration file
 * @config_named: it was named, so it has to be there
 * @root: directory that stands for "/"
 * @port: --port, or NULL
 * @transport: --transport, or NULL
 * @socket: --socket, or NULL
 * @period_ms: --period-ms, or 0
 * @once: --once
 * @dry_run: --dry-run
 * @agent: the agent
 */
struct tandemd {
	const char *config;
	bool config_named;
	const char *root;
	const char *port;
	const char *transport;
	const char *socket;
	int64_t period_ms;
	bool once;
	bool dry_run;
	struct agent agent;
};

/* Returns -1 to go on, or the exit status. */
static int parse_options(struct tandemd *t, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "c:p:hV", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			t->config = optarg;
			t->config_named = true;
			break;
		case 'p':
			t->port = optarg;
			break;
		case OPT_ROOT:
			t->root = optarg;
			break;
		case OPT_SOCKET:
			t->socket = optarg;
			break;
		case OPT_TRANSPORT:
			t->transport = optarg;
			break;
		case OPT_PERIOD:
			if (!opt_int("period-ms", optarg, 100, 60000, &t->period_ms))
				return EXIT_USAGE;
			break;
		case OPT_ONCE:
			t->once = true;
			break;
		case OPT_DRY_RUN:
			t->dry_run = true;
			break;
		case OPT_JSON:
			break;
		case OPT_DEBUG:
			log_open("tandemd", true);
			break;
		case 'h':
			return opt_print(usage);
		case 'V':
			return opt_version("tandemd");
		default:
			fputs("Try 'tandemd --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind == argc)
		return -1;
	log_err("unexpected argument '%s', accepted: options only, see --help", argv[optind]);
	return EXIT_USAGE;
}

/* The file, and the command line over it. Returns EXIT_OK or the exit status. */
static int load_conf(const struct tandemd *t, struct agent_conf *conf)
{
	const char *wrong;
	int r;

	agent_conf_init(conf);
	r = opts_conf_read(&agent_conf_table, t->config, t->config_named, conf);
	if (r)
		return r;
	if (t->port) {
		wrong = port_check_name(t->port);
		if (wrong) {
			log_err("option --port: '%.60s' is not valid, accepted: %s", t->port,
				wrong);
			return EXIT_USAGE;
		}
		text_copy(conf->port, sizeof(conf->port), t->port);
	}
	if (t->transport) {
		wrong = agent_check_transport(t->transport);
		if (wrong) {
			log_err("option --transport: '%.60s' is not valid, accepted: %s",
				t->transport, wrong);
			return EXIT_USAGE;
		}
		text_copy(conf->transport, sizeof(conf->transport), t->transport);
	}
	if (t->socket && !opt_text("socket", t->socket, conf->socket, sizeof(conf->socket)))
		return EXIT_USAGE;
	/* A period on the command line moves a heartbeat that was not chosen for it. */
	if (t->period_ms) {
		conf->period_ms = t->period_ms;
		if (conf->heartbeat_ms < conf->period_ms)
			conf->heartbeat_ms = conf->period_ms;
	}
	wrong = agent_conf_check(conf);
	if (!wrong)
		return EXIT_OK;
	log_err("%s: %s", t->config, wrong);
	return EXIT_USAGE;
}

static void hangup_cb(struct ev_loop *loop, ev_signal *w, int revents)
{
	struct tandemd *t = w->data;
	struct agent_conf conf;

	(void)loop;
	(void)revents;
	if (load_conf(t, &conf)) {
		log_warn("the configuration is not reloaded, the old one stays");
		return;
	}
	agent_reconfigure(&t->agent, &conf);
	log_info("configuration reloaded");
}

static void quit_cb(struct ev_loop *loop, ev_signal *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(loop, EVBREAK_ALL);
}

static int run(struct tandemd *t, const struct agent_conf *conf)
{
	struct ev_loop *loop = ev_default_loop(EVFLAG_NOENV);
	ev_signal term, interrupt, hangup;

	if (!loop) {
		log_err("cannot make an event loop");
		return EXIT_FAILED;
	}
	ev_signal_init(&term, quit_cb, SIGTERM);
	ev_signal_init(&interrupt, quit_cb, SIGINT);
	ev_signal_init(&hangup, hangup_cb, SIGHUP);
	hangup.data = t;
	ev_signal_start(loop, &term);
	ev_signal_start(loop, &interrupt);
	ev_signal_start(loop, &hangup);
	if (!agent_start(&t->agent, loop, conf, t->root, t->dry_run)) {
		ev_loop_destroy(loop);
		return EXIT_FAILED;
	}
	/* What starting needed and running does not. */
	malloc_trim(0);
	if (!t->agent.failed)
		ev_run(loop, 0);
	agent_stop(&t->agent);
	ev_loop_destroy(loop);
	return t->agent.failed ? EXIT_FAILED : EXIT_OK;
}

int main(int argc, char **argv)
{
	static struct tandemd t = { .config = AGENT_CONF_PATH, .root = "/" };
	struct agent_conf conf;
	int r;

	opts_std_files();
	/* One arena: the control thread needs no heap of its own. */
	mallopt(M_ARENA_MAX, 1);
	log_open("tandemd", false);
	r = parse_options(&t, argc, argv);
	if (r >= 0)
		return r;
	r = load_conf(&t, &conf);
	if (r)
		return r;
	if (t.once)
		return agent_once(&conf, t.root, stdout) ? EXIT_OK : EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	return run(&t, &conf);
}
