// SPDX-License-Identifier: GPL-2.0
#include "test.h"

#include "said.h"

static struct said said;

static bool set(enum said_key key, const char *value)
{
	char error[SAID_ERROR_MAX] = "";
	bool ok = said_set(&said, key, value, value ? strlen(value) : 0, error);

	assert_int_equal(ok, !*error);
	return ok;
}

static void says_and_takes_back(void **state)
{
	(void)state;
	said_init(&said);
	assert_string_equal(said.topology, "none");
	assert_true(set(SAID_GROUP, "web"));
	assert_true(set(SAID_TOPOLOGY, "pinned"));
	assert_true(set(SAID_PERIOD, "250"));
	assert_string_equal(said.group, "web");
	assert_string_equal(said.topology, "pinned");
	assert_int_equal(said.period_ms, 250);
	assert_true(set(SAID_TOPOLOGY, "trusted"));
	assert_string_equal(said.topology, "trusted");
	assert_true(set(SAID_GROUP, NULL));
	assert_true(set(SAID_TOPOLOGY, NULL));
	assert_true(set(SAID_PERIOD, ""));
	assert_string_equal(said.group, "");
	assert_string_equal(said.topology, "none");
	assert_int_equal(said.period_ms, 0);
}

/* What is not valid says nothing, and nothing of what was said before is left. */
static void rejects(void **state)
{
	static const struct {
		enum said_key key;
		const char *value;
	} bad[] = {
		{ SAID_GROUP, "a b" }, { SAID_GROUP, "a\n" }, { SAID_GROUP, "\x1b[31m" },
		{ SAID_GROUP, "\xc3\xa4" }, { SAID_GROUP, " " },
		{ SAID_GROUP, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" },
		{ SAID_TOPOLOGY, "none" }, { SAID_TOPOLOGY, "pinned " }, { SAID_TOPOLOGY, "Pinned" },
		{ SAID_TOPOLOGY, "pin" }, { SAID_TOPOLOGY, "trusted\n" },
		{ SAID_PERIOD, "99" }, { SAID_PERIOD, "60001" }, { SAID_PERIOD, "1e3" },
		{ SAID_PERIOD, "-100" }, { SAID_PERIOD, " 500" }, { SAID_PERIOD, "500ms" },
		{ SAID_PERIOD, "99999999999999999999" }, { SAID_PERIOD, "0x100" },
	};
	char error[SAID_ERROR_MAX];
	char big[5000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(set(SAID_GROUP, "web"));
		assert_true(set(SAID_TOPOLOGY, "pinned"));
		assert_true(set(SAID_PERIOD, "250"));
		if (set(bad[i].key, bad[i].value))
			fail_msg("accepted: %s", bad[i].value);
		assert_string_equal(said.group, bad[i].key == SAID_GROUP ? "" : "web");
		assert_string_equal(said.topology, bad[i].key == SAID_TOPOLOGY ? "none" : "pinned");
		assert_int_equal(said.period_ms, bad[i].key == SAID_PERIOD ? 0 : 250);
	}
	memset(big, 'a', sizeof(big));
	assert_true(said_set(&said, SAID_GROUP, big, 64, error));
	assert_int_equal(strlen(said.group), 64);
	assert_false(said_set(&said, SAID_GROUP, big, 65, error));
	assert_false(said_set(&said, SAID_GROUP, big, sizeof(big), error));
	assert_false(said_set(&said, SAID_GROUP, "a\0b", 3, error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_and_takes_back), cmocka_unit_test(rejects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
