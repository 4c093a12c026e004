// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
 * opts_std_files() - put /dev/null where one of the standard files is closed
 *
 * Or a guest's socket would get its number, and with it the log's lines. Call it first
 * in main().
 */
void opts_std_files(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/**
 * opt_print() - print what was asked for, all of it or with a line that says why not
 * @text: the text
 *
 * Return: EXIT_OK, or EXIT_FAILED after one log line.
 */
int opt_print(const char *text)
{
	if (fputs(text, stdout) >= 0 && !fflush(stdout))
		return EXIT_OK;
	log_err("cannot write to standard output: %s", strerror(errno));
	return EXIT_FAILED;
}

/**
 * opt_version() - do what --version asks for
 * @program: name of the program
 *
 * Return: EXIT_OK, or EXIT_FAILED after one log line.
 */
int opt_version(const char *program)
{
	char text[128];

	snprintf(text, sizeof(text), "%s (tandem) %s\n", program, TANDEM_VERSION);
	return opt_print(text);
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
