/* SPDX-License-Identifier: GPL-2.0 */
/* Aligned columns for people. */
#ifndef TANDEM_TABLE_H
#define TANDEM_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

#define TABLE_COLUMNS_MAX 16
#define TABLE_CELL_MAX 80

/**
 * struct table - a table that is being filled, row by row
 * @columns: how many columns
 * @align: a letter a column: 'l' or 'r'
 * @widths: widest cell of each column
 * @cells: cells filled so far
 * @text: their text, a NUL behind each
 */
struct table {
	size_t columns;
	const char *align;
	size_t widths[TABLE_COLUMNS_MAX];
	size_t cells;
	struct buf text;
};

void table_init(struct table *t, const char *align);
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_render(const struct table *t, struct buf *out);
void table_free(struct table *t);

#endif
