#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Load-unload cycles of the product build under load, in a KVM guest whose
# two vCPUs share one pCPU.
# rig: long
. "$(dirname "$0")/../lib/job.sh"

give product lockload
host_start 1
guest_start g1 "$KERNEL" 2,sockets=1,cores=1,threads=2
before=$(in_guest g1 domains)
# 5 s each in the emulator, most of it for some 500 IPIs between two vCPUs that
# take turns on one pCPU: all 200 on one kernel; KVM_CYCLES=200 asks for them on
# the others, too.
case $KERNEL in
6.12) count=200 ;;
*) count=40 ;;
esac
cycles g1 product "${KVM_CYCLES:-$count}"
is "$(in_guest g1 domains)" "$before" "the domains are as found"
self_check g1
tap_done
