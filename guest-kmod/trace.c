// SPDX-License-Identifier: GPL-2.0
/*
 * The one place that instantiates the trace events of trace.h.
 */
#include <linux/string.h>

#define CREATE_TRACE_POINTS
#include "trace.h"
