#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# 200 load-unload cycles under load, flat and hinting each time, in a plain TCG
# guest (test build). Nothing leaks, nothing is left, the log is clean.
# rig: long
. "$(dirname "$0")/../lib/job.sh"

give test lockload
# two levels of different spans on every kernel: something to flatten in both variants
plain_start p "$KERNEL" "-smp 4,sockets=2,cores=2,threads=1"
before=$(in_guest p domains)
cycles p test "${CYCLES:-200}"
is "$(in_guest p domains)" "$before" "the domains are as found"
tap_done
