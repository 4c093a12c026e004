// SPDX-License-Identifier: GPL-2.0
/* The splitter, in pieces of a size that the first byte chooses, against a plain one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct expect {
	const char *pos;
	const char *end;
	uint64_t oversized;
};

/* The next line that is neither empty nor too long. */
static const char *next(struct expect *e, size_t *len)
{
	while (e->pos < e->end) {
		const char *line = e->pos;
		const char *nl = memchr(line, '\n', (size_t)(e->end - line));

		if (!nl)
			return NULL;
		e->pos = nl + 1;
		*len = (size_t)(nl - line);
		if (*len >= LINE_BYTES_MAX)
			e->oversized++;
		else if (*len)
			return line;
	}
	return NULL;
}

static bool check(void *arg, char *line, size_t len)
{
	const char *want;
	size_t n;

	want = next(arg, &n);
	if (!want || n != len || memcmp(want, line, len) || line[len])
		abort();
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct line_splitter ls;
	struct expect e;
	size_t piece, len;

	if (!size)
		return 0;
	piece = (size_t)*data * 17 + 1;
	data++;
	size--;
	memset(&ls, 0, sizeof(ls));
	e = (struct expect){ .pos = (const char *)data, .end = (const char *)data + size };
	for (size_t i = 0; i < size; i += piece)
		line_feed(&ls, (const char *)data + i, size - i < piece ? size - i : piece, check,
			  &e);
	if (next(&e, &len))
		abort();
	if (e.end - e.pos >= LINE_BYTES_MAX)
		e.oversized++;
	if (ls.oversized != e.oversized)
		abort();
	return 0;
}
