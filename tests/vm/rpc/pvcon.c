// SPDX-License-Identifier: GPL-2.0
/*
 * pvcon: the back end of a Xen domain's console, as the rig's channel.
 * Usage: pvcon DOMID PORT SOCKET LOG [ready]
 *
 * Serves rpc clients at SOCKET, one after the other, with the frames that rpcd
 * writes to the domain's console; all else that the domain says goes to LOG.
 * Takes the place of xenconsoled, for a reason: once it has the ring and the
 * event channel it needs nothing of xenstore, so tests may stop xenstored.
 * Ends with the domain, whose last page it otherwise would hold.
 *
 * Requests wait until rpcd says hello, because a console that nobody has made
 * raw yet would echo them; "ready": a restored domain, whose rpcd already runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rpc.h"

/* these headers take two types from Xen's own, which are not there */
#define domid_t		uint16_t
#define grant_ref_t	uint32_t
#include <xen/evtchn.h>
#include <xen/gntdev.h>

/* xen/privcmd.h needs more of them; include/uapi/xen/privcmd.h: */
struct privcmd_hypercall {
	uint64_t op;
	uint64_t arg[5];
};

#define IOCTL_PRIVCMD_HYPERCALL	_IOC(_IOC_NONE, 'P', 0, sizeof(struct privcmd_hypercall))

/* xen/include/public: grant_table.h, io/console.h, xen.h, event_channel.h */
#define GNTTAB_RESERVED_CONSOLE	0
#define RING_IN			1024u
#define RING_OUT		2048u
#define HYPERVISOR_EVTCHN_OP	32
#define EVTCHNOP_STATUS		5
#define EVTCHNSTAT_INTERDOMAIN	2
#define DOMID_SELF		0x7ff0

struct ring {
	char in[RING_IN];
	char out[RING_OUT];
	uint32_t in_cons, in_prod;
	uint32_t out_cons, out_prod;
};

struct evtchn_status {
	uint16_t dom;
	uint16_t pad;
	uint32_t port;
	uint32_t status;
	uint32_t vcpu;
	uint32_t more[2];
};

static volatile struct ring *ring;
static int evtchn, privcmd, console;
static uint32_t local_port;
static int client = -1;
static bool ready;

/* one frame from the domain, while it comes */
static unsigned char frame[sizeof(struct rpc_frame) + RPC_MAX];
static size_t frame_len;

static void die(const char *what)
{
	fprintf(stderr, "pvcon: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void map_ring(uint16_t domid)
{
	struct ioctl_gntdev_map_grant_ref map = {
		.count = 1,
		.refs[0] = { .domid = domid, .ref = GNTTAB_RESERVED_CONSOLE },
	};
	int fd = open("/dev/xen/gntdev", O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, IOCTL_GNTDEV_MAP_GRANT_REF, &map))
		die("/dev/xen/gntdev");
	ring = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)map.index);
	if (ring == MAP_FAILED)
		die("mapping the console's ring");
}

static void bind_port(uint16_t domid, uint32_t port)
{
	struct ioctl_evtchn_bind_interdomain bind = { domid, port };

	evtchn = open("/dev/xen/evtchn", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	privcmd = open("/dev/xen/privcmd", O_RDWR | O_CLOEXEC);
	if (evtchn < 0 || privcmd < 0)
		die("/dev/xen");
	local_port = (uint32_t)ioctl(evtchn, IOCTL_EVTCHN_BIND_INTERDOMAIN, &bind);
	if ((int)local_port < 0)
		die("binding the console's event channel");
}

static void notify(void)
{
	struct ioctl_evtchn_notify n = { local_port };

	ioctl(evtchn, IOCTL_EVTCHN_NOTIFY, &n);
}

/* Nothing tells when the other end closes, but the state of our port. */
static bool domain_lives(void)
{
	/* a page of its own: the hypervisor reads it by our address */
	static struct evtchn_status st __attribute__((aligned(4096)));
	struct privcmd_hypercall call = {
		.op = HYPERVISOR_EVTCHN_OP,
		.arg = { EVTCHNOP_STATUS, (uintptr_t)&st },
	};

	memset(&st, 0, sizeof(st));
	st.dom = DOMID_SELF;
	st.port = local_port;
	mlock(&st, sizeof(st));
	if (ioctl(privcmd, IOCTL_PRIVCMD_HYPERCALL, &call))
		return false;
	return st.status == EVTCHNSTAT_INTERDOMAIN;
}

static void write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n <= 0)
			return;
		p += n;
		len -= (size_t)n;
	}
}

static void frame_to_log(void)
{
	write_all(console, frame, frame_len);
	frame_len = 0;
}

static void take_byte(unsigned char c)
{
	const uint32_t magic = RPC_MAGIC;
	struct rpc_frame f;

	if (frame_len < sizeof(magic) && c != ((const unsigned char *)&magic)[frame_len])
		frame_to_log();
	if (!frame_len && c != *(const unsigned char *)&magic) {
		write_all(console, &c, 1);
		return;
	}
	frame[frame_len++] = c;
	if (frame_len < sizeof(f))
		return;
	memcpy(&f, frame, sizeof(f));
	if (f.len > RPC_MAX) {
		frame_to_log();
		return;
	}
	if (frame_len < sizeof(f) + f.len)
		return;
	if (f.type == RPC_HELLO)
		ready = true;
	else if (client >= 0)
		write_all(client, frame, frame_len);
	frame_len = 0;
}

static void from_domain(void)
{
	uint32_t cons = ring->out_cons, prod = ring->out_prod;

	__sync_synchronize();
	if (cons == prod || prod - cons > RING_OUT)
		return;
	for (; cons != prod; cons++)
		take_byte((unsigned char)ring->out[cons % RING_OUT]);
	__sync_synchronize();
	ring->out_cons = cons;
	notify();
}

static uint32_t room(void)
{
	return RING_IN - (ring->in_prod - ring->in_cons);
}

/* ^O on a console is SysRq for the kernel: it and the escape itself go escaped. */
static void to_domain(const unsigned char *buf, size_t len)
{
	uint32_t prod = ring->in_prod;
	size_t i;

	for (i = 0; i < len; i++) {
		if (buf[i] == RPC_SYSRQ || buf[i] == RPC_ESCAPE) {
			ring->in[prod++ % RING_IN] = RPC_ESCAPE;
			ring->in[prod++ % RING_IN] = (char)(buf[i] ^ RPC_FLIP);
		} else {
			ring->in[prod++ % RING_IN] = (char)buf[i];
		}
	}
	__sync_synchronize();
	ring->in_prod = prod;
	notify();
}

static void from_client(void)
{
	unsigned char buf[RING_IN / 2];
	size_t most = room() / 2;	/* each byte may become two */
	ssize_t n = read(client, buf, most);

	if (n > 0) {
		to_domain(buf, (size_t)n);
		return;
	}
	close(client);
	client = -1;
}

static int listen_at(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(sa.sun_path))
		return -1;
	strcpy(sa.sun_path, path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, 16))
		die(path);
	return fd;
}

int main(int argc, char **argv)
{
	uint16_t domid;
	uint32_t port;
	int server;

	if (argc < 5) {
		fprintf(stderr, "usage: pvcon DOMID PORT SOCKET LOG [ready]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	domid = (uint16_t)atoi(argv[1]);
	ready = argc > 5;
	console = open(argv[4], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (console < 0)
		die(argv[4]);
	map_ring(domid);
	bind_port(domid, (uint32_t)atoi(argv[2]));
	server = listen_at(argv[3]);
	for (;;) {
		struct pollfd p[] = {
			{ .fd = evtchn, .events = POLLIN },
			{ .fd = client < 0 && ready ? server : -1, .events = POLLIN },
			{ .fd = room() > 1 ? client : -1, .events = POLLIN },
		};

		from_domain();
		if (poll(p, 3, 1000) == 0 && !domain_lives())
			break;
		if (p[0].revents && read(evtchn, &port, sizeof(port)) == sizeof(port))
			write_all(evtchn, &port, sizeof(port));	/* unmask */
		if (p[1].revents)
			client = accept4(server, NULL, NULL, SOCK_CLOEXEC);
		if (p[2].revents)
			from_client();
	}
	from_domain();
	/* a frame that was never finished: likely a panic's text is in it */
	frame_to_log();
	unlink(argv[3]);
	return 0;
}
