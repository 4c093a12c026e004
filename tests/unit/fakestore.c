// SPDX-License-Identifier: GPL-2.0
#include "fakestore.h"

#include <poll.h>
#include <sys/prctl.h>

struct node {
	char *path;
	char *value;
	unsigned int len;
};

struct conn {
	int fd;
	char in[sizeof(struct xsd_sockmsg) + XENSTORE_PAYLOAD_MAX];
	size_t in_len;
	char *out;
	size_t out_len;
	size_t out_cap;
};

struct watch {
	struct conn *conn;
	char *given;
	char *path;
	char *token;
};

static struct node *nodes;
static size_t nr_nodes;
static struct conn conns[FAKE_CONNS_MAX];
static struct watch watches[FAKE_WATCHES_MAX];
static size_t nr_watches;
static long dirs, reads;
static char error_prefix[256], error_name[32];
static int self = -1;

static void die(const char *what)
{
	fprintf(stderr, "fakestore: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static void reply(struct conn *c, uint32_t type, uint32_t req, const char *data, size_t len)
{
	struct xsd_sockmsg msg = { .type = type, .req_id = req, .len = (uint32_t)len };

	if (c->out_len + sizeof(msg) + len > c->out_cap) {
		c->out_cap = (c->out_cap + sizeof(msg) + len) * 2;
		c->out = realloc(c->out, c->out_cap);
		if (!c->out)
			die("memory");
	}
	memcpy(c->out + c->out_len, &msg, sizeof(msg));
	memcpy(c->out + c->out_len + sizeof(msg), data, len);
	c->out_len += sizeof(msg) + len;
}

static void event(const struct watch *w, const char *path)
{
	char data[2 * XENSTORE_PAYLOAD_MAX];
	size_t skip = strlen(w->path) - strlen(w->given);
	int n;

	/* A watch on a relative path tells relative paths. */
	if (*w->given == '/' || *w->given == '@')
		skip = 0;
	n = snprintf(data, sizeof(data), "%s%c%s", path + skip, 0, w->token);
	reply(w->conn, XS_WATCH_EVENT, 0, data, (size_t)n + 1);
}

static void fire(const char *path, bool exact)
{
	for (size_t i = 0; i < nr_watches; i++) {
		size_t n = strlen(watches[i].path);

		if (!strcmp(path, watches[i].path) ||
		    (!exact && !strncmp(path, watches[i].path, n) && path[n] == '/'))
			event(&watches[i], path);
	}
}

static struct node *find(const char *path)
{
	for (size_t i = 0; i < nr_nodes; i++) {
		if (!strcmp(nodes[i].path, path))
			return &nodes[i];
	}
	return NULL;
}

static void put(const char *path, const char *value, size_t len)
{
	struct node *n = find(path);
	char parent[XENSTORE_PAYLOAD_MAX + 64];
	char *slash;

	if (!n) {
		snprintf(parent, sizeof(parent), "%s", path);
		slash = strrchr(parent, '/');
		if (slash && slash != parent) {
			*slash = '\0';
			if (!find(parent))
				put(parent, "", 0);
		}
		nodes = realloc(nodes, (nr_nodes + 1) * sizeof(*nodes));
		if (!nodes)
			die("memory");
		n = &nodes[nr_nodes++];
		n->path = strdup(path);
		n->value = NULL;
	}
	free(n->value);
	n->value = malloc(len + 1);
	memcpy(n->value, value, len);
	n->value[len] = '\0';
	n->len = (unsigned int)len;
}

static bool below(const char *path, const char *parent)
{
	size_t n = strlen(parent);

	return !strncmp(path, parent, n) && (!path[n] || path[n] == '/');
}

static bool drop(const char *path)
{
	bool found = false;

	for (size_t i = nr_nodes; i-- > 0;) {
		if (!below(nodes[i].path, path))
			continue;
		found = true;
		fire(nodes[i].path, strcmp(nodes[i].path, path));
		free(nodes[i].path);
		free(nodes[i].value);
		nodes[i] = nodes[--nr_nodes];
	}
	return found;
}

/* What the nodes below /fake do. */
static void command(const char *path, const char *value)
{
	char target[256], text[32];
	int count;

	if (!strcmp(path, "/fake/self"))
		self = atoi(value);
	if (!strcmp(path, "/fake/fire"))
		fire(value, true);
	if (!strcmp(path, "/fake/error")) {
		*error_prefix = '\0';
		sscanf(value, "%255s %31s", error_prefix, error_name);
	}
	if (!strcmp(path, "/fake/flood") && sscanf(value, "%255s %d", target, &count) == 2) {
		while (count--) {
			snprintf(text, sizeof(text), "flood %d", count);
			put(target, text, strlen(text));
			fire(target, false);
		}
	}
}

static void absolute(const char *path, char *dst, size_t size)
{
	if (*path == '/' || *path == '@')
		snprintf(dst, size, "%s", path);
	else if (self >= 0)
		snprintf(dst, size, "/local/domain/%d/%s", self, path);
	else
		snprintf(dst, size, "/%s", path);
}

static void list(struct conn *c, uint32_t req, const char *path)
{
	static char names[1 << 20];
	size_t n = strlen(path), len = 0;

	if (strcmp(path, "/local/domain"))
		dirs++;
	for (size_t i = 0; i < nr_nodes; i++) {
		const char *name = nodes[i].path + n + 1;

		if (!below(nodes[i].path, path) || strlen(nodes[i].path) == n || strchr(name, '/'))
			continue;
		len += (size_t)sprintf(names + len, "%s", name) + 1;
	}
	if (len > XENSTORE_PAYLOAD_MAX)
		reply(c, XS_ERROR, req, "E2BIG", 6);
	else
		reply(c, XS_DIRECTORY, req, names, len);
}

static void answer(struct conn *c, const struct xsd_sockmsg *msg, char *data)
{
	char path[XENSTORE_PAYLOAD_MAX + 64], text[32];
	const char *given = data, *second = data + strlen(data) + 1;
	size_t second_len = msg->len - (size_t)(second - data);
	struct node *n;

	absolute(given, path, sizeof(path));
	if (*error_prefix && !strncmp(path, error_prefix, strlen(error_prefix))) {
		reply(c, XS_ERROR, msg->req_id, error_name, strlen(error_name) + 1);
		return;
	}
	n = find(path);
	switch (msg->type) {
	case XS_READ:
		if (!strcmp(path, "/fake/dirs"))
			sprintf(text, "%ld", dirs);
		else if (!strcmp(path, "/fake/reads"))
			sprintf(text, "%ld", reads);
		else
			sprintf(text, "%zu", nr_watches);
		if (!strncmp(path, "/fake/", 6)) {
			reply(c, XS_READ, msg->req_id, text, strlen(text));
			return;
		}
		reads++;
		if (n)
			reply(c, XS_READ, msg->req_id, n->value, n->len);
		else
			reply(c, XS_ERROR, msg->req_id, "ENOENT", 7);
		return;
	case XS_WRITE:
		/* As nodes may hold NULs, the value has no end of its own. */
		data[msg->len] = '\0';
		reply(c, XS_WRITE, msg->req_id, "OK", 3);
		if (!strncmp(path, "/fake/", 6)) {
			command(path, second);
			return;
		}
		put(path, second, second_len);
		fire(path, false);
		return;
	case XS_RM:
		if (!drop(path))
			reply(c, XS_ERROR, msg->req_id, "ENOENT", 7);
		else
			reply(c, XS_RM, msg->req_id, "OK", 3);
		return;
	case XS_DIRECTORY:
		if (n)
			list(c, msg->req_id, path);
		else
			reply(c, XS_ERROR, msg->req_id, "ENOENT", 7);
		return;
	case XS_WATCH:
		if (nr_watches == FAKE_WATCHES_MAX) {
			reply(c, XS_ERROR, msg->req_id, "E2BIG", 6);
			return;
		}
		watches[nr_watches++] = (struct watch){ c, strdup(given), strdup(path),
							strdup(second) };
		reply(c, XS_WATCH, msg->req_id, "OK", 3);
		event(&watches[nr_watches - 1], path);
		return;
	case XS_UNWATCH:
		for (size_t i = 0; i < nr_watches; i++) {
			struct watch *w = &watches[i];

			if (w->conn != c || strcmp(w->given, given) || strcmp(w->token, second))
				continue;
			free(w->given);
			free(w->path);
			free(w->token);
			*w = watches[--nr_watches];
			reply(c, XS_UNWATCH, msg->req_id, "OK", 3);
			return;
		}
		reply(c, XS_ERROR, msg->req_id, "ENOENT", 7);
		return;
	default:
		reply(c, XS_ERROR, msg->req_id, "ENOSYS", 7);
	}
}

static void hang_up(struct conn *c)
{
	for (size_t i = nr_watches; i-- > 0;) {
		if (watches[i].conn != c)
			continue;
		free(watches[i].given);
		free(watches[i].path);
		free(watches[i].token);
		watches[i] = watches[--nr_watches];
	}
	close(c->fd);
	c->fd = -1;
	c->in_len = 0;
	c->out_len = 0;
}

static void serve(struct conn *c)
{
	ssize_t n = read(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len);
	struct xsd_sockmsg msg;

	if (n <= 0) {
		hang_up(c);
		return;
	}
	c->in_len += (size_t)n;
	while (c->in_len >= sizeof(msg)) {
		char data[XENSTORE_PAYLOAD_MAX + 1];

		memcpy(&msg, c->in, sizeof(msg));
		if (msg.len > XENSTORE_PAYLOAD_MAX) {
			hang_up(c);
			return;
		}
		if (c->in_len < sizeof(msg) + msg.len)
			return;
		memcpy(data, c->in + sizeof(msg), msg.len);
		data[msg.len] = '\0';
		c->in_len -= sizeof(msg) + msg.len;
		memmove(c->in, c->in + sizeof(msg) + msg.len, c->in_len);
		answer(c, &msg, data);
	}
}

static void flush(struct conn *c)
{
	ssize_t n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n <= 0)
		return;
	c->out_len -= (size_t)n;
	memmove(c->out, c->out + n, c->out_len);
}

static void run(int listener)
{
	struct pollfd fds[FAKE_CONNS_MAX + 1];

	for (int i = 0; i < FAKE_CONNS_MAX; i++)
		conns[i].fd = -1;
	for (;;) {
		for (int i = 0; i < FAKE_CONNS_MAX; i++)
			fds[i] = (struct pollfd){
				.fd = conns[i].fd,
				.events = (short)(POLLIN | (conns[i].out_len ? POLLOUT : 0)),
			};
		fds[FAKE_CONNS_MAX] = (struct pollfd){ .fd = listener, .events = POLLIN };
		if (poll(fds, FAKE_CONNS_MAX + 1, -1) < 0)
			continue;
		for (int i = 0; i < FAKE_CONNS_MAX; i++) {
			if (fds[i].revents & POLLOUT)
				flush(&conns[i]);
			if (fds[i].revents & (POLLIN | POLLHUP | POLLERR))
				serve(&conns[i]);
		}
		for (int i = 0; (fds[FAKE_CONNS_MAX].revents & POLLIN) && i < FAKE_CONNS_MAX; i++) {
			if (conns[i].fd >= 0)
				continue;
			conns[i].fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			break;
		}
	}
}

static void fake_fork(struct fakestore *f)
{
	int listener;

	unlink(f->path);
	listener = test_listen(f->path);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (!f->pid) {
		char text[32], domid[64];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		self = f->self;
		snprintf(text, sizeof(text), "%d", self);
		absolute("domid", domid, sizeof(domid));
		if (self >= 0)
			put(domid, text, strlen(text));
		run(listener);
	}
	close(listener);
	f->xs = xs_open(0);
	assert_non_null(f->xs);
}

/* Starts one, with that for /fake/self; libxenstore will use it from now on. */
void fake_start(struct fakestore *f, const char *dir, int self_domid)
{
	f->self = self_domid;
	snprintf(f->path, sizeof(f->path), "%s/xenstored", dir);
	setenv("XENSTORED_PATH", f->path, 1);
	fake_fork(f);
}

/* Ends it as a crash would: its nodes and watches are gone. */
void fake_kill(struct fakestore *f)
{
	xs_close(f->xs);
	f->xs = NULL;
	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	f->pid = 0;
	unlink(f->path);
}

void fake_restart(struct fakestore *f)
{
	fake_fork(f);
}

void fake_stop(struct fakestore *f)
{
	if (f->pid)
		fake_kill(f);
	unsetenv("XENSTORED_PATH");
}

void fake_write_n(struct fakestore *f, const char *path, const char *value, size_t len)
{
	if (!xs_write(f->xs, XBT_NULL, path, value, (unsigned int)len))
		fail_msg("%s: %s", path, strerror(errno));
}

void fake_write(struct fakestore *f, const char *path, const char *value)
{
	fake_write_n(f, path, value, strlen(value));
}

void fake_rm(struct fakestore *f, const char *path)
{
	xs_rm(f->xs, XBT_NULL, path);
}

/* The value, to be freed; NULL when there is no such node. */
char *fake_read(struct fakestore *f, const char *path)
{
	unsigned int len;

	return xs_read(f->xs, XBT_NULL, path, &len);
}

long fake_count(struct fakestore *f, const char *path)
{
	char *value = fake_read(f, path);
	long n = value ? atol(value) : -1;

	free(value);
	return n;
}
