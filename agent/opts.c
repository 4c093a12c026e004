// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "log.h"
#include "opts.h"
#include "text.h"

/**
 * opt_int() - the value of an option that takes a number
 * @option: its name, for the message
 * @value: its value
 * @min: least value accepted
 * @max: greatest value accepted
 * @result: set on success
 *
 * Return: false after one log line.
 */
bool opt_int(const char *option, const char *value, int64_t min, int64_t max, int64_t *result)
{
	if (text_int(value, min, max, result))
		return true;
	log_err("option --%s: '%.60s' is not valid, accepted: a whole number from %lld to %lld",
		option, value, (long long)min, (long long)max);
	return false;
}

/**
 * opt_text() - the value of an option that takes text
 * @option: its name, for the message
 * @value: its value
 * @dst: set on success
 * @size: bytes at @dst
 *
 * Return: false after one log line.
 */
bool opt_text(const char *option, const char *value, char *dst, size_t size)
{
	if (*value && text_copy(dst, size, value))
		return true;
	log_err("option --%s: the value is %s, accepted: 1 to %zu bytes", option,
		*value ? "too long" : "empty", size - 1);
	return false;
}

/**
 * opt_version() - do what --version asks for
 * @program: name of the program
 *
 * Return: EXIT_OK.
 */
int opt_version(const char *program)
{
	printf("%s (tandem) %s\n", program, TANDEM_VERSION);
	return EXIT_OK;
}

/**
 * opts_conf_read() - read a daemon's configuration file
 * @table: what is accepted
 * @path: the file
 * @named: the administrator named it, so that it has to be there
 * @dst: structure to fill in
 *
 * Return: EXIT_OK; otherwise, after one log line, the status to exit with.
 */
int opts_conf_read(const struct conf_table *table, const char *path, bool named, void *dst)
{
	char error[CONF_ERROR_MAX];
	enum conf_result r = conf_read(table, path, dst, error);

	if (r == CONF_OK || (r == CONF_MISSING && !named))
		return EXIT_OK;
	log_err("%s", error);
	return r == CONF_INVALID ? EXIT_USAGE : EXIT_FAILED;
}
