// SPDX-License-Identifier: GPL-2.0
/* What the host says: whatever it is, what is in force is within bounds, and only by key. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "said.h"
#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct said *s)
{
	if (!memchr(s->group, '\0', sizeof(s->group)) || !text_printable(s->group) ||
	    strchr(s->group, ' '))
		abort();
	if (strcmp(s->topology, "none") && strcmp(s->topology, "pinned") &&
	    strcmp(s->topology, "trusted"))
		abort();
	if (s->period_ms && (s->period_ms < 100 || s->period_ms > 60000))
		abort();
}

/* Messages of the form: a byte for the key, a byte for the length, the value. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[SAID_ERROR_MAX];
	struct said s, fresh, before;

	said_init(&s);
	said_init(&fresh);
	while (size >= 2) {
		enum said_key key = (enum said_key)(data[0] % SAID_NR);
		size_t len = data[1] < size - 2 ? data[1] : size - 2;

		before = s;
		*error = '\0';
		if (!said_set(&s, key, (const char *)data + 2, len, error) && !*error)
			abort();
		check(&s);
		if ((key != SAID_GROUP && strcmp(s.group, before.group)) ||
		    (key != SAID_TOPOLOGY && strcmp(s.topology, before.topology)) ||
		    (key != SAID_PERIOD && s.period_ms != before.period_ms))
			abort();
		data += 2 + len;
		size -= 2 + len;
	}
	for (int key = 0; key < SAID_NR; key++)
		said_set(&s, (enum said_key)key, NULL, 0, error);
	check(&s);
	if (*s.group || strcmp(s.topology, fresh.topology) || s.period_ms)
		abort();
	return 0;
}
