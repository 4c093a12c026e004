/* SPDX-License-Identifier: GPL-2.0 */
/* Starting a thread. */
#ifndef TANDEM_THREAD_H
#define TANDEM_THREAD_H

#include <pthread.h>
#include <stddef.h>

int thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);

#endif
