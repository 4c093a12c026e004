#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rig: kernels=6.12
# rig: long
# A stock Xen host with two pCPUs: the topology in dom0, then in two busy PV
# guests of four vCPUs each, one of them with the oldest kernel. Steal is real,
# and the same without the module (the control). CPUs come and go by xl, and a
# flat guest is saved and restored.
. "$(dirname "$0")/../lib/job.sh"

OTHER=${OTHER:-6.1}
LOAD_SECONDS=${LOAD_SECONDS:-8}
declare -A K=([g1]=$KERNEL [g2]=$OTHER)
G="g1 g2"

for k in "$KERNEL" "$OTHER"; do KERNEL=$k give product lockload; done

# busy CLASS: both guests, for the same time; what each then says is in SEEN
declare -A SEEN=()
busy() {
	local g

	for g in $G; do in_guest "$g" "busy $LOAD_SECONDS $1"; done
	on dom0 "sleep $LOAD_SECONDS"
	for g in $G; do SEEN[$g]=$(T=150 in_guest "$g" busy_result); done
}

xen_start 2 "$KERNEL"
xen_topology dom0 2 xen-dom0
xen_unload dom0

for g in $G; do domu_boot "$g" "${K[$g]}" pv 4; done
for g in $G; do wait_up "$g"; done

# the control: the same load, no module
declare -A was=()
for g in $G; do was[$g]=$(steal "$g"); done
busy mutex
for g in $G; do
	was[$g]=$(($(steal "$g") - was[$g]))
	note "control: $g lost ${was[$g]} jiffies in about $LOAD_SECONDS s"
	above "${was[$g]}" 0 "control: Xen steals from $g"
	try "control: clean log in $g" clean_log "$g"
done

for g in $G; do xen_topology "$g" 4 xen-pv; done

# With one emulator thread for two pCPUs a vCPU that wakes up waits until that
# thread comes to its pCPU, and Xen counts that as steal: 3 % in an idle guest, and
# more where two vCPUs work. The gate's threshold is between that and the 70 to
# 80 % of a busy one.
OPEN=400

# overcommitted: what the module shows moves with what the kernel counts
COUNTED="contended_mutex contended_rwsem contended_spin holder_preempted sent failed"
counts() { in_guest "$1" "cd \$S/stats; echo \$(cat $COUNTED) \$(sum \$S/vcpu/cpu*/steal_ns) \$(sum \$S/vcpu/cpu*/runstate/runnable_ns)"; }
for g in $G; do
	on "$g" "cd /sys/kernel/tandem; echo auto >topology/flatten; echo $OPEN >gate/open_permille; echo 1 >hints/sustain; echo auto >hints/mode"
	T=120 try "$g: the gate is closed before the load" in_guest "$g" 'wait_for 60 grep -q closed $S/gate/state'
	was[$g]=$(counts "$g")
done
for class in mutex spin; do busy $class; note "$class: ${SEEN[g1]}; ${SEEN[g2]}"; done
for g in $G; do
	read -r looks open preempted permille <<<"${SEEN[$g]}"
	note "$g: of $looks looks the gate was open at $open, preempted vCPUs $preempted, steal up to $permille permille"
	above "${open:-0}" 0 "$g: the gate opens under overcommitment"
	above "${permille:-0}" $((OPEN - 1)) "$g: steal was above its threshold"
	above "${preempted:-0}" 0 "$g: vCPUs are seen preempted"
	is "$(value "$g" topology/state)" flat "$g: flat all the time"
	now=($(counts "$g"))
	i=0
	for c in $COUNTED steal_ns runnable_ns; do
		old=$(cut -d ' ' -f $((i + 1)) <<<"${was[$g]}")
		note "$g: $c moved by $((now[i] - old))"
		case $c in
		contended_mutex | contended_spin | holder_preempted | sent | steal_ns | runnable_ns)
			above "${now[i]}" "$old" "$g: $c moves under overcommitment" ;;
		failed) is "${now[i]}" 0 "$g: no hypercall failed" ;;
		esac
		i=$((i + 1))
	done
	# with hints off nothing moves any more, so the sums are exact
	on "$g" 'echo off >/sys/kernel/tandem/hints/mode'
	is "$(in_guest "$g" 'cd $S/stats; v() { cat $1; }
		echo $(($(v contended_mutex) + $(v contended_rwsem) + $(v contended_spin) -
			$(v holder_unknown) - $(v holder_asleep) - $(v holder_self) -
			$(v holder_running) - $(v holder_idle) - $(v holder_preempted)))')" 0 "$g: every wait has its outcome"
done

for g in $G; do on "$g" 'cd /sys/kernel/tandem; echo off >hints/mode; echo on >topology/flatten'; done

# vCPUs go and come by xl while flat; a guest's udev would put them online
flat=$(in_guest g1 domains)
try "xl vcpu-set 2 while flat" on dom0 'xl vcpu-set g1 2'
try "g1: two vCPUs are left" in_guest g1 'two() { [ $(nproc) = 2 ]; }; wait_for 60 two'
try "g1: flat with two" until_true 20 eval '[[ $(in_guest g1 domains | grep -c FLAT) == 2 ]]'
check_flat "$(in_guest g1 domains)" 2 0 "g1 flat, two vCPUs"

# The host has room now, two vCPUs on two pCPUs: the same kind of waits, and not
# one is looked at. All in one command, because dom0 works for each.
got=$(T=150 in_guest g1 'insmod /t/lockload.ko class=mutex threads=2 hold_us=100 gap_us=100 sleep_us=50000
	echo auto >$S/hints/mode
	look() { read -r o <$S/gate/opened; echo $o $(cat $S/stats/contended_mutex $S/stats/holder_preempted $S/stats/sent); }
	ops() { cat /sys/kernel/debug/lockload/ops; }
	usleep 2000000	# a sample at least
	wait_for 60 grep -q closed $S/gate/state || echo the gate did not close
	n=$(ops) before=$(look)
	usleep 6000000
	echo "$before -> $(look) ops $(($(ops) - n)) permille $(cat $S/gate/steal_permille)"
	echo off >$S/hints/mode
	rmmod lockload')
note "idle host, gate opened and waits seen: $got"
is "$(sed 's/.* -> //; s/ ops.*//' <<<"$got")" "${got%% -> *}" "idle host: the gate stays closed, nothing is counted or yielded"
above "$(sed 's/.* ops //; s/ .*//' <<<"$got")" 20 "idle host: there was contention"

try "xl vcpu-set 4 while flat" on dom0 'xl vcpu-set --ignore-host g1 4'
try "g1: they come back" in_guest g1 'for c in 2 3; do f=/sys/devices/system/cpu/cpu$c/online; wait_for 60 test -e $f && { [ $(cat $f) = 1 ] || echo 1 >$f; } || exit 1; done'
try "g1: flat as before with four" until_true 20 eval '[[ $(in_guest g1 domains) == "$flat" ]]'

# saved and restored while flat
shot='cd /sys/kernel/tandem; for f in topology/flatten topology/variant topology/state topology/rebuilds hints/mode gate/opened stats/*; do echo "$f $(cat $f)"; done'
before=$(on g1 "$shot")
id=$(on dom0 'xl domid g1')
T=200 try "xl save" domu_save g1
T=200 try "xl restore" domu_restore g1
is "$(on dom0 'xl domid g1' | awk -v old="$id" '{ print ($1 > old) }')" 1 "g1 is another domain now"
is "$(on g1 "$shot")" "$before" "g1: state and counters are kept"
is "$(in_guest g1 domains)" "$flat" "g1: flat as before"
above "$(on g1 'cat /sys/kernel/tandem/vcpu/cpu0/steal_ns')" -1 "g1: steal can be read"
try "g1: variant flat-llc after the restore" tandem g1 topology/variant flat-llc
check_flat "$(in_guest g1 domains)" 4 4 "g1 flat-llc, restored"

for g in $G; do xen_unload "$g"; done
self_check dom0
tap_done
