#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One guest that has its host to itself (2 vCPUs, 2 pCPUs): not one hypercall of
# ours under contention. Two pCPUs: a short boot (README.md, emulator faults).
. "$(dirname "$0")/../lib/job.sh"

give product lockload
host_start 2
guest_start g1 "$KERNEL" 2,sockets=1,cores=2,threads=1
try "tandem.ko loads" on g1 'insmod /t/product.ko'
on g1 'cd /sys/kernel/tracing && echo "p:rig/ipi kvm_smp_send_call_func_ipi" >kprobe_events && echo 1 >events/rig/ipi/enable'
tried=$(on host 'cat /sys/kernel/debug/kvm/directed_yield_attempted')
on g1 'insmod /t/lockload.ko class=mutex threads=2 hold_us=100'
# the gate's own period is 1 s: see it sample several times under contention
on g1 'usleep 6000000'
is "$(on g1 'cat /sys/kernel/tandem/gate/opened')" 0 "the gate never opened (steal $(on g1 'cat /sys/kernel/tandem/gate/steal_permille') permille)"
is "$(on g1 'cat /sys/kernel/tandem/hints/state')" gated "hints are gated"
ops=$(on g1 'cat /sys/kernel/debug/lockload/ops; rmmod lockload')
above "$ops" 100 "there was contention to hint about"
is "$(on g1 'cat /sys/kernel/tandem/stats/sent')" 0 "no hint was sent"
calls=$(on g1 "awk '\$1 == \"ipi\" { print \$2 }' /sys/kernel/tracing/kprobe_profile")
tried=$(($(on host 'cat /sys/kernel/debug/kvm/directed_yield_attempted') - tried))
note "host: directed yields attempted $tried, the kernel's own at most $calls"
above $((calls + 1)) "$tried" "the host saw none but the kernel's own"
try "clean log" clean_log g1
self_check g1
tap_done
