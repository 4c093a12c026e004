// SPDX-License-Identifier: GPL-2.0
#include <signal.h>

#include "thread.h"

/**
 * thread_start() - start a thread that gets no signals
 * @thread: set on success
 * @stack: size of its stack
 * @fn: what it runs
 * @arg: passed to @fn
 *
 * Signals are for the main thread's event loop.
 *
 * Return: 0, or an errno.
 */
int thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack);
	r = pthread_create(thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}
