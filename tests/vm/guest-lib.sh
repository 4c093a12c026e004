# SPDX-License-Identifier: GPL-2.0
# What the tests run inside a guest: ". /t/lib.sh" (busybox sh).

D=/sys/kernel/debug/sched/domains
S=/sys/kernel/tandem

# domains: every sched domain of every CPU, a line each: CPU, level, name, span,
# flags. The span comes from /proc/schedstat, whose format gained the name. With
# few processes: making one is what costs in a PV guest.
domains() {
	awk '/^cpu/ { c = $1 } /^domain/ { print c, $1, ($2 ~ /^[0-9a-f,]+$/ ? $2 : $3) }' /proc/schedstat | sort |
	while read -r c d span; do
		read -r name <$D/$c/$d/name
		read -r flags <$D/$c/$d/flags
		echo "$c $d $name span=$span flags=$flags"
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

# busy SECONDS CLASS: three threads that contend for a lock, beside a loop, for
# that long; it goes on by itself, because a busy guest answers slowly. Then
# busy_result prints a line: how often it looked, how often the gate was open, how
# many vCPUs it saw preempted in all, and the highest permille of steal.
busy() {
	rm -f /tmp/busy
	insmod /t/lockload.ko class=$2 threads=3 hold_us=300 gap_us=100 || return
	echo "while :; do :; done" >/tmp/spin.sh
	sh /tmp/spin.sh >/dev/null 2>&1 </dev/null &
	echo $! >/tmp/spin
	echo ". /t/lib.sh; look $1" >/tmp/look.sh
	nice -n -19 sh /tmp/look.sh >/dev/null 2>&1 </dev/null &
}

# what busy runs, before all else in the queue, and with one process a look
look() {
	looks=0 open=0 preempted=0 most=0
	read -r up rest </proc/uptime
	end=$((${up%.*} + $1))
	while [ ${up%.*} -lt $end ]; do
		looks=$((looks + 1))
		usleep 100000
		read -r up rest </proc/uptime
		[ -e $S/gate/state ] || continue
		read -r v <$S/gate/state
		[ $v != open ] || open=$((open + 1))
		read -r v <$S/gate/steal_permille
		[ $v -le $most ] || most=$v
		for f in $S/vcpu/cpu*/preempted; do
			read -r v <$f
			preempted=$((preempted + v))
		done
	done
	kill $(cat /tmp/spin)
	rmmod lockload
	echo $looks $open $preempted $most >/tmp/busy.new
	mv /tmp/busy.new /tmp/busy
}

busy_result() { wait_for 120 test -e /tmp/busy && cat /tmp/busy; }

# sum FILE...: of the numbers in them (busybox awk's %d has 32 bits)
sum() { cat "$@" | awk '{ s += $1 } END { printf "%.0f\n", s }'; }
