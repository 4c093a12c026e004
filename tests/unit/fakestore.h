/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small xenstored for tests, in a process of its own that can be stopped and killed. It
 * speaks the wire protocol of xen/io/xs_wire.h over its socket, to libxenstore. The test is
 * dom0 and writes nodes by the functions here; some nodes make it do things:
 *
 * /fake/self	 relative paths begin at the home of this domain, as in a domU; with -1 at "/",
 *		 as for a dom0 that uses the socket
 * /fake/error	 "PREFIX ERROR": requests about paths that begin so get that error
 * /fake/fire	 a special watch fires, such as @introduceDomain
 * /fake/flood	 "PATH COUNT": the node is written so often, with another value each time
 * /fake/dirs	 (read) how often anything but /local/domain was listed
 * /fake/watches (read) how many watches there are
 * /fake/reads	 (read) how many nodes were read
 */
#ifndef TANDEM_FAKESTORE_H
#define TANDEM_FAKESTORE_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <xen/io/xs_wire.h>
#include <xenstore.h>

#include "test.h"

#define FAKE_WATCHES_MAX 4096
#define FAKE_CONNS_MAX 16

struct fakestore {
	char path[128];
	pid_t pid;
	int self;
	struct xs_handle *xs;
};

void fake_start(struct fakestore *f, const char *dir, int self);
void fake_stop(struct fakestore *f);
void fake_kill(struct fakestore *f);
void fake_restart(struct fakestore *f);
void fake_write_n(struct fakestore *f, const char *path, const char *value, size_t len);
void fake_write(struct fakestore *f, const char *path, const char *value);
void fake_rm(struct fakestore *f, const char *path);
char *fake_read(struct fakestore *f, const char *path);
long fake_count(struct fakestore *f, const char *path);

#endif
