// SPDX-License-Identifier: GPL-2.0
/* What is accepted is in range; what is not has one line that says where. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "conf.h"
#include "groupd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const char *error)
{
	if (strncmp(error, "F:", 2))
		abort();
	for (; *error; error++) {
		if (*error < 0x20 || *error > 0x7e)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[CONF_ERROR_MAX];
	struct groupd_conf g;
	struct agent_conf a;

	agent_conf_init(&a);
	if (conf_parse(&agent_conf_table, "F", (const char *)data, size, &a, error) != CONF_OK)
		check_error(error);
	if (a.period_ms < 100 || a.period_ms > 60000 || a.threshold_permille < 0 ||
	    a.threshold_permille > 1000 || port_check_name(a.port) ||
	    agent_check_transport(a.transport))
		abort();
	groupd_conf_init(&g);
	if (conf_parse(&groupd_conf_table, "F", (const char *)data, size, &g, error) != CONF_OK)
		check_error(error);
	if (g.max_guests < 1 || g.max_guests > 4096 || *g.sockets != '/')
		abort();
	return 0;
}
