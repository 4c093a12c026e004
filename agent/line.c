// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "line.h"

/**
 * line_reset() - forget the unfinished line
 * @ls: the splitter; its counter is kept
 *
 * For the start of a new connection: what the old one left is not part of it.
 */
void line_reset(struct line_splitter *ls)
{
	ls->len = 0;
	ls->skipping = false;
}

static void line_keep(struct line_splitter *ls, const char *data, size_t len)
{
	if (ls->skipping)
		return;
	if (len >= sizeof(ls->buf) - ls->len) {
		ls->skipping = true;
		ls->oversized++;
		ls->len = 0;
		return;
	}
	memcpy(ls->buf + ls->len, data, len);
	ls->len += len;
}

/**
 * line_feed() - add bytes of the stream, hand over every line they finish
 * @ls: the splitter
 * @data: bytes as they arrived
 * @len: how many
 * @fn: called for every whole line that is not empty
 * @arg: passed to @fn
 *
 * A line that is longer than LINE_BYTES_MAX, newline included, is dropped up to
 * its newline and counted once. An empty line is legal and means nothing:
 * senders use it to end what a lost connection may have left half written.
 *
 * Return: false when @fn returned false; @ls must not be touched then, as it
 * may be gone.
 */
bool line_feed(struct line_splitter *ls, const char *data, size_t len, line_fn *fn, void *arg)
{
	while (len) {
		const char *nl = memchr(data, '\n', len);
		size_t part = nl ? (size_t)(nl - data) : len;
		size_t whole;

		line_keep(ls, data, part);
		if (!nl)
			return true;
		data += part + 1;
		len -= part + 1;
		whole = ls->len;
		ls->len = 0;
		if (ls->skipping) {
			ls->skipping = false;
			continue;
		}
		if (!whole)
			continue;
		ls->buf[whole] = '\0';
		if (!fn(arg, ls->buf, whole))
			return false;
	}
	return true;
}
