// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "said.h"
#include "text.h"

const char *const said_names[SAID_NR] = {
	[SAID_GROUP] = "group",
	[SAID_TOPOLOGY] = "topology",
	[SAID_PERIOD] = "period_ms",
};

static const char *const accepted[SAID_NR] = {
	[SAID_GROUP] = "1 to 64 printable characters without spaces",
	[SAID_TOPOLOGY] = "pinned or trusted",
	[SAID_PERIOD] = "a whole number from 100 to 60000",
};

static void said_clear(struct said *s, enum said_key key)
{
	switch (key) {
	case SAID_GROUP:
		s->group[0] = '\0';
		break;
	case SAID_TOPOLOGY:
		text_copy(s->topology, sizeof(s->topology), "none");
		break;
	default:
		s->period_ms = 0;
	}
}

/**
 * said_init() - the host has said nothing
 * @s: the statements
 */
void said_init(struct said *s)
{
	memset(s, 0, sizeof(*s));
	for (int key = 0; key < SAID_NR; key++)
		said_clear(s, (enum said_key)key);
}

static bool said_valid(struct said *s, enum said_key key, const char *text)
{
	switch (key) {
	case SAID_GROUP:
		return text_printable(text) && !strchr(text, ' ') &&
		       text_copy(s->group, sizeof(s->group), text);
	case SAID_TOPOLOGY:
		return (!strcmp(text, "pinned") || !strcmp(text, "trusted")) &&
		       text_copy(s->topology, sizeof(s->topology), text);
	default:
		return text_int(text, 100, 60000, &s->period_ms);
	}
}

/**
 * said_set() - the host says something
 * @s: the statements, which are changed
 * @key: what it is about
 * @value: its bytes, of any kind; NULL takes the statement back, and so does an empty one
 * @len: how many
 * @error: SAID_ERROR_MAX bytes, set on failure to what is accepted
 *
 * What is in force depends on nothing but what the host says now: a value that is not
 * valid says nothing. Pure function.
 *
 * Return: false when the value is not valid.
 */
bool said_set(struct said *s, enum said_key key, const char *value, size_t len, char *error)
{
	char text[SAID_VALUE_MAX];

	said_clear(s, key);
	if (!value || !len)
		return true;
	if (len < sizeof(text) && !memchr(value, '\0', len)) {
		memcpy(text, value, len);
		text[len] = '\0';
		if (said_valid(s, key, text))
			return true;
	}
	snprintf(error, SAID_ERROR_MAX, "accepted: %s", accepted[key]);
	return false;
}
