#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Where there is neither KVM nor Xen, tandem.ko says so and leaves no trace.
. "$(dirname "$0")/../lib/job.sh"

give product
plain_start p "$KERNEL" "-smp 2"

before=$(in_guest p leftovers)
out=$(on p 'insmod /t/product.ko 2>&1')
ok $((! $?)) "tandem.ko does not load under plain TCG"
like "$out" "No such device" "insmod says ENODEV"
# The kernel's own lines about modules from outside its tree are not ours; and
# busybox's insmod tries twice, with finit_module() and init_module().
ours() {
	on p 'dmesg | grep "tandem: " | grep -v -e "taints kernel" -e "module verification failed"' |
		sed 's/^\[[^]]*\] //' | uniq
}
is "$(ours | wc -l)" 1 "one line in the kernel log"
like "$(ours)" "KVM" "it names what was looked for"
is "$(in_guest p leftovers)" "$before" "no trace is left"
out=$(on p 'insmod /t/product.ko enable=0 2>&1')
like "$out" "No such device" "enable=0 refuses too"
like "$(ours | tail -n 1)" "enable=0" "and says which switch it was"
try "clean log" clean_log p
tap_done
