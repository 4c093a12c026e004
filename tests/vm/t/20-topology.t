#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Flatten and restore, name by name and flag by flag, for every CPU: without and
# with vNUMA, with CPUs going and coming, with a cpuset partition. In a plain
# TCG guest with the test build (see README.md): what is judged here is the
# guest's scheduler, and that emulation is sound.
. "$(dirname "$0")/../lib/job.sh"

give product test

domains() { in_guest p domains; }
tandem() { on p "echo $2 >/sys/kernel/tandem/$1"; }
value() { on p "cat /sys/kernel/tandem/$1"; }

# story LABEL CPUS: the whole sequence in the guest that is up
story() {
	local label=$1 cpus=$2 before flat llc part flatpart

	before=$(domains)
	note "$label: $(awk '{ print $3 }' <<<"$before" | sort | uniq -c | tr -s ' \n' ' ')"
	# 6.1 makes one level (MC) of what 6.12 and 7.3 make two (SMT, MC)
	like "$(below_numa "$before")" "SD_SHARE_(LLC|PKG_RESOURCES)" "$label: there is something to flatten"

	try "$label: loads" on p 'insmod /t/test.ko flatten=off'
	is "$(value topology/state)" native "$label: flatten=off leaves it native"
	is "$(domains)" "$before" "$label: loading alone changes no domain"

	try "$label: flatten=on" tandem topology/flatten on
	is "$(value topology/state)" flat "$label: state says flat"
	flat=$(domains)
	check_flat "$flat" "$cpus" 0 "$label flat"
	is "$(numa_only "$flat")" "$(numa_only "$before")" "$label: NUMA levels are kept"

	try "$label: variant flat-llc" tandem topology/variant flat-llc
	llc=$(domains)
	check_flat "$llc" "$cpus" "$cpus" "$label flat-llc"
	is "$(numa_only "$llc")" "$(numa_only "$before")" "$label: NUMA levels are kept with flat-llc"
	try "$label: variant flat again" tandem topology/variant flat
	is "$(domains)" "$flat" "$label: as flat as before"

	on p 'echo 0 >/sys/devices/system/cpu/cpu1/online'
	try "$label: flat without CPU 1" in_guest p "wait_for 20 sh -c '! grep -q \"^cpu1 \" /proc/schedstat'"
	check_flat "$(domains | grep -v '^cpu1 ')" $((cpus - 1)) 0 "$label flat, CPU 1 offline"
	on p 'echo 1 >/sys/devices/system/cpu/cpu1/online'
	try "$label: CPU 1 back: flat as before" until_true 20 eval '[[ $(domains) == "$flat" ]]'

	on p 'echo 0 >/sys/devices/system/cpu/cpu1/online'
	try "$label: flatten=off with CPU 1 offline" tandem topology/flatten off
	on p 'echo 1 >/sys/devices/system/cpu/cpu1/online'
	try "$label: CPU 1 back: restored" until_true 20 eval '[[ $(domains) == "$before" ]]'

	# a cpuset partition: a root domain of its own
	on p 'cd /sys/fs/cgroup && echo +cpuset >cgroup.subtree_control && mkdir part &&
		echo 2-3 >part/cpuset.cpus && echo root >part/cpuset.cpus.partition'
	is "$(on p 'cat /sys/fs/cgroup/part/cpuset.cpus.partition')" root "$label: the partition is valid"
	part=$(domains)
	is "$([[ $part != "$before" ]] && echo differs)" differs "$label: the partition shows in the domains"
	try "$label: flatten=on in a partitioned guest" tandem topology/flatten on
	flatpart=$(domains)
	check_flat "$flatpart" "$cpus" 0 "$label flat, partitioned"
	try "$label: flatten=off in a partitioned guest" tandem topology/flatten off
	is "$(domains)" "$part" "$label: restored, partitioned"
	tandem topology/flatten on
	on p 'echo member >/sys/fs/cgroup/part/cpuset.cpus.partition; rmdir /sys/fs/cgroup/part'
	try "$label: partition gone while flat: flat as before" until_true 20 eval '[[ $(domains) == "$flat" ]]'

	try "$label: unloads while flat" on p 'rmmod tandem'
	is "$(domains)" "$before" "$label: unloading restores every domain"
	is "$(in_guest p leftovers)" "" "$label: nothing outlives the module"
	try "$label: clean log" clean_log p
}

vm_end() { kill -KILL "${VM_PID[p]}"; wait "${VM_PID[p]}" 2>/dev/null; unset 'VM_PID[p]'; }

plain_start p "$KERNEL" "-smp 4,sockets=1,cores=2,threads=2"
is "$(in_guest p leftovers)" "" "nothing of tandem is there before"
story "4 CPUs" 4

# sysfs: nonsense, oversized, truncated, binary input changes nothing
on p 'insmod /t/test.ko flatten=off hints=off'
files=$(on p 'cd /sys/kernel/tandem; find . -type f -perm -200 | sort')
above "$(wc -l <<<"$files")" 8 "there are files to write to"
shot='cd /sys/kernel/tandem; for f in $(find . -type f -perm -200 | sort); do echo "$f $(cat $f)"; done'
before=$(on p "$shot")
bad=$(on p 'cd /sys/kernel/tandem
head -c 4096 /dev/zero | tr "\0" 9 >/tmp/long
head -c 4096 /dev/urandom >/tmp/binary
head -c 3 /dev/zero >/tmp/nul
printf "on\0off" >/tmp/hidden
printf "\n" >/tmp/empty
for f in $(find . -type f -perm -200 | sort); do
	for w in nonsense -1 99999999999999999999 0x1g "1 2" "on off" " on" ON "%s%n" 1.5 auto1 "on;"; do
		printf "%s\n" "$w" 2>/dev/null >$f && echo "$f took: $w"
	done
	for w in long binary nul hidden empty; do
		cat /tmp/$w 2>/dev/null >$f && echo "$f took: $w"
	done
done; true')
is "$bad" "" "no file takes bad input"
is "$(on p "$shot")" "$before" "bad input changes nothing"
like "$(on p 'dmesg | grep "tandem: " | tail -n 30')" "hints/|topology/|gate/" "the log says which file refused what"
is "$(on p 'dmesg | grep -c "tandem: "' | awk '{ print ($1 < 60) }')" 1 "and does so at a bounded rate"
on p 'rmmod tandem'
for p in flatten=maybe flatten= flatten hints=2 variant=round enable=perhaps; do
	out=$(on p "insmod /t/test.ko $p 2>&1")
	like "$out" "invalid|Invalid" "parameter $p is refused"
done
is "$(in_guest p leftovers)" "" "nothing is left of refused loads"

# auto, and what the host says
before=$(domains)
on p 'insmod /t/test.ko flatten=auto variant=flat'
is "$(value topology/state): $(value topology/reason)" "native: auto: no steal seen yet" "auto: native without steal"
on p 'echo 50000000 >/sys/module/tandem/parameters/test_steal_ns'
try "auto: flat when steal was seen" in_guest p 'wait_for 20 state_is flat'
flat=$(domains)
tandem topology/host pinned
is "$(value topology/state): $(value topology/reason)" "native: auto: the host says that the vCPUs are pinned" "host says pinned: native"
is "$(domains)" "$before" "host says pinned: the domains are as found"
tandem topology/flatten on
is "$(value topology/state)" flat "host says pinned, flatten=on: flat all the same"
tandem topology/flatten auto
is "$(value topology/state)" native "and native with auto"
tandem topology/host trusted
is "$(value topology/reason)" "auto: the host says that the topology is true" "host says trusted: native"
tandem topology/host none
is "$(value topology/state)" flat "host takes it back: flat"
is "$(domains)" "$flat" "as flat as before"

# the host's account of the vCPUs' time (the test hypervisor's numbers)
is "$(on p 'cd /sys/kernel/tandem/vcpu/cpu2/runstate; cat state running_ns runnable_ns blocked_ns offline_ns' | tr '\n' ' ')" \
	"blocked 2000000000 2000000001 2000000002 2000000003 " "run state of vCPU 2"
on p 'echo 1 >/sys/module/tandem/parameters/test_no_runstate'
like "$(on p 'cat /sys/kernel/tandem/vcpu/cpu2/runstate/state 2>&1')" "Input/output error" "no answer from the host: EIO"
on p 'rmmod tandem'
is "$(domains)" "$before" "unloading restores every domain"
try "clean log after bad input" clean_log p
vm_end

plain_start p "$KERNEL" "-smp 8,sockets=2,cores=2,threads=2 \
	-object memory-backend-ram,id=m0,size=512M -object memory-backend-ram,id=m1,size=512M \
	-numa node,nodeid=0,memdev=m0,cpus=0-3 -numa node,nodeid=1,memdev=m1,cpus=4-7"
is "$(on p 'ls -d /sys/devices/system/node/node*' | wc -l)" 2 "the guest has two nodes"
story "vNUMA" 8

# The kernel frees the table that we edited and makes a native one when the
# last CPU of a node goes, and again when the first comes back.
before=$(domains)
on p 'insmod /t/test.ko flatten=on'
flat=$(domains)
on p 'for c in 4 5 6 7; do echo 0 >/sys/devices/system/cpu/cpu$c/online; done'
try "node 1 offline: still flat" until_true 20 eval 'check=$(domains | grep -E "^cpu[0-3] " | awk "{ print \$3 }" | sort -u); [[ $check == FLAT ]]'
is "$(value topology/state)" flat "node 1 offline: state says flat"
on p 'for c in 4 5 6 7; do echo 1 >/sys/devices/system/cpu/cpu$c/online; done'
try "node 1 back: flat as before" until_true 30 eval '[[ $(domains) == "$flat" ]]'
on p 'for c in 4 5 6 7; do echo 0 >/sys/devices/system/cpu/cpu$c/online; done; rmmod tandem
	for c in 4 5 6 7; do echo 1 >/sys/devices/system/cpu/cpu$c/online; done'
try "unloaded with node 1 offline: native when it is back" until_true 30 eval '[[ $(domains) == "$before" ]]'
try "clean log after node hot-plug" clean_log p
vm_end

# one level already, and one CPU: nothing to do
plain_start p "$KERNEL" "-smp 4,sockets=4,cores=1,threads=1"
before=$(domains)
on p 'insmod /t/test.ko flatten=on variant=flat'
state=$(value topology/state)
note "4 sockets of 1: $(awk '{ print $3 }' <<<"$before" | sort -u | tr '\n' ' ')-> $state"
is "$state" already-flat "4 sockets: already-flat"
is "$(domains)" "$before" "4 sockets: nothing was touched"
on p 'rmmod tandem'
is "$(domains)" "$before" "4 sockets: nor at unload"
try "clean log of the flat guest" clean_log p
vm_end
plain_start p "$KERNEL" "-smp 1"
try "1 CPU: loads" on p 'insmod /t/test.ko flatten=on'
is "$(value topology/state)" already-flat "1 CPU: already-flat"
try "1 CPU: unloads" on p 'rmmod tandem'
try "clean log with 1 CPU" clean_log p
tap_done
