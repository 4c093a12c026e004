/* SPDX-License-Identifier: GPL-2.0 */
/* What the option parsing of the programs has in common. */
#ifndef TANDEM_OPTS_H
#define TANDEM_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf.h"

/* Exit statuses. */
#define EXIT_OK		0
#define EXIT_FAILED	1
#define EXIT_USAGE	2

bool opt_int(const char *option, const char *value, int64_t min, int64_t max, int64_t *result);
bool opt_text(const char *option, const char *value, char *dst, size_t size);
int opt_print(const char *text);
int opt_version(const char *program);
void opts_std_files(void);
int opts_conf_read(const struct conf_table *table, const char *path, bool named, void *dst);

#endif
