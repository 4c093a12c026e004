// SPDX-License-Identifier: GPL-2.0
#include "test.h"

#include "line.h"

struct got {
	size_t count;
	size_t stop_at;
	char text[3 * LINE_BYTES_MAX];
	size_t len;
};

static bool collect(void *arg, char *line, size_t len)
{
	struct got *g = arg;

	assert_int_equal(line[len], '\0');
	assert_true(len > 0 && len < LINE_BYTES_MAX);
	memcpy(g->text + g->len, line, len);
	g->len += len;
	g->text[g->len++] = '|';
	g->text[g->len] = '\0';
	g->count++;
	return g->count != g->stop_at;
}

static void every_split(void **state)
{
	static const char text[] = "alpha\n\n\nbeta\ngamma rest\n";
	size_t n = sizeof(text) - 1;
	struct line_splitter *ls = calloc(1, sizeof(*ls));
	struct got *g = calloc(1, sizeof(*g));

	(void)state;
	assert_true(ls && g);
	for (size_t i = 0; i <= n; i++) {
		for (size_t j = i; j <= n; j++) {
			memset(g, 0, sizeof(*g));
			assert_true(line_feed(ls, text, i, collect, g));
			assert_true(line_feed(ls, text + i, j - i, collect, g));
			assert_true(line_feed(ls, text + j, n - j, collect, g));
			assert_string_equal(g->text, "alpha|beta|gamma rest|");
			assert_int_equal(ls->len, 0);
		}
	}
	assert_int_equal(ls->oversized, 0);
	free(g);
	free(ls);
}

/* A line of @len bytes in pieces of @piece, then a good one. */
static void long_line(size_t len, size_t piece, bool fits)
{
	struct line_splitter *ls = calloc(1, sizeof(*ls));
	struct got *g = calloc(1, sizeof(*g));
	char *text = malloc(len + 1);

	assert_true(ls && g && text);
	memset(text, 'x', len);
	text[len] = '\n';
	for (size_t i = 0; i <= len; i += piece)
		assert_true(line_feed(ls, text + i, i + piece > len + 1 ? len + 1 - i : piece,
				      collect, g));
	assert_int_equal(g->count, fits);
	assert_int_equal(ls->oversized, !fits);
	assert_true(line_feed(ls, "ok\n", 3, collect, g));
	assert_int_equal(g->count, fits + 1);
	assert_string_equal(g->text + g->len - 3, "ok|");
	free(text);
	free(g);
	free(ls);
}

static void oversize(void **state)
{
	static const size_t pieces[] = { 1, 7, 4095, 4096, 4097, 100000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		long_line(LINE_BYTES_MAX - 2, pieces[i], true);
		long_line(LINE_BYTES_MAX - 1, pieces[i], true);
		long_line(LINE_BYTES_MAX, pieces[i], false);
		long_line(LINE_BYTES_MAX + 1, pieces[i], false);
		long_line(50000, pieces[i], false);
	}
}

static void nul_and_reset(void **state)
{
	struct line_splitter *ls = calloc(1, sizeof(*ls));
	struct got *g = calloc(1, sizeof(*g));

	(void)state;
	assert_true(ls && g);
	assert_true(line_feed(ls, "a\0b\n", 4, collect, g));
	assert_memory_equal(g->text, "a\0b|", 4);
	assert_true(line_feed(ls, "half", 4, collect, g));
	line_reset(ls);
	memset(g, 0, sizeof(*g));
	assert_true(line_feed(ls, "whole\n", 6, collect, g));
	assert_string_equal(g->text, "whole|");
	free(g);
	free(ls);
}

static void owner_stops(void **state)
{
	struct line_splitter *ls = calloc(1, sizeof(*ls));
	struct got *g = calloc(1, sizeof(*g));

	(void)state;
	assert_true(ls && g);
	g->stop_at = 2;
	assert_false(line_feed(ls, "a\nb\nc\n", 6, collect, g));
	assert_int_equal(g->count, 2);
	free(g);
	free(ls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_split), cmocka_unit_test(oversize),
		cmocka_unit_test(nul_and_reset), cmocka_unit_test(owner_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
