#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two busy guests on a stock KVM host with one pCPU: holder-preempted waits are
# seen, hints are sent, and the host's own counters agree with the guest's. A
# control run without the module, under the same load, comes first.
. "$(dirname "$0")/../lib/job.sh"

give product lockload agent
LOAD_SECONDS=${LOAD_SECONDS:-8}
G="g1 g2"

# load NAME CLASS: contention on one lock beside a compute load, until unload
load_on() { on "$1" "insmod /t/lockload.ko class=$2 threads=3 hold_us=300 gap_us=100 && (while :; do :; done & echo \$! >/tmp/spin)"; }
load_off() { on "$1" 'kill $(cat /tmp/spin); rmmod lockload'; }

# host_count NAME STATISTIC: KVM's counter of that VM
host_count() { on host "cat /sys/kernel/debug/kvm/\$(cat /run/$1.pid)-*/$2"; }
guest_count() { on "$1" "cat /sys/kernel/tandem/stats/$2"; }

# table: what the host shows of two busy guests
table() {
	ask_groupd g1 g2
	ok $? "groupd hears both guests" || sed 's/^/# /' "$JOB/table.err" >&2
	sed 's/^/# /' "$JOB/table"
	like "$(cat "$JOB/table")" "g1 +2 .* flat " "the table shows g1, flat"
	like "$(cat "$JOB/table")" "g2 +2 .* flat " "and g2"
}

host_start 1
for g in $G; do guest_boot "$g" "$KERNEL" 2,sockets=1,cores=1,threads=2; done
for g in $G; do wait_up "$g"; done

# the control: the same load, no module
for g in $G; do load_on "$g" mutex; done
on host "sleep $LOAD_SECONDS"
for g in $G; do load_off "$g"; done
for g in $G; do try "control: clean log in $g" clean_log "$g"; done
above "$(on g1 "awk '/^cpu / { print \$9 }' /proc/stat")" 0 "control: the host steals from g1"
before=$(in_guest g1 domains)

for g in $G; do
	try "$g: tandem.ko loads" on "$g" 'insmod /t/product.ko flatten=on hints=off'
	on "$g" 'tandemd --period-ms 1000 2>/tmp/tandemd.log & true'
done
is "$(on g1 'cat /sys/kernel/tandem/hypervisor')" kvm "hypervisor is kvm"
like "$(on g1 'cat /sys/kernel/tandem/features')" "steal-time" "the host offers steal time"
like "$(on g1 'cat /sys/kernel/tandem/features')" "sched-yield" "the host offers directed yield"
is "$(on g1 'cat /sys/kernel/tandem/topology/state')" flat "g1 is flat"
is "$(in_guest g1 domains | awk '{ print $3 }' | sort -u)" FLAT "its domains say so"
is "$(on g1 'cat /sys/kernel/tandem/hints/state')" off "hints are off when asked for"

# hints off: contention causes none
load_on g1 mutex; load_on g2 mutex
on host 'sleep 2'
is "$(guest_count g1 sent)" 0 "hints off: none is sent under contention"
load_off g1; load_off g2

try "g1: kprobes on the kernel's own directed yields" watch_own_yields g1
# The counts are read with hints off, so ours stand still; the kernel's own go
# on, so they are read outside of the host's.
hints() { for g in $G; do on "$g" "echo $1 >/sys/kernel/tandem/hints/mode"; done; }
for class in mutex rwsem spin; do
	# how long a spinning waiter is itself on a pCPU decides whether its waits
	# follow each other closely enough; here each one counts
	[[ $class != spin ]] || for g in $G; do on "$g" 'echo 1 >/sys/kernel/tandem/hints/sustain'; done
	calls=$(own_yields g1) sent=$(guest_count g1 sent)
	tried=$(host_count g1 directed_yield_attempted) worked=$(host_count g1 directed_yield_successful)
	preempted=$(guest_count g1 holder_preempted) contended=$(guest_count g1 contended_$class)
	hints auto
	load_on g1 $class; load_on g2 $class
	try "$class: the gate opens under overcommitment" on g1 '. /t/lib.sh; wait_for 30 grep -q open /sys/kernel/tandem/gate/state'
	is "$(on g1 'cat /sys/kernel/tandem/hints/state')" active "$class: hints are active"
	on host "sleep $LOAD_SECONDS"
	[[ $class != mutex ]] || table
	load_off g1; load_off g2
	hints off
	tried=$(($(host_count g1 directed_yield_attempted) - tried))
	worked=$(($(host_count g1 directed_yield_successful) - worked))
	sent=$(($(guest_count g1 sent) - sent)) preempted=$(($(guest_count g1 holder_preempted) - preempted))
	contended=$(($(guest_count g1 contended_$class) - contended))
	calls=$(($(own_yields g1) - calls))
	note "$class: contended $contended, holder preempted $preempted, sent $sent; host: attempted $tried, successful $worked; kernel's own at most $calls"
	above "$contended" 0 "$class: contended waits are seen"
	above "$preempted" 0 "$class: holder-preempted waits are seen"
	above "$sent" 0 "$class: hints are sent"
	above "$tried" $((sent - 1)) "$class: the host saw every hint"
	above $((sent + calls + 1)) "$tried" "$class: the host saw nothing else but the kernel's own"
	above "$worked" -1 "$class: the host counts those that worked"
done
is "$(guest_count g1 failed)" 0 "no hypercall failed"
total=$(on host 'cat /sys/kernel/debug/kvm/directed_yield_successful')
above "$total" 0 "some directed yields worked"

# every contended wait has exactly one outcome (docs/ABI/sysfs-kernel-tandem)
sums=$(on g1 'cd /sys/kernel/tandem/stats; v() { cat $1; }
	echo $(($(v contended_mutex) + $(v contended_rwsem) + $(v contended_spin) -
		$(v holder_unknown) - $(v holder_asleep) - $(v holder_self) -
		$(v holder_running) - $(v holder_idle) - $(v holder_preempted)))
	echo $(($(v holder_preempted) - $(v suppressed_sustain) - $(v suppressed_tries) -
		$(v suppressed_budget) - $(v sent) - $(v failed)))')
is "$sums" "$(printf '0\n0')" "the statistics add up"
is "$(on g1 'cat /sys/kernel/tandem/stats/sent')" \
	"$(on g1 'cat /sys/kernel/tandem/vcpu/cpu*/sent | awk "{ s += \$1 } END { print s }"')" "so do the vCPUs'"

for g in $G; do
	try "$g: unloads" on "$g" 'killall tandemd; rmmod tandem'
	is "$(in_guest "$g" leftovers | grep -v -e kvm_smp_send_call_func_ipi -e kvm_kick_cpu)" "" "$g: nothing outlives the module"
	try "$g: clean log" clean_log "$g"
	self_check "$g"
done
is "$(in_guest g1 domains)" "$before" "g1's domains are restored"
self_check host
tap_done
