/* SPDX-License-Identifier: GPL-2.0 */
/* What the host says to a guest, by whatever transport it comes (docs/protocol.md). */
#ifndef TANDEM_SAID_H
#define TANDEM_SAID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAID_GROUP_MAX 65
#define SAID_ERROR_MAX 128

enum said_key {
	SAID_GROUP,
	SAID_TOPOLOGY,
	SAID_PERIOD,
	SAID_NR
};

/* Longest value that is looked at; anything longer is no valid one. */
#define SAID_VALUE_MAX 80

/**
 * struct said - the host's statements that are in force
 * @group: the group that the guest is in, or ""
 * @topology: "none", "pinned" or "trusted"
 * @period_ms: sample this often; 0 when the host leaves it to the guest
 */
struct said {
	char group[SAID_GROUP_MAX];
	char topology[8];
	int64_t period_ms;
};

extern const char *const said_names[SAID_NR];

void said_init(struct said *s);
bool said_set(struct said *s, enum said_key key, const char *value, size_t len, char *error);

#endif
