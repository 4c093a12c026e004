/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the module: tandem:tandem_hint, tandem:tandem_topology and
 * tandem:tandem_gate.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tandem

#if !defined(TANDEM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TANDEM_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(tandem_hint,
	    TP_PROTO(const void *lock, const char *kind, int holder,
		     const char *verdict),

	    TP_ARGS(lock, kind, holder, verdict),

	    TP_STRUCT__entry(__field(const void *, lock)
			     __array(char, kind, 8)
			     __field(int, holder)
			     __array(char, verdict, 24)
	    ),

	    TP_fast_assign(__entry->lock = lock;
			   strscpy(__entry->kind, kind, 8);
			   __entry->holder = holder;
			   strscpy(__entry->verdict, verdict, 24);
	    ),

	    TP_printk("lock=%p class=%s holder_cpu=%d verdict=%s",
		      __entry->lock, __entry->kind, __entry->holder,
		      __entry->verdict)
);

TRACE_EVENT(tandem_topology,
	    TP_PROTO(bool flat, const char *reason, u64 ns),

	    TP_ARGS(flat, reason, ns),

	    TP_STRUCT__entry(__field(bool, flat)
			     __array(char, reason, 64)
			     __field(u64, ns)
	    ),

	    TP_fast_assign(__entry->flat = flat;
			   strscpy(__entry->reason, reason, 64);
			   __entry->ns = ns;
	    ),

	    TP_printk("%s ns=%llu reason=\"%s\"",
		      __entry->flat ? "flatten" : "restore", __entry->ns,
		      __entry->reason)
);

TRACE_EVENT(tandem_gate,
	    TP_PROTO(bool open, u32 permille),

	    TP_ARGS(open, permille),

	    TP_STRUCT__entry(__field(bool, open)
			     __field(u32, permille)
	    ),

	    TP_fast_assign(__entry->open = open;
			   __entry->permille = permille;
	    ),

	    TP_printk("%s steal_permille=%u", __entry->open ? "open" : "closed",
		      __entry->permille)
);

#endif /* TANDEM_TRACE_H */

/* Found through -I guest-kmod, see Kbuild. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
