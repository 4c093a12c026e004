// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "table.h"

/**
 * table_init() - an empty table
 * @t: the table
 * @align: 'l' or 'r' for each column, at most TABLE_COLUMNS_MAX; kept by reference
 */
void table_init(struct table *t, const char *align)
{
	memset(t, 0, sizeof(*t));
	t->columns = strlen(align);
	t->align = align;
	t->text.max = 4 << 20;
}

/**
 * table_cell() - fill the next cell
 * @t: the table
 * @fmt: printf format; the text is cut to TABLE_CELL_MAX bytes and escaped, so
 *	 that a guest can neither bend the table nor drive the terminal
 */
void table_cell(struct table *t, const char *fmt, ...)
{
	char raw[TABLE_CELL_MAX];
	char safe[TABLE_CELL_MAX];
	size_t column = t->cells % t->columns;
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	text_escape(safe, sizeof(safe), raw);
	n = strlen(safe);
	if (n > t->widths[column])
		t->widths[column] = n;
	buf_add(&t->text, safe, n + 1);
	t->cells++;
}

/**
 * table_render() - write the table, two spaces between columns, none at line ends
 * @t: the table; a row that is not full is not written
 * @out: text is appended
 */
void table_render(const struct table *t, struct buf *out)
{
	const char *cell = t->text.data;

	if (t->text.failed) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < t->cells - t->cells % t->columns; i++) {
		size_t column = i % t->columns;
		bool last = column == t->columns - 1;
		int width = (int)t->widths[column];

		if (t->align[column] == 'r')
			buf_printf(out, "%*s", width, cell);
		else
			buf_printf(out, "%-*s", last ? 0 : width, cell);
		while (last && out->len && out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		buf_puts(out, last ? "\n" : "  ");
		cell += strlen(cell) + 1;
	}
}

/**
 * table_free() - give the memory back
 * @t: the table
 */
void table_free(struct table *t)
{
	buf_free(&t->text);
}
