/* SPDX-License-Identifier: GPL-2.0 */
/* The bounded line splitter of the virtio-serial port and of every socket. */
#ifndef TANDEM_LINE_H
#define TANDEM_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest line of the protocol, newline included. */
#define LINE_BYTES_MAX 4096

/**
 * struct line_splitter - a stream cut into lines
 * @len: bytes of the unfinished line in @buf
 * @skipping: the current line is too long and dropped up to its newline
 * @oversized: lines dropped because they were too long
 * @buf: the unfinished line; room for the longest one and for its NUL
 *
 * Zeroed memory is an empty splitter.
 */
struct line_splitter {
	size_t len;
	bool skipping;
	uint64_t oversized;
	char buf[LINE_BYTES_MAX];
};

/**
 * typedef line_fn - what to do with a whole line
 * @arg: the caller's argument
 * @line: the line without newline, NUL-terminated, but it may contain NULs
 * @len: its length; never 0, as empty lines are skipped
 *
 * Return: false to drop the rest of the data, for instance because the
 * splitter's owner is gone.
 */
typedef bool line_fn(void *arg, char *line, size_t len);

void line_reset(struct line_splitter *ls);
bool line_feed(struct line_splitter *ls, const char *data, size_t len, line_fn *fn, void *arg);

#endif
