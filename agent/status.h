/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TANDEM_STATUS_H
#define TANDEM_STATUS_H

#include "report.h"
#include "text.h"

void status_text(const struct report *r, struct buf *out);

#endif
