#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# 200 load-unload cycles under load, flat and hinting each time, in a plain TCG
# guest (test build). Nothing leaks, nothing is left, the log is clean.
. "$(dirname "$0")/../lib/job.sh"

give test lockload
CYCLES=${CYCLES:-200}
plain_start p "$KERNEL" "-smp 4,sockets=1,cores=2,threads=2"
before=$(in_guest p domains)

on p 'insmod /t/lockload.ko class=mutex threads=4 hold_us=50 && insmod /t/test.ko flatten=on hints=on && rmmod tandem && rmmod lockload'
T=900 try "$CYCLES cycles under load" on p "
	(while :; do hackbench -g 1 -l 50 >/dev/null; done) & load=\$!
	insmod /t/lockload.ko class=mutex threads=4 hold_us=50 || exit 1
	i=0
	while [ \$i -lt $CYCLES ]; do
		[ \$i -ne 20 ] || { echo 3 >/proc/sys/vm/drop_caches; grep SUnreclaim /proc/meminfo | awk '{ print \$2 }' >/tmp/mem0; }
		insmod /t/test.ko flatten=on hints=on variant=\$([ \$((i % 2)) = 0 ] && echo flat || echo flat-llc) || exit 1
		[ \"\$(cat /sys/kernel/tandem/topology/state)\" = flat ] || exit 2
		rmmod tandem || exit 3
		i=\$((i + 1))
	done
	kill \$load; rmmod lockload; killall -q hackbench
	while pgrep hackbench >/dev/null; do usleep 100000; done
	echo 3 >/proc/sys/vm/drop_caches
	grep SUnreclaim /proc/meminfo | awk '{ print \$2 }' >/tmp/mem1"
is "$(in_guest p domains)" "$before" "the domains are as found"
is "$(in_guest p leftovers)" "" "nothing outlives the module"
grown=$(on p 'echo $(($(cat /tmp/mem1) - $(cat /tmp/mem0)))')
note "unreclaimable slab after the cycles: $grown KiB more"
is "$([[ $grown =~ ^-?[0-9]+$ ]] && ((grown < 3072)) && echo yes)" yes "less than 16 KiB a cycle was not given back"
try "clean log" clean_log p
tap_done
