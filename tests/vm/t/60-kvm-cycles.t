#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Load-unload cycles of the product build under load, in a KVM guest whose
# two vCPUs share one pCPU.
. "$(dirname "$0")/../lib/job.sh"

give product lockload
host_start 1
guest_start g1 "$KERNEL" 2,sockets=1,cores=1,threads=2
before=$(in_guest g1 domains)
# 200 here take a quarter of an hour in the emulator: KVM_CYCLES=200 asks for them.
cycles g1 product "${KVM_CYCLES:-40}"
is "$(in_guest g1 domains)" "$before" "the domains are as found"
self_check g1
tap_done
