// SPDX-License-Identifier: GPL-2.0
#include "test.h"

#include "agent.h"
#include "conf.h"
#include "groupd.h"

static enum conf_result parse(const char *text, size_t len, struct agent_conf *conf, char *error)
{
	agent_conf_init(conf);
	*error = '\0';
	return conf_parse(&agent_conf_table, "F", text, len, conf, error);
}

static void good(void **state)
{
	static const char text[] =
		"# comment\n\n[tandemd]\nport = my.port ; inline\nperiod_ms=500\r\n"
		"heartbeat_ms = 30000\nthreshold_permille = 0\nsocket = none\n";
	char error[CONF_ERROR_MAX];
	struct agent_conf c;

	(void)state;
	assert_int_equal(parse(text, strlen(text), &c, error), CONF_OK);
	assert_string_equal(c.port, "my.port");
	assert_int_equal(c.period_ms, 500);
	assert_int_equal(c.threshold_permille, 0);
	assert_string_equal(c.socket, "none");
	assert_int_equal(parse("", 0, &c, error), CONF_OK);
	assert_int_equal(c.period_ms, 1000);
}

static void bad(void **state)
{
	static const struct {
		const char *text;
		const char *error;
	} bad[] = {
		{ "[tandem]\n", "F:1: unknown section [tandem], accepted: [tandemd]" },
		{ "\n[x]\nperiod_ms=1\n", "F:2: unknown section [x]" },
		{ "period_ms = 500\n", "F:1: key 'period_ms' stands before any section" },
		{ "[tandemd]\nperiod = 5\n",
		  "F:2: unknown key 'period' in [tandemd], accepted: transport, port" },
		{ "[tandemd]\nperiod_ms = 99\n",
		  "F:2: period_ms = '99' is not valid, accepted: a whole number from 100 to 60000" },
		{ "[tandemd]\nperiod_ms = 60001\n", "F:2: " },
		{ "[tandemd]\nperiod_ms = 1e3\n", "F:2: " },
		{ "[tandemd]\nperiod_ms = 500ms\n", "F:2: " },
		{ "[tandemd]\nperiod_ms = \n", "F:2: " },
		{ "[tandemd]\nperiod_ms = 99999999999999999999\n", "F:2: " },
		{ "[tandemd]\nperiod_ms = -500\n", "F:2: " },
		{ "[tandemd]\nperiod_ms = 500\nperiod_ms = 600\n",
		  "F:3: period_ms was already set in line 2" },
		{ "[tandemd]\nperiod_ms = 500\n 600\n", "F:3: the line is indented" },
		{ "[tandemd]\n\tperiod_ms = 500\n", "F:2: the line is indented" },
		{ "[tandemd]\nport = a/b\n", "F:2: port = 'a/b' is not valid" },
		{ "[tandemd]\nport = \n", "F:2: port is empty" },
		{ "[tandemd]\nsocket = run/x\n", "F:2: socket = 'run/x' is not valid" },
		{ "[tandemd\n", "F:1: " },
		{ "[tandemd]\nnonsense\n", "F:2: not understood" },
		{ "[tandemd]\n\x01\n", "F:2: byte 0x01 in column 1 is not text" },
		{ "[tandemd]\nport = \x1b[31m\n", "F:2: byte 0x1b" },
		{ "\x7f" "ELF\x02\x01\x01", "F:1: byte 0x7f" },
	};
	char error[CONF_ERROR_MAX];
	struct agent_conf c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse(bad[i].text, strlen(bad[i].text), &c, error) != CONF_INVALID)
			fail_msg("accepted: %s", bad[i].text);
		if (strncmp(error, bad[i].error, strlen(bad[i].error)))
			fail_msg("%s: '%s' is not '%s'", bad[i].text, error, bad[i].error);
		assert_null(strchr(error, '\n'));
	}
}

static void bad_bytes(void **state)
{
	char error[CONF_ERROR_MAX];
	struct agent_conf c;
	char line[CONF_LINE_MAX + 64];

	(void)state;
	assert_int_equal(parse("[tandemd]\n\0\n", 12, &c, error), CONF_INVALID);
	assert_non_null(strstr(error, "F:2: byte 0x00"));
	assert_int_equal(parse("[tandemd]\nport = a\0b\n", 21, &c, error), CONF_INVALID);

	memset(line, '#', sizeof(line));
	assert_int_equal(parse(line, CONF_LINE_MAX, &c, error), CONF_OK);
	assert_int_equal(parse(line, CONF_LINE_MAX + 1, &c, error), CONF_INVALID);
	assert_non_null(strstr(error, "F:1: line of 181 bytes is too long"));

	/* A value that is too long for its field. */
	snprintf(line, sizeof(line), "[tandemd]\nport = %0120d\n", 0);
	assert_int_equal(parse(line, strlen(line), &c, error), CONF_INVALID);
	assert_non_null(strstr(error, "F:2: port is too long, accepted: 1 to 107 bytes"));
}

/* Every prefix and every flipped byte of a good file: no crash, an error has its line. */
static void mutated(void **state)
{
	static const char text[] = "# c\n[tandemd]\nport = my.port\nperiod_ms = 500\n";
	char error[CONF_ERROR_MAX];
	char copy[sizeof(text)];
	struct agent_conf c;

	(void)state;
	for (size_t n = 0; n < sizeof(text); n++) {
		if (parse(text, n, &c, error) != CONF_OK)
			assert_memory_equal(error, "F:", 2);
	}
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		for (int bit = 0; bit < 8; bit++) {
			memcpy(copy, text, sizeof(text));
			copy[i] = (char)(copy[i] ^ (1 << bit));
			if (parse(copy, sizeof(text) - 1, &c, error) != CONF_OK)
				assert_memory_equal(error, "F:", 2);
			assert_in_range(c.period_ms, 100, 60000);
		}
	}
}

static void files(void **state)
{
	char path[256], error[CONF_ERROR_MAX];
	char *dir = test_dir();
	struct groupd_conf c;
	char *big;

	(void)state;
	groupd_conf_init(&c);
	snprintf(path, sizeof(path), "%s/none", dir);
	assert_int_equal(conf_read(&groupd_conf_table, path, &c, error), CONF_MISSING);
	assert_int_equal(conf_read(&groupd_conf_table, dir, &c, error), CONF_UNREADABLE);
	assert_non_null(strstr(error, "not a regular file"));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(conf_read(&groupd_conf_table, path, &c, error), CONF_UNREADABLE);
	assert_int_equal(conf_read(&groupd_conf_table, "/dev/zero", &c, error), CONF_UNREADABLE);

	big = calloc(1, CONF_FILE_MAX + 1);
	assert_non_null(big);
	memset(big, '\n', CONF_FILE_MAX + 1);
	snprintf(path, sizeof(path), "%s/big", dir);
	test_write_n(dir, "big", big, CONF_FILE_MAX + 1);
	assert_int_equal(conf_read(&groupd_conf_table, path, &c, error), CONF_INVALID);
	test_write_n(dir, "big", big, CONF_FILE_MAX);
	assert_int_equal(conf_read(&groupd_conf_table, path, &c, error), CONF_OK);
	free(big);

	test_write(dir, "big", "[groupd]\nsockets = /a/*/b.sock\n");
	assert_int_equal(conf_read(&groupd_conf_table, path, &c, error), CONF_INVALID);
	test_write(dir, "big", "[groupd]\nsockets = /a/vm-*.sock\ninterval_s=1\n");
	assert_int_equal(conf_read(&groupd_conf_table, path, &c, error), CONF_OK);
	assert_string_equal(c.sockets, "/a/vm-*.sock");
	assert_int_equal(c.interval_s, 1);
	test_write(dir, "big", "");
	assert_int_equal(conf_read(&groupd_conf_table, path, &c, error), CONF_OK);
	test_rm(dir);
}

static void whole(void **state)
{
	struct agent_conf c;

	(void)state;
	agent_conf_init(&c);
	assert_null(agent_conf_check(&c));
	c.period_ms = 20000;
	assert_non_null(agent_conf_check(&c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good), cmocka_unit_test(bad), cmocka_unit_test(bad_bytes),
		cmocka_unit_test(mutated), cmocka_unit_test(files), cmocka_unit_test(whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
