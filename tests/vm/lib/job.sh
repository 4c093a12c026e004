# SPDX-License-Identifier: GPL-2.0
# First line of every test in t/: the rig, a job folder, the overlay for guests.
# shellcheck shell=bash

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
KERNEL=${KERNEL:-6.12}
JOB=${JOB:-$BUILD/vm/$(basename "$0" .t)-$KERNEL}
for part in root image vm xen tap; do
	# shellcheck source=/dev/null
	. "$RIG_DIR/lib/$part.sh"
done
unset part

rig_setup
job_init
cp "$RIG_DIR/guest-lib.sh" "$JOB/overlay/t/lib.sh"

# give WHAT...: put built things into the guests' overlay, below /t; modules into
# that of the guests with this KERNEL, and without debug information, as packages
# install them: it is nine tenths of the file, and each load reads all of it.
give() {
	local what

	mkdir -p "$JOB/overlay-$KERNEL/t"
	for what in "$@"; do
		case $what in
		product | test)
			build_kmod "$KERNEL" "$what"
			stripped "$KERNEL-$what/tandem.ko" "$what.ko" ;;
		lockload)
			build_kmod "$KERNEL" lockload
			stripped "$KERNEL-lockload/lockload.ko" lockload.ko ;;
		agent)
			build_agent
			add_built "$JOB/overlay" tandemd tandemctl ;;
		*) die "give: nothing is called $what" ;;
		esac
	done
}

stripped() {
	in_root strip --strip-debug -o "$(rig_path "$JOB")/overlay-$KERNEL/t/$2" "/build/kmod/$1" ||
		die "could not strip $1"
}

# add_built DIR PROGRAM...: our programs with their libraries.
add_built() {
	local dir=$1 p lib

	shift
	mkdir -p "$dir/usr/bin"
	for p in "$@"; do
		cp "$BUILD/rig/bin/$p" "$dir/usr/bin/$p" || die "no $p was built"
		in_root ldd "/build/rig/bin/$p" | grep -o '/[^ ]*' | while read -r lib; do
			mkdir -p "$dir$(dirname "$lib")"
			[[ -e $dir$lib || ! -e $RIG_ROOT$lib ]] || cp -L "$RIG_ROOT$lib" "$dir$lib"
		done
	done
}

# in_guest NAME COMMANDS: with the guest's own library loaded.
in_guest() { on "$1" ". /t/lib.sh; $2"; }

# watch_own_yields NAME, own_yields NAME: calls since then of the two functions
# of the guest's kernel for which KVM counts a directed yield as it does for
# ours: call-function IPIs, and the kick of a halted spinlock waiter
# (KVM_HC_KICK_CPU yields to whom it wakes). From kprobe events.
OWN_YIELDS="ipi:kvm_smp_send_call_func_ipi kick:kvm_kick_cpu"
watch_own_yields() {
	on "$1" "cd /sys/kernel/tracing
		for p in $OWN_YIELDS; do echo \"p:rig/\${p%:*} \${p#*:}\" >>kprobe_events || exit; done
		echo 1 >events/rig/enable"
}
own_yields() {
	on "$1" "awk '\$1 == \"ipi\" || \$1 == \"kick\" { n += \$2 + \$3 } END { print n + 0 }' /sys/kernel/tracing/kprobe_profile"
}

# ask_groupd NAME...: groupd's table of these guests of the host in JOB/table,
# its words in JOB/table.err; fails if it did not hear all of them.
ask_groupd() {
	local args='' g

	for g in "$@"; do args+=" --socket $g=/run/$g.agent.sock"; done
	on host "/build/rig/bin/tandem-groupd --once --timeout 20$args" >"$JOB/table" 2>"$JOB/table.err"
}

# below_numa DUMP: without the lines of NUMA levels
below_numa() { grep -v -E ' (NUMA|NODE) ' <<<"$1"; }
numa_only() { grep -E ' (NUMA|NODE) ' <<<"$1" | sed 's/domain[0-9]*/domain/'; }

# check_flat DUMP CPUS WANTED-LLC LABEL: one FLAT domain for each CPU, with
# exactly the flags of the variant, and nothing else below NUMA.
check_flat() {
	local flat

	flat=$(below_numa "$1")
	is "$(wc -l <<<"$flat")" "$2" "$4: one level for each CPU below NUMA"
	is "$(awk '{ print $3 }' <<<"$flat" | sort -u)" FLAT "$4: its name is FLAT"
	is "$(grep -c -E 'SD_SHARE_(LLC|PKG_RESOURCES)' <<<"$flat")" "$3" "$4: shared cache flag as the variant says"
	is "$(grep -c -E 'SD_SHARE_CPUCAPACITY|SD_CLUSTER|SD_NUMA' <<<"$flat")" 0 "$4: no SMT, cluster or NUMA flag"
}

# cycles NAME BUILD COUNT: load flat and hinting, unload, COUNT times, beside
# lock contention and hackbench; both variants by turns. A cycle waits for some
# ten RCU grace periods and decompresses many symbols, and the load takes all the
# CPU there is: so it comes first in the queue, and after the first 5 cycles the
# grace periods are expedited.
cycles() {
	# KiB: what slabs of hackbench and others come to, and a leak a cycle
	local grown allowed=$((1024 + $3 * 16))

	T=$((200 + $3 * 10)) try "$3 load-unload cycles under load" on "$1" "
		insmod /t/lockload.ko class=mutex threads=3 hold_us=50 gap_us=50 sleep_us=2000 || exit 1
		(while :; do hackbench -g 1 -f 1 -l 50 >/dev/null; usleep 500000; done) & load=\$!
		i=0
		while [ \$i -lt $3 ]; do
			[ \$i -ne 10 ] || { echo 3 >/proc/sys/vm/drop_caches
				awk '/SUnreclaim/ { print \$2 }' /proc/meminfo >/tmp/mem0; }
			[ \$i -ne 5 ] || echo 1 >/sys/kernel/rcu_expedited
			[ \$((i % 20)) -ne 0 ] || echo \# cycle \$i at \$(cat /proc/uptime)
			v=flat; [ \$((i % 2)) = 0 ] || v=flat-llc
			nice -n -19 insmod /t/$2.ko flatten=on hints=on variant=\$v || exit 2
			[ \"\$(cat /sys/kernel/tandem/topology/state)\" = flat ] ||
				{ echo \# cycle \$i: \$v is \$(cat /sys/kernel/tandem/topology/state); exit 3; }
			[ \"\$(cat /sys/kernel/tandem/hints/state)\" = active ] ||
				{ echo \# cycle \$i: hints are \$(cat /sys/kernel/tandem/hints/state); exit 4; }
			nice -n -19 rmmod tandem || exit 5
			i=\$((i + 1))
		done
		echo 0 >/sys/kernel/rcu_expedited
		kill \$load; killall -q hackbench; rmmod lockload
		while killall -q -0 hackbench; do usleep 100000; done
		echo 3 >/proc/sys/vm/drop_caches
		awk '/SUnreclaim/ { print \$2 }' /proc/meminfo >/tmp/mem1"
	is "$(in_guest "$1" leftovers)" "" "nothing outlives the module"
	grown=$(on "$1" 'echo $(($(cat /tmp/mem1) - $(cat /tmp/mem0)))' 2>&1)
	note "unreclaimable slab after the cycles: $grown KiB more"
	above "$allowed" "$grown" "the memory was given back (less than 16 KiB a cycle and 1 MiB is missing)"
	try "clean log" clean_log "$1"
}
