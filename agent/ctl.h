/* SPDX-License-Identifier: GPL-2.0 */
/* The control socket: a thread that answers questions, and the one who asks. */
#ifndef TANDEM_CTL_H
#define TANDEM_CTL_H

#include <stdbool.h>

#include "text.h"

#define CTL_CLIENTS_MAX 8
#define CTL_ANSWER_MAX (8 << 20)
#define CTL_IDLE_MS 10000
#define CTL_PATH_MAX 108

struct ctl;

/**
 * typedef ctl_answer_fn - answer a request
 * @arg: the owner's argument
 * @get: what the client wants
 * @out: append one JSON object without newline
 *
 * Context: the control thread, which is registered with RCU. Must not block.
 *
 * Return: false when there is no such thing as @get.
 */
typedef bool ctl_answer_fn(void *arg, const char *get, struct buf *out);

struct ctl *ctl_start(const char *path, int idle_ms, ctl_answer_fn *answer, void *arg);
void ctl_stop(struct ctl *ctl);
const char *ctl_check_path(const char *value);
bool ctl_ask(const char *path, const char *get, int timeout_ms, struct buf *answer, char *error,
	     size_t error_size);

#endif
