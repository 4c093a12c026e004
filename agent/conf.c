// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ini.h>

#include "conf.h"
#include "text.h"

/**
 * struct conf_parser - one run over a file
 * @table: what is accepted
 * @name: name of the file for messages
 * @pos: what has not been handed to inih yet
 * @end: end of the text
 * @line: number of the line that inih works on
 * @seen: line on which each key stood, 0 for none
 * @dst: the structure to fill in
 * @error: CONF_ERROR_MAX bytes
 * @failed: @error is set; the first error wins
 */
struct conf_parser {
	const struct conf_table *table;
	const char *name;
	const char *pos;
	const char *end;
	unsigned int line;
	unsigned int seen[CONF_KEYS_MAX];
	char *dst;
	char *error;
	bool failed;
};

static void __attribute__((format(printf, 2, 3)))
conf_fail(struct conf_parser *cp, const char *fmt, ...)
{
	char what[CONF_ERROR_MAX - 64];
	char safe[CONF_ERROR_MAX];
	va_list ap;

	if (cp->failed)
		return;
	cp->failed = true;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	text_escape(safe, sizeof(safe), what);
	snprintf(cp->error, CONF_ERROR_MAX, "%.120s:%u: %.380s", cp->name, cp->line, safe);
}

static bool conf_section_known(const struct conf_table *table, const char *s, size_t len)
{
	for (size_t i = 0; i < table->count; i++) {
		const char *known = table->keys[i].section;

		if (strlen(known) == len && !memcmp(known, s, len))
			return true;
	}
	return false;
}

/*
 * inih is silent about an unknown section that has no keys, and takes an indented
 * line for more of the value above.
 */
static void conf_check_section(struct conf_parser *cp, const char *line, size_t len)
{
	const char *first = line;
	const char *close;

	while (first < line + len && (*first == ' ' || *first == '\t'))
		first++;
	if (first == line + len || *first == '\r' || *first == '#' || *first == ';')
		return;
	if (first != line) {
		conf_fail(cp, "the line is indented, accepted: no white space before a key");
		return;
	}
	if (*first != '[')
		return;
	first++;
	close = memchr(first, ']', (size_t)(line + len - first));
	if (!close)
		return;
	if (!conf_section_known(cp->table, first, (size_t)(close - first)))
		conf_fail(cp, "unknown section [%.*s], accepted: [%s]", (int)(close - first), first,
			  cp->table->keys[0].section);
}

static void conf_check_bytes(struct conf_parser *cp, const char *line, size_t len)
{
	if (len > CONF_LINE_MAX) {
		conf_fail(cp, "line of %zu bytes is too long, accepted: at most %d", len,
			  CONF_LINE_MAX);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)line[i];

		if (c == '\t' || (c == '\r' && i + 1 == len))
			continue;
		if (c < 0x20 || c == 0x7f) {
			conf_fail(cp, "byte 0x%02x in column %zu is not text, accepted: plain text",
				  c, i + 1);
			return;
		}
	}
}

/* Gives inih one line at a time, so that the line of every key is known. */
static char *conf_next_line(char *str, int num, void *arg)
{
	struct conf_parser *cp = arg;
	const char *nl;
	size_t len;

	if (cp->pos == cp->end || cp->failed)
		return NULL;
	nl = memchr(cp->pos, '\n', (size_t)(cp->end - cp->pos));
	len = (size_t)((nl ? nl : cp->end) - cp->pos);
	cp->line++;
	conf_check_bytes(cp, cp->pos, len);
	if (!cp->failed)
		conf_check_section(cp, cp->pos, len);
	/* inih cuts what it has no room for: never let it. */
	if (!cp->failed && len + 1 > (size_t)num - 1)
		conf_fail(cp, "line of %zu bytes is too long", len);
	if (cp->failed)
		return NULL;
	memcpy(str, cp->pos, len);
	str[len] = '\n';
	str[len + 1] = '\0';
	cp->pos = nl ? nl + 1 : cp->end;
	return str;
}

static const struct conf_key *conf_find(const struct conf_table *table, const char *section,
					const char *key)
{
	for (size_t i = 0; i < table->count; i++) {
		if (!strcmp(table->keys[i].section, section) && !strcmp(table->keys[i].key, key))
			return &table->keys[i];
	}
	return NULL;
}

static void conf_unknown_key(struct conf_parser *cp, const char *section, const char *key)
{
	char known[256] = "";
	size_t n = 0;

	if (!*section) {
		conf_fail(cp, "key '%s' stands before any section, accepted: [%s] first", key,
			  cp->table->keys[0].section);
		return;
	}
	for (size_t i = 0; i < cp->table->count && n < sizeof(known) - 1; i++) {
		int r;

		if (strcmp(cp->table->keys[i].section, section))
			continue;
		r = snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "",
			     cp->table->keys[i].key);
		n += (size_t)r;
	}
	conf_fail(cp, "unknown key '%s' in [%s], accepted: %s", key, section, known);
}

static void conf_store(struct conf_parser *cp, const struct conf_key *key, const char *value)
{
	const char *accepted;
	int64_t number;

	if (key->type == CONF_INT) {
		if (!text_int(value, key->min, key->max, &number)) {
			conf_fail(cp,
				  "%s = '%s' is not valid, accepted: a whole number from %lld to %lld",
				  key->key, value, (long long)key->min, (long long)key->max);
			return;
		}
		memcpy(cp->dst + key->offset, &number, sizeof(number));
		return;
	}
	if (!*value || strlen(value) >= (size_t)key->max) {
		conf_fail(cp, "%s is %s, accepted: 1 to %lld bytes", key->key,
			  *value ? "too long" : "empty", (long long)key->max - 1);
		return;
	}
	accepted = key->check ? key->check(value) : NULL;
	if (accepted) {
		conf_fail(cp, "%s = '%s' is not valid, accepted: %s", key->key, value, accepted);
		return;
	}
	text_copy(cp->dst + key->offset, (size_t)key->max, value);
}

static int conf_handle(void *arg, const char *section, const char *name, const char *value)
{
	struct conf_parser *cp = arg;
	const struct conf_key *key;
	size_t i;

	if (cp->failed)
		return 0;
	key = conf_find(cp->table, section, name);
	if (!key) {
		conf_unknown_key(cp, section, name);
		return 0;
	}
	i = (size_t)(key - cp->table->keys);
	if (cp->seen[i]) {
		conf_fail(cp, "%s was already set in line %u, accepted: one line a key", name,
			  cp->seen[i]);
		return 0;
	}
	cp->seen[i] = cp->line;
	conf_store(cp, key, value);
	return !cp->failed;
}

/**
 * conf_parse() - read the text of a file
 * @table: what is accepted
 * @name: name of the file, for messages
 * @text: its bytes, of any kind
 * @len: how many
 * @dst: structure with the defaults; values that are set are stored in it, and
 *       after an error it holds a mixture, so pass a copy
 * @error: CONF_ERROR_MAX bytes; set to one line "FILE:LINE: what, accepted: ..."
 *
 * Return: CONF_OK or CONF_INVALID.
 */
enum conf_result conf_parse(const struct conf_table *table, const char *name, const char *text,
			    size_t len, void *dst, char *error)
{
	struct conf_parser cp = {
		.table = table,
		.name = name,
		.pos = text,
		.end = text + len,
		.dst = dst,
		.error = error,
	};
	int r;

	r = ini_parse_stream(conf_next_line, &cp, conf_handle, &cp);
	if (cp.failed)
		return CONF_INVALID;
	if (r > 0) {
		cp.line = (unsigned int)r;
		conf_fail(&cp, "not understood, accepted: [section], key = value, # comment");
		return CONF_INVALID;
	}
	if (r < 0) {
		conf_fail(&cp, "out of memory");
		return CONF_INVALID;
	}
	return CONF_OK;
}

static enum conf_result conf_load(int fd, const char *path, struct buf *text, char *error)
{
	char chunk[4096];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		snprintf(error, CONF_ERROR_MAX,
			 "%.200s: cannot read the configuration: not a regular file", path);
		return CONF_UNREADABLE;
	}
	for (;;) {
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			snprintf(error, CONF_ERROR_MAX,
				 "%.200s: cannot read the configuration: %s", path,
				 strerror(errno));
			return CONF_UNREADABLE;
		}
		if (!n)
			return CONF_OK;
		buf_add(text, chunk, (size_t)n);
		if (text->failed) {
			snprintf(error, CONF_ERROR_MAX,
				 "%.200s:1: the file is too large, accepted: at most %d bytes",
				 path, CONF_FILE_MAX);
			return CONF_INVALID;
		}
	}
}

/**
 * conf_read() - read a file
 * @table: what is accepted
 * @path: the file
 * @dst: as for conf_parse()
 * @error: as for conf_parse()
 *
 * A FIFO or a device in the file's place cannot block: it is opened without
 * blocking, and refused.
 *
 * Return: CONF_OK; CONF_MISSING when there is no such file; CONF_UNREADABLE
 * when it cannot be read; CONF_INVALID when its contents are not valid. @error
 * is set in all cases but the first.
 */
enum conf_result conf_read(const struct conf_table *table, const char *path, void *dst,
			   char *error)
{
	struct buf text = BUF_INIT(CONF_FILE_MAX + 1);
	enum conf_result r;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		r = errno == ENOENT ? CONF_MISSING : CONF_UNREADABLE;
		snprintf(error, CONF_ERROR_MAX, "%.200s: cannot open the configuration: %s", path,
			 strerror(errno));
		return r;
	}
	r = conf_load(fd, path, &text, error);
	if (r == CONF_OK && text.len)
		r = conf_parse(table, path, text.data, text.len, dst, error);
	buf_free(&text);
	close(fd);
	return r;
}
