#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rig: kernels=6.12
# One PVH guest, alone on a host with Xen 4.20 and one pCPU, and idle. So, because
# of the emulator: with Xen 4.17 a PVH guest dies of its first page fault (none
# came up); with 4.20 and two pCPUs it panics at a page fault within a minute, also
# without our module. Load is for PV guests (70-xen.t). Here: topology, and that
# steal, run states and hints are on offer.
RIG_XEN=4.20
. "$(dirname "$0")/../lib/job.sh"

give product

# the CPU has two cores, one is there: what leaks of that can be flattened
xen_start 1,cores=2,maxcpus=2 "$KERNEL"
like "$(on dom0 'xl info xen_version')" "^4\.20" "the hypervisor is 4.20"
domu_start g1 "$KERNEL" pvh 4

xen_topology g1 4 xen-pvh

tandem g1 hints/mode on
is "$(value g1 hints/state)" active "hints are active when asked for"
tandem g1 hints/mode off
is "$(on g1 'cat /sys/kernel/tandem/vcpu/cpu*/runstate/state | wc -l')" 4 "each vCPU has a run state"
is "$(value g1 vcpu/cpu0/preempted)" 0 "the vCPU that looks is not preempted"
above "$(in_guest g1 'sum $S/vcpu/cpu*/runstate/running_ns')" 0 "the vCPUs' run states have times"
above "$(in_guest g1 'sum $S/vcpu/cpu*/steal_ns')" -1 "steal can be read"

xen_unload g1
self_check dom0
tap_done
