// SPDX-License-Identifier: GPL-2.0
/* Whatever is accepted as a report comes out of encoding and decoding unchanged. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"
#include "line.h"
#include "report.h"
#include "status.h"
#include "table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(const struct report *r)
{
	struct buf out = BUF_INIT(1 << 20);
	struct guest_view g = { .connected = true, .reported = true };
	struct table t;

	g.report = *r;
	g.hints_per_s_milli = guest_hints_rate(r, r, 0);
	guests_table_begin(&t);
	guests_table_row(&t, &g, 1);
	table_render(&t, &out);
	status_text(r, &out);
	for (size_t i = 0; i < out.len; i++) {
		if (out.data[i] != '\n' && (out.data[i] < 0x20 || out.data[i] > 0x7e))
			abort();
	}
	table_free(&t);
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct json_tokener *tok;
	struct buf first = BUF_INIT(LINE_BYTES_MAX), second = BUF_INIT(LINE_BYTES_MAX);
	char error[REPORT_ERROR_MAX];
	struct report r, back;

	if (!tok)
		tok = json_reader_new(JSON_DEPTH_MAX);
	if (!report_decode(tok, (const char *)data, size, &r, error))
		return 0;
	report_encode(&r, &first);
	if (first.failed || !report_decode(tok, first.data, first.len, &back, error))
		abort();
	report_encode(&back, &second);
	if (second.failed || strcmp(first.data, second.data))
		abort();
	show(&r);
	buf_free(&first);
	buf_free(&second);
	return 0;
}
