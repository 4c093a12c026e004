#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# 200 load-unload cycles under load, flat and hinting each time, in a plain TCG
# guest (test build). Nothing leaks, nothing is left, the log is clean.
. "$(dirname "$0")/../lib/job.sh"

give test lockload
plain_start p "$KERNEL" "-smp 2,sockets=1,cores=1,threads=2"
before=$(in_guest p domains)
cycles p test "${CYCLES:-200}"
is "$(in_guest p domains)" "$before" "the domains are as found"
tap_done
