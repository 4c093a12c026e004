// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "agent.h"

/* Answers to the host's "poll": as many a second, and as many at once. */
#define ASKED_PER_S 10

#define KEY_INT(field, lo, hi) \
	{ "tandemd", #field, CONF_INT, offsetof(struct agent_conf, field), lo, hi, NULL }
#define KEY_TEXT(field, check) \
	{ "tandemd", #field, CONF_TEXT, offsetof(struct agent_conf, field), 0, \
	  sizeof(((struct agent_conf *)0)->field), check }

static const struct conf_key agent_keys[] = {
	KEY_TEXT(port, port_check_name),
	KEY_TEXT(socket, ctl_check_path),
	KEY_INT(period_ms, 100, 60000),
	KEY_INT(heartbeat_ms, 100, 3600000),
	KEY_INT(threshold_permille, 0, 1000),
};

const struct conf_table agent_conf_table = { agent_keys, ARRAY_SIZE(agent_keys) };

/**
 * agent_conf_init() - the defaults
 * @conf: set to them
 */
void agent_conf_init(struct agent_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	text_copy(conf->port, sizeof(conf->port), PORT_NAME_DEFAULT);
	text_copy(conf->socket, sizeof(conf->socket), AGENT_SOCKET_PATH);
	conf->period_ms = 1000;
	conf->heartbeat_ms = 10000;
	conf->threshold_permille = 50;
}

/**
 * agent_conf_check() - what no single key can say
 * @conf: the configuration
 *
 * Return: NULL when it is fine, or else what is wrong with it.
 */
const char *agent_conf_check(const struct agent_conf *conf)
{
	if (conf->heartbeat_ms < conf->period_ms)
		return "heartbeat_ms is less than period_ms, accepted: at least period_ms";
	return NULL;
}

/* The control thread's side of the RCU: copies, and does its I/O later. */
static bool agent_answer(void *arg, const char *get, struct buf *out)
{
	struct agent *a = arg;
	struct agent_sample *sample;

	if (strcmp(get, "report"))
		return false;
	rcu_read_lock();
	sample = rcu_dereference(a->sample);
	if (sample)
		report_encode(&sample->report, out);
	rcu_read_unlock();
	if (!sample)
		buf_printf(out, "{\"v\":%d,\"error\":\"no sample yet\"}", PROTOCOL_VERSION);
	return true;
}

static void agent_print(struct agent *a)
{
	if (fprintf(a->out, "%s\n", a->line.data) > 0 && !fflush(a->out))
		return;
	log_err("cannot write the report: %s", strerror(errno));
	a->failed = true;
	ev_break(a->loop, EVBREAK_ALL);
}

static void agent_push(struct agent *a, const struct report *r)
{
	uint64_t dropped = a->port.dropped;

	buf_reset(&a->line);
	report_encode(r, &a->line);
	if (a->line.failed) {
		log_limited(&a->odd, LOG_ERR, "cannot encode a report: it does not fit");
		return;
	}
	if (a->dry_run) {
		agent_print(a);
		push_sent(&a->pushed, r, clock_ms());
		return;
	}
	if (port_send(&a->port, a->line.data, a->line.len))
		push_sent(&a->pushed, r, clock_ms());
	else if (a->port.dropped != dropped)
		log_limited(&a->slow, LOG_WARNING,
			    "port %s: the host does not drain it, a report was dropped",
			    a->port.name);
}

/* Whoever begins to read knows nothing yet. */
static void agent_opened(void *arg)
{
	struct agent *a = arg;

	a->pushed.valid = false;
	if (a->sample)
		agent_push(a, &a->sample->report);
}

static void agent_line(void *arg, char *line, size_t len)
{
	char error[REPORT_ERROR_MAX] = "v: not 1";
	struct agent *a = arg;
	struct json_object *msg;
	const char *type = NULL;

	/* Bounds the parsing, too; what is over it is dropped unread. */
	if (!rate_take(&a->asked, 1, clock_ms())) {
		log_limited(&a->fast, LOG_WARNING, "port %s: the host sends more than %d lines/s",
			    a->port.name, ASKED_PER_S);
		return;
	}
	msg = json_read(a->tok, line, len, error);
	if (msg && json_get_version(msg)) {
		type = json_get_text(msg, "type");
		snprintf(error, sizeof(error), "type: not a string");
	}
	if (!type)
		log_limited(&a->odd, LOG_WARNING, "port %s: a line from the host is dropped: %s",
			    a->port.name, error);
	else if (strcmp(type, "poll"))
		log_limited(&a->odd, LOG_INFO,
			    "port %s: a message of a type that is not known is ignored: %.40s",
			    a->port.name, type);
	else if (a->sample)
		agent_push(a, &a->sample->report);
	json_object_put(msg);
}

static void agent_oversized(void *arg)
{
	struct agent *a = arg;

	log_limited(&a->large, LOG_WARNING,
		    "port %s: a line of more than %d bytes from the host is dropped",
		    a->port.name, LINE_BYTES_MAX);
}

static const struct port_ops agent_port_ops = {
	.opened = agent_opened,
	.line = agent_line,
	.oversized = agent_oversized,
};

static bool agent_sample(struct agent *a)
{
	struct agent_sample *sample = malloc(sizeof(*sample));

	if (!sample)
		return false;
	if (!sampler_take(&a->sampler, &sample->report)) {
		free(sample);
		return false;
	}
	sample->report.period_ms = a->conf.period_ms;
	sample->report.heartbeat_ms = a->conf.heartbeat_ms;
	sample->report.dropped = (int64_t)a->port.dropped;
	pub_replace(&a->retired, &a->sample, sample);
	pub_reclaim(&a->retired);
	return true;
}

/**
 * agent_tick() - everything that is done once in a period
 * @a: the agent
 *
 * Sample first, so that a reader found by the look gets the new sample.
 */
void agent_tick(struct agent *a)
{
	bool fresh = agent_sample(a);
	const struct report *r;

	if (!a->dry_run)
		port_look(&a->port);
	if (!fresh)
		return;
	r = &a->sample->report;
	if (!a->dry_run && a->port.state != PORT_OPEN)
		return;
	if (push_due(&a->pushed, r, clock_ms(), a->conf.threshold_permille) != PUSH_NOT)
		agent_push(a, r);
}

static void agent_tick_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	agent_tick(w->data);
}

/**
 * agent_start() - start the agent
 * @a: the agent
 * @loop: its event loop
 * @conf: its configuration, checked
 * @root: directory that stands for "/"
 * @dry_run: print reports to stdout instead of sending them
 *
 * The first sample is taken at once.
 *
 * Return: false after one log line.
 */
bool agent_start(struct agent *a, struct ev_loop *loop, const struct agent_conf *conf,
		 const char *root, bool dry_run)
{
	memset(a, 0, sizeof(*a));
	a->loop = loop;
	a->conf = *conf;
	a->dry_run = dry_run;
	a->out = stdout;
	a->odd.interval_ms = 60000;
	a->fast.interval_ms = 60000;
	a->large.interval_ms = 60000;
	a->slow.interval_ms = 60000;
	a->line.max = LINE_BYTES_MAX;
	rate_init(&a->asked, ASKED_PER_S, ASKED_PER_S, clock_ms());
	if (!sampler_open(&a->sampler, root))
		return false;
	a->tok = json_reader_new(JSON_DEPTH_MAX);
	if (!a->tok) {
		log_err("cannot start: out of memory");
		sampler_close(&a->sampler);
		return false;
	}
	port_init(&a->port, loop, a->sampler.root_fd, &agent_port_ops, a);
	port_set_name(&a->port, conf->port);
	if (strcmp(conf->socket, "none")) {
		a->ctl = ctl_start(conf->socket, CTL_IDLE_MS, agent_answer, a);
		if (!a->ctl) {
			json_tokener_free(a->tok);
			sampler_close(&a->sampler);
			return false;
		}
	}
	ev_timer_init(&a->tick, agent_tick_cb, 0., (double)conf->period_ms / 1000.);
	a->tick.data = a;
	ev_timer_again(loop, &a->tick);
	agent_tick(a);
	return true;
}

/**
 * agent_reconfigure() - change the configuration of a running agent
 * @a: the agent
 * @conf: the new configuration, checked; another control socket is the one thing that
 *	  needs a restart, which is said in one line
 */
void agent_reconfigure(struct agent *a, const struct agent_conf *conf)
{
	if (strcmp(a->conf.socket, conf->socket))
		log_warn("the control socket stays %s: another one needs a restart",
			 a->conf.socket);
	a->conf.period_ms = conf->period_ms;
	a->conf.heartbeat_ms = conf->heartbeat_ms;
	a->conf.threshold_permille = conf->threshold_permille;
	text_copy(a->conf.port, sizeof(a->conf.port), conf->port);
	port_set_name(&a->port, conf->port);
	a->tick.repeat = (double)conf->period_ms / 1000.;
	ev_timer_again(a->loop, &a->tick);
}

/**
 * agent_stop() - stop, and give everything back
 * @a: the agent
 */
void agent_stop(struct agent *a)
{
	ev_timer_stop(a->loop, &a->tick);
	ctl_stop(a->ctl);
	port_close(&a->port);
	pub_replace(&a->retired, &a->sample, NULL);
	pub_reclaim(&a->retired);
	json_tokener_free(a->tok);
	buf_free(&a->line);
	sampler_close(&a->sampler);
}

/**
 * agent_once() - print one report
 * @conf: the configuration
 * @root: directory that stands for "/"
 * @out: where to print
 *
 * Takes two samples, a period apart, so that the rates are known.
 *
 * Return: false after one log line.
 */
bool agent_once(const struct agent_conf *conf, const char *root, FILE *out)
{
	struct timespec period = {
		.tv_sec = conf->period_ms / 1000,
		.tv_nsec = conf->period_ms % 1000 * 1000000,
	};
	struct buf line = BUF_INIT(LINE_BYTES_MAX);
	struct sampler s;
	struct report r;
	bool ok;

	if (!sampler_open(&s, root))
		return false;
	ok = sampler_take(&s, &r);
	if (ok) {
		while (nanosleep(&period, &period) && errno == EINTR)
			;
		ok = sampler_take(&s, &r);
	}
	if (ok) {
		r.period_ms = conf->period_ms;
		r.heartbeat_ms = conf->heartbeat_ms;
		r.dropped = 0;
		report_encode(&r, &line);
		ok = !line.failed && fprintf(out, "%s\n", line.data) > 0 && !fflush(out);
		if (!ok)
			log_err("cannot write the report: %s", strerror(errno));
	}
	buf_free(&line);
	sampler_close(&s);
	return ok;
}
