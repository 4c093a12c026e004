// SPDX-License-Identifier: GPL-2.0
/*
 * Strict parsing: a whole word or number, at most one newline after it.
 * Anything else changes nothing and leaves one line in the log.
 */
#define pr_fmt(fmt) "tandem: " fmt

#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/string.h>

#include "parse.h"

#define SHOWN_MAX	32	/* bytes of bad input in the log */
#define ACCEPTED_LEN	64
#define DIGITS_MAX	10	/* of a u32 */

static size_t without_newline(const char *buf, size_t len)
{
	return len && buf[len - 1] == '\n' ? len - 1 : len;
}

/* The input is hostile: escaped, and cut to SHOWN_MAX bytes. */
static void complain(const char *file, const char *what, const char *buf,
		     size_t len, const char *accepted)
{
	int shown = len < SHOWN_MAX ? (int)len : SHOWN_MAX;

	pr_warn_ratelimited("%s: %s: \"%*pE\"%s; accepted: %s\n", file, what,
			    shown, buf, len > SHOWN_MAX ? "..." : "", accepted);
}

static void join_words(char *out, size_t size, const char * const words[],
		       int nr)
{
	int i;

	out[0] = '\0';
	for (i = 0; i < nr; i++) {
		if (i)
			strlcat(out, " ", size);
		strlcat(out, words[i], size);
	}
}

/**
 * tandem_parse_word() - one of some words
 * @file: what is written to, for the log
 * @buf: the input; need not end in NUL
 * @len: its length
 * @words: the accepted words
 * @nr: their number
 *
 * Context: process. Logs what is wrong, rate-limited.
 * Return: index of the word, or -EINVAL.
 */
int tandem_parse_word(const char *file, const char *buf, size_t len,
		      const char * const words[], int nr)
{
	size_t word_len = without_newline(buf, len);
	char accepted[ACCEPTED_LEN];
	int i;

	for (i = 0; i < nr; i++)
		if (strlen(words[i]) == word_len &&
		    !memcmp(words[i], buf, word_len))
			return i;
	join_words(accepted, sizeof(accepted), words, nr);
	complain(file, "not one of the words", buf, len, accepted);
	return -EINVAL;
}

/* Unlike kstrtou32(): no sign, no embedded NUL, decimal digits only. */
static int digits_to_u64(const char *buf, size_t len, u64 *value)
{
	size_t i;

	if (!len)
		return -EINVAL;
	for (i = 0; i < len; i++)
		if (!isdigit(buf[i]))
			return -EINVAL;
	if (len > DIGITS_MAX)
		return -ERANGE;
	*value = 0;
	for (i = 0; i < len; i++)
		*value = *value * 10 + (buf[i] - '0');
	return 0;
}

/**
 * tandem_parse_u32() - a decimal number within bounds
 * @file: what is written to, for the log
 * @buf: the input; need not end in NUL
 * @len: its length
 * @min: smallest accepted value
 * @max: largest accepted value
 * @value: the result; not touched on error
 *
 * Context: process. Logs what is wrong, rate-limited.
 * Return: 0, -EINVAL if it is no number, -ERANGE if it is out of bounds.
 */
int tandem_parse_u32(const char *file, const char *buf, size_t len,
		     u32 min, u32 max, u32 *value)
{
	char accepted[ACCEPTED_LEN];
	u64 number;
	int err;

	err = digits_to_u64(buf, without_newline(buf, len), &number);
	if (!err && (number < min || number > max))
		err = -ERANGE;
	if (!err) {
		*value = (u32)number;
		return 0;
	}
	snprintf(accepted, sizeof(accepted), "%u to %u", min, max);
	complain(file, err == -ERANGE ? "out of range" : "not a number", buf,
		 len, accepted);
	return err;
}
