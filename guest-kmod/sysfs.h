/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /sys/kernel/tandem: see docs/ABI/sysfs-kernel-tandem.
 */
#ifndef TANDEM_SYSFS_H
#define TANDEM_SYSFS_H

#include <linux/types.h>

int tandem_sysfs_add(void);
void tandem_sysfs_remove(void);
size_t tandem_features_words(char *buf, size_t size);

#endif /* TANDEM_SYSFS_H */
