/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rig's own remote command channel: a command goes in, its output and exit
 * status come back, over a virtio-serial port, or over a Xen domain's console
 * (pvcon.c). It serves the rig only.
 *
 * Every message is a frame: struct rpc_frame, then @len bytes. Frames of an
 * earlier request that its client no longer waited for are told by @id; a
 * reader that enters in the middle of a frame looks for the next magic.
 */
#ifndef TANDEM_RIG_RPC_H
#define TANDEM_RIG_RPC_H

#include <stdint.h>

#define RPC_PORT	"org.tandem.rig.0"
#define RPC_MAGIC	0x31435052u	/* "RPC1" */
#define RPC_MAX		65536u		/* bytes in one frame */

enum rpc_type {
	RPC_RUN = 1,	/* client: u32 seconds, then the command for sh -c */
	RPC_OUT,	/* server: output, stdout and stderr as they came */
	RPC_EXIT,	/* server: u32 exit status; 124 when it ran too long */
	RPC_HELLO,	/* server on a console: it is raw now, requests may come */
};

struct rpc_frame {
	uint32_t magic;
	uint32_t id;
	uint32_t type;
	uint32_t len;
};

/*
 * On a console ^O is the kernel's, for SysRq (drivers/tty/hvc/hvc_console.c,
 * __hvc_poll()). On the way in, a byte that is one of these two is replaced by
 * RPC_ESCAPE and the byte ^ RPC_FLIP.
 */
#define RPC_SYSRQ	0x0f
#define RPC_ESCAPE	0x10
#define RPC_FLIP	0x40

#endif /* TANDEM_RIG_RPC_H */
