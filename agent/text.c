// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static bool buf_room(struct buf *b, size_t more)
{
	size_t want, cap;
	char *data;

	if (b->failed)
		return false;
	if (more >= b->max || b->len > b->max - more - 1) {
		b->failed = true;
		return false;
	}
	want = b->len + more + 1;
	if (want <= b->cap)
		return true;
	cap = b->cap ? b->cap : 256;
	while (cap < want)
		cap *= 2;
	if (cap > b->max)
		cap = b->max;
	data = realloc(b->data, cap);
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

/**
 * buf_add() - append bytes
 * @b: the buffer
 * @data: bytes to append
 * @len: how many
 *
 * When they do not fit under @b->max nothing is appended and @b->failed is set,
 * so a caller may append many times and look once.
 */
void buf_add(struct buf *b, const char *data, size_t len)
{
	if (!buf_room(b, len))
		return;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

/**
 * buf_puts() - append a string
 * @b: the buffer
 * @s: NUL-terminated string
 */
void buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

/**
 * buf_printf() - append formatted text
 * @b: the buffer
 * @fmt: printf format
 */
void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
		return;
	}
	if (!buf_room(b, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

/**
 * buf_json_string() - append a JSON string, with its quotes
 * @b: the buffer
 * @s: NUL-terminated UTF-8
 */
void buf_json_string(struct buf *b, const char *s)
{
	buf_add(b, "\"", 1);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			buf_printf(b, "\\u%04x", c);
		else
			buf_add(b, s, 1);
	}
	buf_add(b, "\"", 1);
}

/**
 * buf_reset() - forget the text, keep the memory
 * @b: the buffer
 */
void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

/**
 * buf_free() - give the memory back
 * @b: the buffer; usable again afterwards
 */
void buf_free(struct buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = 0;
	b->cap = 0;
	b->failed = false;
}

/**
 * text_u64() - read an unsigned decimal number
 * @pos: where to read; moved behind the digits
 * @end: one past the last byte that may be read
 * @value: set on success
 *
 * No sign, no space, no empty number, no overflow.
 *
 * Return: true when a number was read; otherwise @pos is left where it was.
 */
bool text_u64(const char **pos, const char *end, uint64_t *value)
{
	const char *p = *pos;
	uint64_t v = 0;

	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	}
	if (p == *pos)
		return false;
	*pos = p;
	*value = v;
	return true;
}

/**
 * text_int() - read a whole string as an integer within bounds
 * @s: NUL-terminated string; digits with an optional leading minus, nothing else
 * @min: least value accepted
 * @max: greatest value accepted
 * @value: set on success
 *
 * Return: true when @s is such a number.
 */
bool text_int(const char *s, int64_t min, int64_t max, int64_t *value)
{
	const char *end = s + strlen(s);
	bool negative = *s == '-';
	uint64_t v;
	int64_t i;

	if (negative)
		s++;
	if (!text_u64(&s, end, &v) || s != end || v > INT64_MAX)
		return false;
	i = negative ? -(int64_t)v : (int64_t)v;
	if (i < min || i > max)
		return false;
	*value = i;
	return true;
}

/**
 * text_centi() - read a number with exactly two decimals, as hundredths
 * @pos: where to read; moved behind the number
 * @end: one past the last byte that may be read
 * @value: set on success: "1.09" gives 109
 *
 * The format of /proc/loadavg, /proc/uptime and /proc/pressure.
 *
 * Return: true when such a number was read.
 */
bool text_centi(const char **pos, const char *end, uint64_t *value)
{
	const char *p = *pos;
	uint64_t whole, part;
	const char *dot;

	if (!text_u64(&p, end, &whole) || p == end || *p != '.')
		return false;
	dot = ++p;
	if (!text_u64(&p, end, &part) || p - dot != 2)
		return false;
	if (__builtin_mul_overflow(whole, (uint64_t)100, &whole) ||
	    __builtin_add_overflow(whole, part, value))
		return false;
	*pos = p;
	return true;
}

/**
 * text_skip() - step over a fixed word
 * @pos: where to read; moved behind the word when it is there
 * @end: one past the last byte that may be read
 * @word: what has to be there
 *
 * Return: true when @word was there.
 */
bool text_skip(const char **pos, const char *end, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(end - *pos) < n || memcmp(*pos, word, n))
		return false;
	*pos += n;
	return true;
}

/**
 * text_printable() - is every byte printable ASCII?
 * @s: NUL-terminated string
 *
 * Return: true for the empty string, too.
 */
bool text_printable(const char *s)
{
	for (; *s; s++) {
		if (*s < 0x20 || *s > 0x7e)
			return false;
	}
	return true;
}

/**
 * text_escape() - make text safe for a terminal or a log
 * @dst: result, always NUL-terminated, cut where it does not fit
 * @size: bytes at @dst, at least 1
 * @src: NUL-terminated text of any origin
 *
 * Every byte that is not printable ASCII becomes \xNN.
 */
void text_escape(char *dst, size_t size, const char *src)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (; *src; src++) {
		unsigned char c = (unsigned char)*src;

		if (c >= 0x20 && c < 0x7f) {
			if (n + 1 >= size)
				break;
			dst[n++] = *src;
			continue;
		}
		if (n + 4 >= size)
			break;
		dst[n++] = '\\';
		dst[n++] = 'x';
		dst[n++] = hex[c >> 4];
		dst[n++] = hex[c & 15];
	}
	dst[n] = '\0';
}

/**
 * text_copy() - copy a string that has to fit
 * @dst: destination
 * @size: bytes at @dst
 * @src: NUL-terminated string
 *
 * Return: false, with @dst untouched, when @src does not fit.
 */
bool text_copy(char *dst, size_t size, const char *src)
{
	size_t n = strlen(src);

	if (n >= size)
		return false;
	memmove(dst, src, n + 1);
	return true;
}
