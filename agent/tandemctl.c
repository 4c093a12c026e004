// SPDX-License-Identifier: GPL-2.0
/* tandemctl: ask tandemd (in a guest) or tandem-groupd (on a host). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "agent.h"
#include "groupd.h"
#include "opts.h"
#include "status.h"

#define ASK_TIMEOUT_MS 5000
#define ASK_ANSWER_MAX (16 << 20)

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "socket", required_argument, NULL, 's' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ }
};

static const char usage[] =
"Usage: tandemctl [OPTION]... status|guests\n"
"  status             in a guest: what the host does to it, and what tandem does\n"
"  guests             on a host: its guests and their load\n"
"\n"
"  -j, --json         print the daemon's answer as it is\n"
"  -s, --socket PATH  the daemon's control socket, default\n"
"                     " AGENT_SOCKET_PATH " or " GROUPD_SOCKET_PATH "\n"
"  -h, --help         this text\n"
"  -V, --version      the version\n";

/**
 * struct command - what can be asked
 * @name: its name
 * @get: what the daemon calls it
 * @socket: the daemon's socket
 * @show: turns the answer into text for people
 */
struct command {
	const char *name;
	const char *get;
	const char *socket;
	bool (*show)(const char *text, size_t len, struct buf *out, char *error);
};

static bool show_status(const char *text, size_t len, struct buf *out, char *error)
{
	struct json_tokener *tok = json_reader_new(JSON_DEPTH_MAX);
	struct report r;
	bool ok;

	if (!tok) {
		snprintf(error, REPORT_ERROR_MAX, "out of memory");
		return false;
	}
	ok = report_decode(tok, text, len, &r, error);
	if (ok)
		status_text(&r, out);
	json_tokener_free(tok);
	return ok;
}

static const struct command commands[] = {
	{ "status", "report", AGENT_SOCKET_PATH, show_status },
	{ "guests", "guests", GROUPD_SOCKET_PATH, guests_table_from_json },
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

/* The error that a daemon answered with; false when the answer is none. */
static bool answered_error(const struct buf *answer, char *error, size_t size)
{
	struct json_tokener *tok = json_reader_new(GUESTS_JSON_DEPTH);
	char why[REPORT_ERROR_MAX];
	struct json_object *root;
	const char *text = NULL;

	root = tok ? json_read(tok, answer->data, answer->len, why) : NULL;
	if (root)
		text = json_get_text(root, "error");
	if (text)
		snprintf(error, size, "%s", text);
	json_object_put(root);
	if (tok)
		json_tokener_free(tok);
	return text;
}

static int run(const struct command *cmd, const char *socket, bool json)
{
	struct buf answer = BUF_INIT(ASK_ANSWER_MAX);
	struct buf out = BUF_INIT(ASK_ANSWER_MAX);
	int r = EXIT_FAILED;
	char error[512];

	if (!ctl_ask(socket, cmd->get, ASK_TIMEOUT_MS, &answer, error, sizeof(error)))
		log_err("%s", error);
	else if (answered_error(&answer, error, sizeof(error)))
		log_err("%s: %s: the daemon answered with an error: %s", cmd->name, socket, error);
	else if (json)
		buf_printf(&out, "%s\n", answer.data);
	else if (!cmd->show(answer.data, answer.len, &out, error))
		log_err("%s: %s: the answer is not understood: %s: is the daemon of this version?",
			cmd->name, socket, error);
	if (out.len && !out.failed)
		r = opt_print(out.data);
	buf_free(&out);
	buf_free(&answer);
	return r;
}

int main(int argc, char **argv)
{
	char socket[CTL_PATH_MAX] = "";
	const struct command *cmd;
	bool json = false;
	int c;

	opts_std_files();
	log_open("tandemctl", false);
	while ((c = getopt_long(argc, argv, "js:hV", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 's':
			if (!opt_text("socket", optarg, socket, sizeof(socket)))
				return EXIT_USAGE;
			break;
		case 'h':
			return opt_print(usage);
		case 'V':
			return opt_version("tandemctl");
		default:
			fputs("Try 'tandemctl --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind + 1 != argc) {
		log_err("%s, accepted: status or guests, see --help",
			optind == argc ? "no command" : "more than one command");
		return EXIT_USAGE;
	}
	cmd = find_command(argv[optind]);
	if (!cmd) {
		log_err("unknown command '%.40s', accepted: status or guests", argv[optind]);
		return EXIT_USAGE;
	}
	return run(cmd, *socket ? socket : cmd->socket, json);
}
