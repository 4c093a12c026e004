// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "agent.h"

/* Answers to the host's "poll": as many a second, and as many at once. */
#define ASKED_PER_S 10
#define TOPOLOGY_FILE "sys/kernel/tandem/topology/host"

/**
 * agent_check_transport() - is there such a way to the host?
 * @value: name given by the administrator
 *
 * Return: NULL when there is, or else what is accepted.
 */
const char *agent_check_transport(const char *value)
{
	if (!strcmp(value, "auto") || !strcmp(value, "virtio-serial") ||
	    !strcmp(value, "xenstore"))
		return NULL;
	return "auto, virtio-serial or xenstore";
}

#define KEY_INT(field, lo, hi) \
	{ "tandemd", #field, CONF_INT, offsetof(struct agent_conf, field), lo, hi, NULL }
#define KEY_TEXT(field, check) \
	{ "tandemd", #field, CONF_TEXT, offsetof(struct agent_conf, field), 0, \
	  sizeof(((struct agent_conf *)0)->field), check }

static const struct conf_key agent_keys[] = {
	KEY_TEXT(transport, agent_check_transport),
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
	text_copy(conf->transport, sizeof(conf->transport), "auto");
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

static bool agent_reached(const struct agent *a)
{
	return a->dry_run || a->link->ops->ready(a->link);
}

static void agent_push(struct agent *a, const struct report *r)
{
	uint64_t dropped = a->link->dropped;

	if (!report_encode_within(r, a->link->max, &a->line)) {
		log_limited(&a->odd, LOG_ERR,
			    "%s: cannot encode a report: it does not fit into %zu bytes",
			    a->link->label, a->link->max);
		return;
	}
	if (a->dry_run) {
		agent_print(a);
		push_sent(&a->pushed, r, clock_ms());
		return;
	}
	if (a->link->ops->send(a->link, a->line.data, a->line.len))
		push_sent(&a->pushed, r, clock_ms());
	else if (a->link->dropped != dropped)
		log_limited(&a->slow, LOG_WARNING,
			    "%s: the host does not drain it, a report was dropped",
			    a->link->label);
}

static void agent_line(void *arg, char *line, size_t len)
{
	char error[REPORT_ERROR_MAX] = "v: not 1";
	struct agent *a = arg;
	struct json_object *msg;
	const char *type = NULL;

	/* Bounds the parsing, too; what is over it is dropped unread. */
	if (!rate_take(&a->asked, 1, clock_ms())) {
		log_limited(&a->fast, LOG_WARNING, "%s: the host sends more than %d lines/s",
			    a->link->label, ASKED_PER_S);
		return;
	}
	msg = json_read(a->tok, line, len, error);
	if (msg && json_get_version(msg)) {
		type = json_get_text(msg, "type");
		snprintf(error, sizeof(error), "type: not a string");
	}
	if (!type)
		log_limited(&a->odd, LOG_WARNING, "%s: a line from the host is dropped: %s",
			    a->link->label, error);
	else if (strcmp(type, "poll"))
		log_limited(&a->odd, LOG_INFO,
			    "%s: a message of a type that is not known is ignored: %.40s",
			    a->link->label, type);
	else if (a->sample)
		agent_push(a, &a->sample->report);
	json_object_put(msg);
}

static void agent_oversized(void *arg)
{
	struct agent *a = arg;

	log_limited(&a->large, LOG_WARNING,
		    "%s: a line of more than %d bytes from the host is dropped",
		    a->link->label, LINE_BYTES_MAX);
}

/* What the host says goes over the configuration. */
static int64_t agent_period_ms(const struct agent *a)
{
	return a->said.period_ms ? a->said.period_ms : a->conf.period_ms;
}

static void agent_stamp(const struct agent *a, struct report *r)
{
	int64_t period_ms = agent_period_ms(a);

	r->period_ms = period_ms;
	r->heartbeat_ms = a->conf.heartbeat_ms > period_ms ? a->conf.heartbeat_ms : period_ms;
	r->dropped = (int64_t)a->link->dropped;
	text_copy(r->group, sizeof(r->group), a->said.group);
}

/* The newest sample again, as the host's words changed it. */
static void agent_restamp(struct agent *a)
{
	struct agent_sample *sample;

	if (!a->sample)
		return;
	sample = malloc(sizeof(*sample));
	if (!sample)
		return;
	sample->report = a->sample->report;
	agent_stamp(a, &sample->report);
	pub_replace(&a->retired, &a->sample, sample);
}

/* So that the host sees that it was obeyed; once for all that it says at a time. */
static void agent_restate_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct agent *a = w->data;

	(void)loop;
	(void)revents;
	agent_restamp(a);
	if (a->sample && agent_reached(a))
		agent_push(a, &a->sample->report);
}

/* Whoever begins to read knows nothing yet. */
static void agent_opened(void *arg)
{
	struct agent *a = arg;

	a->pushed.valid = false;
	if (ev_clear_pending(a->loop, &a->restate))
		agent_restamp(a);
	if (a->sample)
		agent_push(a, &a->sample->report);
}

static void agent_set_timer(struct agent *a)
{
	a->tick.repeat = (double)agent_period_ms(a) / 1000.;
	ev_timer_again(a->loop, &a->tick);
}

/*
 * Tells the module what the host says about the topology, so that it stands back. The module
 * may come later, and may be loaded anew: while the host says something, look with each sample.
 */
static void agent_tell_module(struct agent *a)
{
	const char *word = a->said.topology;
	struct buf *text = &a->sampler.text;
	size_t n = strlen(word);
	int fd, error = 0;

	if (!a->sample || !a->sample->report.module.present ||
	    (!a->topology_due && !strcmp(word, "none")))
		return;
	a->topology_due = false;
	if (file_read(a->sampler.root_fd, TOPOLOGY_FILE, text) && text->len >= n &&
	    !memcmp(text->data, word, n))
		return;
	fd = openat(a->sampler.root_fd, TOPOLOGY_FILE, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0 || write(fd, word, n) != (ssize_t)n)
		error = errno;
	if (fd >= 0)
		close(fd);
	/* An older module that cannot be told "none" needs not be. */
	if (error && !a->topology_missing && strcmp(word, "none")) {
		log_warn("cannot tell the module that the host says %s: /%s: %s%s", word,
			 TOPOLOGY_FILE, strerror(error),
			 error == ENOENT ? ": load a module that has it" : "");
		a->topology_missing = true;
	} else if (!error) {
		a->topology_missing = false;
	}
}

/**
 * agent_host_says() - obey the host, at once
 * @a: the agent
 * @key: what it is about
 * @value: what it says; NULL takes it back
 * @len: its length
 *
 * The same for every transport. What is not valid says nothing, after a rate-limited line.
 */
void agent_host_says(struct agent *a, enum said_key key, const char *value, size_t len)
{
	char error[SAID_ERROR_MAX];
	struct said before = a->said;
	char text[SAID_VALUE_MAX];

	if (!said_set(&a->said, key, value, len, error)) {
		snprintf(text, sizeof(text), "%.*s", (int)(len < 40 ? len : 40), value);
		log_limited(&a->says, LOG_WARNING, "%s: %s = '%s' is not valid, %s",
			    a->link->label, said_names[key], text, error);
	}
	/* Also when nothing is said: an agent before this one may have told the module. */
	if (key == SAID_TOPOLOGY) {
		a->topology_due = true;
		agent_tell_module(a);
	}
	if (before.period_ms == a->said.period_ms && !strcmp(before.group, a->said.group) &&
	    !strcmp(before.topology, a->said.topology))
		return;
	if (key == SAID_GROUP)
		log_limited(&a->says, LOG_INFO, "%s: the host says: group %s", a->link->label,
			    *a->said.group ? a->said.group : "none");
	else if (key == SAID_TOPOLOGY)
		log_limited(&a->says, LOG_INFO, "%s: the host says: topology %s", a->link->label,
			    a->said.topology);
	else
		log_limited(&a->says, LOG_INFO, "%s: the host says: period %lld ms%s",
			    a->link->label, (long long)agent_period_ms(a),
			    a->said.period_ms ? "" : ", the configured one");
	if (before.period_ms != a->said.period_ms)
		agent_set_timer(a);
	if (key != SAID_TOPOLOGY)
		ev_feed_event(a->loop, &a->restate, EV_CUSTOM);
}

static void agent_said(void *arg, enum said_key key, const char *value, size_t len)
{
	agent_host_says(arg, key, value, len);
}

static const struct link_events agent_link_events = {
	.opened = agent_opened,
	.line = agent_line,
	.oversized = agent_oversized,
	.said = agent_said,
};

/* Reports go over the transport that the configuration names from now on. */
static void agent_choose_link(struct agent *a)
{
	const char *name = a->conf.transport;
	struct link *link = &a->port.link;

	if (!strcmp(name, "xenstore") ||
	    (!strcmp(name, "auto") && xenlink_here(a->sampler.root_fd)))
		link = &a->xen.link;
	if (link == a->link)
		return;
	if (a->link)
		a->link->ops->close(a->link);
	a->link = link;
	a->pushed.valid = false;
}

static bool agent_sample(struct agent *a)
{
	struct agent_sample *sample = malloc(sizeof(*sample));

	if (!sample)
		return false;
	if (!sampler_take(&a->sampler, &sample->report)) {
		free(sample);
		return false;
	}
	agent_stamp(a, &sample->report);
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
		a->link->ops->look(a->link);
	if (!fresh)
		return;
	agent_tell_module(a);
	r = &a->sample->report;
	if (!agent_reached(a))
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
	a->says.interval_ms = 10000;
	a->says.burst = 7;
	said_init(&a->said);
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
	port_init(&a->port, loop, a->sampler.root_fd, &agent_link_events, a);
	port_set_name(&a->port, conf->port);
	xenlink_init(&a->xen, loop, &agent_link_events, a);
	agent_choose_link(a);
	if (strcmp(conf->socket, "none")) {
		a->ctl = ctl_start(conf->socket, CTL_IDLE_MS, agent_answer, a);
		if (!a->ctl) {
			json_tokener_free(a->tok);
			sampler_close(&a->sampler);
			return false;
		}
	}
	if (dry_run)
		log_info("dry run: reports would go over %s", a->link->label);
	ev_init(&a->tick, agent_tick_cb);
	a->tick.data = a;
	ev_init(&a->restate, agent_restate_cb);
	a->restate.data = a;
	agent_set_timer(a);
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
	text_copy(a->conf.transport, sizeof(a->conf.transport), conf->transport);
	port_set_name(&a->port, conf->port);
	agent_choose_link(a);
	agent_set_timer(a);
}

/**
 * agent_stop() - stop, and give everything back
 * @a: the agent
 */
void agent_stop(struct agent *a)
{
	ev_timer_stop(a->loop, &a->tick);
	ev_clear_pending(a->loop, &a->restate);
	ctl_stop(a->ctl);
	a->link->ops->close(a->link);
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
