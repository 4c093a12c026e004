/* SPDX-License-Identifier: GPL-2.0 */
/* Strict INI files, described by a table of keys. */
#ifndef TANDEM_CONF_H
#define TANDEM_CONF_H

#include <stddef.h>
#include <stdint.h>

/* Longest line, and largest file, that is read at all. */
#define CONF_LINE_MAX 180
#define CONF_FILE_MAX 65536
#define CONF_KEYS_MAX 32
#define CONF_ERROR_MAX 512

enum conf_type {
	CONF_INT,
	CONF_TEXT,
};

/**
 * struct conf_key - one key that a file may contain
 * @section: its section
 * @key: its name
 * @type: CONF_INT stores an int64_t, CONF_TEXT a char array
 * @offset: of the value inside the structure that is filled in
 * @min: CONF_INT: least value
 * @max: CONF_INT: greatest value; CONF_TEXT: size of the array
 * @check: CONF_TEXT: returns NULL when the value is fine, or else what is
 *         accepted; may be NULL
 */
struct conf_key {
	const char *section;
	const char *key;
	enum conf_type type;
	size_t offset;
	int64_t min;
	int64_t max;
	const char *(*check)(const char *value);
};

/**
 * struct conf_table - everything that a file may contain
 * @keys: the keys
 * @count: how many, at most CONF_KEYS_MAX
 */
struct conf_table {
	const struct conf_key *keys;
	size_t count;
};

/* Exit statuses, as results of reading. */
enum conf_result {
	CONF_OK = 0,
	CONF_UNREADABLE = 1,
	CONF_INVALID = 2,
	CONF_MISSING = 3,
};

enum conf_result conf_parse(const struct conf_table *table, const char *name, const char *text,
			    size_t len, void *dst, char *error);
enum conf_result conf_read(const struct conf_table *table, const char *path, void *dst,
			   char *error);

#endif
