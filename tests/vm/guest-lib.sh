# SPDX-License-Identifier: GPL-2.0
# What the tests run inside a guest: ". /t/lib.sh" (busybox sh).

D=/sys/kernel/debug/sched/domains
S=/sys/kernel/tandem

# domains: every sched domain of every CPU, a line each: CPU, level, name, span,
# flags. The span comes from /proc/schedstat, whose format gained the name.
domains() {
	for c in $(ls $D | sort); do
		for d in $(ls $D/$c | sort); do
			span=$(awk -v c="$c" -v d="$d" '/^cpu/ { in_c = ($1 == c) }
				in_c && $1 == d { print ($2 ~ /^[0-9a-f,]+$/ ? $2 : $3) }' /proc/schedstat)
			echo "$c $d $(cat $D/$c/$d/name) span=$span flags=$(cat $D/$c/$d/flags)"
		done
	done
}

# wait_for SECONDS COMMAND...: until it succeeds
wait_for() {
	n=$(($1 * 10))
	shift
	until "$@"; do
		n=$((n - 1))
		[ $n -gt 0 ] || return 1
		usleep 100000
	done
}

state_is() { [ "$(cat $S/topology/state)" = "$1" ]; }

# counters DIR: "name value" of each statistic
counters() { for f in "$1"/*; do [ -f "$f" ] && echo "${f##*/} $(cat "$f")"; done; }

# snapshot: all that tandem could leave behind
leftovers() {
	ls -d $S 2>/dev/null
	grep -w tandem /proc/modules
	cat /sys/kernel/debug/kprobes/list
	ls -d /sys/module/tandem 2>/dev/null
	ls -d /sys/kernel/tracing/events/tandem 2>/dev/null
	cat /sys/devices/system/cpu/hotplug/states | grep tandem
	true
}
