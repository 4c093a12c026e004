/* SPDX-License-Identifier: GPL-2.0 */
/* Text: strict numbers, escaping for people and for JSON, a bounded growing buffer. */
#ifndef TANDEM_TEXT_H
#define TANDEM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/**
 * struct buf - text that grows up to a limit
 * @data: NUL-terminated text, or NULL while nothing was added
 * @len: bytes of text
 * @cap: bytes allocated
 * @max: never allocate more than this
 * @failed: something did not fit, or memory ran out: the text is not whole
 */
struct buf {
	char *data;
	size_t len;
	size_t cap;
	size_t max;
	bool failed;
};

#define BUF_INIT(limit) { .max = (limit) }

void buf_add(struct buf *b, const char *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_json_string(struct buf *b, const char *s);
void buf_reset(struct buf *b);
void buf_free(struct buf *b);

bool text_u64(const char **pos, const char *end, uint64_t *value);
bool text_int(const char *s, int64_t min, int64_t max, int64_t *value);
bool text_centi(const char **pos, const char *end, uint64_t *value);
bool text_skip(const char **pos, const char *end, const char *word);
bool text_printable(const char *s);
void text_escape(char *dst, size_t size, const char *src);
bool text_copy(char *dst, size_t size, const char *src);

#endif
