/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Strict parsing of what is written to sysfs or given as module parameter.
 */
#ifndef TANDEM_PARSE_H
#define TANDEM_PARSE_H

#include <linux/types.h>

int tandem_parse_word(const char *file, const char *buf, size_t len,
		      const char * const words[], int nr);
int tandem_parse_u32(const char *file, const char *buf, size_t len,
		     u32 min, u32 max, u32 *value);

#endif /* TANDEM_PARSE_H */
