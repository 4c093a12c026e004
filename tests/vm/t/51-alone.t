#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One guest that has its host to itself (2 vCPUs, 2 pCPUs): not one hypercall of
# ours under contention. Two pCPUs: a short boot (README.md, emulator faults).
. "$(dirname "$0")/../lib/job.sh"

give product lockload
host_start 2
guest_start g1 "$KERNEL" 2,sockets=1,cores=2,threads=1
try "kprobes on the kernel's own directed yields" watch_own_yields g1
try "tandem.ko loads" on g1 'insmod /t/product.ko && insmod /t/lockload.ko class=mutex threads=2 hold_us=100'
# The rig's own commands run on the host's two pCPUs, too: what they steal may
# have opened the gate. From here on the host runs this one command, which waits
# in the channel.
T=90 try "the gate is closed when nothing else runs" in_guest g1 'wait_for 60 grep -q closed /sys/kernel/tandem/gate/state'
sent=$(on g1 'cat /sys/kernel/tandem/stats/sent')
tried=$(on host 'cat /sys/kernel/debug/kvm/directed_yield_attempted')
got=$(in_guest g1 'wait_for 60 grep -q closed $S/gate/state
	before="$(cat $S/stats/sent) $(cat $S/gate/opened)"
	usleep 6000000
	echo "$before -> $(cat $S/stats/sent) $(cat $S/gate/opened) $(cat $S/hints/state) $(cat $S/gate/steal_permille)"')
note "sent, gate opened: $got permille stolen"
read -r sent0 opened0 _ sent1 opened1 state _ <<<"$got"
is "$sent1" "$sent0" "no hint was sent in 6 s of contention"
is "$opened1" "$opened0" "the gate did not open"
is "$state" gated "hints are gated"
ops=$(on g1 'cat /sys/kernel/debug/lockload/ops; rmmod lockload')
above "$ops" 100 "there was contention to hint about"
tried=$(($(on host 'cat /sys/kernel/debug/kvm/directed_yield_attempted') - tried))
sent=$(($(on g1 'cat /sys/kernel/tandem/stats/sent') - sent))
calls=$(own_yields g1)
note "with the rig's commands around: sent $sent; host: attempted $tried, the kernel's own at most $calls"
above $((sent + calls + 1)) "$tried" "the host saw no hypercall that the guest did not count"
try "clean log" clean_log g1
self_check g1
tap_done
