/* SPDX-License-Identifier: GPL-2.0 */
/* The guest agent: sample, publish, push. tandemd.c has its options and its main(). */
#ifndef TANDEM_AGENT_H
#define TANDEM_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <ev.h>

#include "conf.h"
#include "ctl.h"
#include "link.h"
#include "log.h"
#include "port.h"
#include "pub.h"
#include "push.h"
#include "rate.h"
#include "said.h"
#include "sample.h"
#include "xenlink.h"

#define AGENT_CONF_PATH		"/etc/tandem/tandemd.conf"
#define AGENT_SOCKET_PATH	"/run/tandem/tandemd.sock"

/**
 * struct agent_conf - the configuration of tandemd
 * @transport: how to reach the host: "auto", "virtio-serial" or "xenstore"
 * @port: virtio-serial port, by name or path
 * @socket: control socket
 * @period_ms: sample this often
 * @heartbeat_ms: push at least this often
 * @threshold_permille: push when something changed by more than that
 */
struct agent_conf {
	char transport[16];
	char port[PORT_NAME_MAX];
	char socket[CTL_PATH_MAX];
	int64_t period_ms;
	int64_t heartbeat_ms;
	int64_t threshold_permille;
};

/**
 * struct agent_sample - a sample as it is published
 * @item: for pub_retire()
 * @report: the sample; never changes once it is published
 */
struct agent_sample {
	struct pub_item item;
	struct report report;
};

/**
 * struct agent - the running agent
 * @loop: its event loop
 * @tick: the one timer
 * @restate: never started: fed when the host has said something that reports show
 * @conf: its configuration
 * @sampler: where samples come from
 * @link: where reports go: @port or @xen; unused with @dry_run
 * @port: the virtio-serial port
 * @xen: xenstore
 * @said: what the host says
 * @topology_due: the module is to be told even that the host says nothing of the topology
 * @topology_missing: it has been logged that the module cannot be told
 * @dry_run: print reports to @out instead
 * @out: for @dry_run
 * @failed: it could not be written to, which ends the event loop
 * @ctl: control socket, or NULL
 * @sample: the newest sample: RCU, read by the control thread
 * @retired: older samples
 * @pushed: what the host has
 * @asked: bounds how often the host may ask
 * @odd: limit for the line about messages that are not understood
 * @fast: limit for the line about more messages than it may send
 * @large: limit for the line about lines that are too long
 * @slow: limit for the line about a host that does not drain
 * @says: limit for lines about what the host says
 * @tok: JSON parser for what the host says
 * @line: the report that is being encoded
 */
struct agent {
	struct ev_loop *loop;
	ev_timer tick;
	ev_timer restate;
	struct agent_conf conf;
	struct sampler sampler;
	struct link *link;
	struct port port;
	struct xenlink xen;
	struct said said;
	bool topology_due;
	bool topology_missing;
	bool dry_run;
	FILE *out;
	bool failed;
	struct ctl *ctl;
	struct agent_sample *sample;
	struct pub_retired retired;
	struct push_state pushed;
	struct rate_bucket asked;
	struct log_limit odd;
	struct log_limit fast;
	struct log_limit large;
	struct log_limit slow;
	struct log_limit says;
	struct json_tokener *tok;
	struct buf line;
};

extern const struct conf_table agent_conf_table;

const char *agent_check_transport(const char *value);
void agent_conf_init(struct agent_conf *conf);
const char *agent_conf_check(const struct agent_conf *conf);
bool agent_start(struct agent *a, struct ev_loop *loop, const struct agent_conf *conf,
		 const char *root, bool dry_run);
void agent_reconfigure(struct agent *a, const struct agent_conf *conf);
void agent_tick(struct agent *a);
void agent_host_says(struct agent *a, enum said_key key, const char *value, size_t len);
void agent_stop(struct agent *a);
bool agent_once(const struct agent_conf *conf, const char *root, FILE *out);

#endif
