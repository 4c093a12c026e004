# SPDX-License-Identifier: GPL-2.0
# What tandem costs: a contended lock event, flatten and restore, the agent.
# What each metric means is in docs/bench.md.
# shellcheck shell=bash

PARTS="policy tandemd events topology4 topology64 kvm"
RIG_PARTS="events topology4 topology64 kvm"
FOOTER=(
	"native_* and tandemd_*: this machine, at its own speed."
	"tcg_* and kvm_*: inside an emulator. Their nanoseconds are 10 to 50 times and more too long, exits longer"
	"still: compare them with each other (off, gated, hinting, the yardstick), and with nothing else."
)
ROUNDS=${ROUNDS:-9}
KVM_ROUNDS=${KVM_ROUNDS:-5}

bench_environment() {
	local release qemu

	release=$(cat "$CACHE"/root-*/kernels/"${KERNEL:-6.12}"/release 2>/dev/null | head -n 1)
	qemu=$(chroot "$(echo "$CACHE"/root-????????????????)" qemu-system-x86_64 --version 2>/dev/null | sed -n 's/^QEMU emulator version //p')
	printf 'guest kernel: %s\nqemu: %s\n' "${release:-root not made yet}" "${qemu:-root not made yet}"
}

# --- the policy alone, natively --------------------------------------------------
part_policy() {
	local verdict ns i n=200000 ir

	need_packages gcc libc6-dev
	progress "policy: one call of tandem_policy_event(), natively"
	gcc -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror \
		-I"$TOP/guest-kmod" -o "$BUILD/bench/policy_cost" \
		"$TOP/tests/bench/policy_cost.c" "$TOP/guest-kmod/policy.c" || unmeasured "policy_cost does not build"
	for verdict in sustain budget tries send; do
		ns=()
		for ((i = 0; i < ROUNDS; i++)); do
			ns+=("$("$BUILD/bench/policy_cost" "$verdict" "$n" 9)") || unmeasured "policy_cost $verdict failed"
		done
		metric "native_policy_$verdict" ns "${ns[@]}"
	done
	if ! command -v valgrind >/dev/null; then
		remark "No native_policy_*_instructions: valgrind is not installed."
		return
	fi
	for verdict in sustain budget tries send; do
		ir=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=tandem_policy_event \
			"$BUILD/bench/policy_cost" "$verdict" 10000 1 2>&1 >/dev/null | sed -n 's/.*Collected : //p')
		[[ ${ir:-0} -gt 0 ]] || unmeasured "callgrind collected nothing for $verdict"
		metric "native_policy_${verdict}_instructions" instructions "$(awk -v n="$ir" 'BEGIN { printf "%.1f", n / 10000 }')"
	done
}

# --- the agent, natively ---------------------------------------------------------
RUN_SECONDS=${RUN_SECONDS:-20}

# agent_root DIR: a root with this machine's /proc and /dev, and the module's
# files as a guest of two vCPUs shows them.
agent_root() {
	local d=$1/sys/kernel/tandem f

	mkdir -p "$d"/{topology,hints,gate,stats}
	ln -sfn /proc "$1/proc"
	ln -sfn /dev "$1/dev"
	ln -sfn /sys/devices "$1/sys/devices"
	while read -r f v; do printf '%s\n' "$v" >"$d/$f"; done <<-'FILES'
	version 0.1.0
	hypervisor kvm
	features steal-time preempted sched-yield
	topology/flatten auto
	topology/variant flat
	topology/state flat
	topology/reason auto: steal was seen
	hints/mode auto
	hints/state gated
	gate/state closed
	gate/steal_permille 0
	FILES
	for f in contended_mutex contended_rwsem contended_spin contended_other holder_unknown holder_asleep \
		holder_self holder_running holder_idle holder_preempted suppressed_sustain suppressed_budget \
		suppressed_tries sent failed; do
		echo 1234567 >"$d/stats/$f"
	done
}

# usage PID: CPU ns, voluntary switches of all threads; resident KiB
usage() {
	awk 'FILENAME ~ /schedstat$/ { ns += $1 }
		/^voluntary_ctxt_switches/ && FILENAME ~ /task/ { sw += $2 }
		/^VmRSS/ && FILENAME !~ /task/ { rss = $2 }
		END { printf "%d %d %d\n", ns, sw, rss }' \
		/proc/"$1"/status /proc/"$1"/task/*/schedstat /proc/"$1"/task/*/status
}

part_tandemd() {
	local dir=$BUILD/bench/agent.$$ pid script i a b cpu=() wake=() rss=() period

	make --no-print-directory -C "$TOP" agent BUILD="$BUILD" >"$BUILD/bench/agent.log" 2>&1 || {
		tail -n 20 "$BUILD/bench/agent.log" >&2
		unmeasured "building tandemd failed"
	}
	agent_root "$dir/root"
	printf '[tandemd]\n' >"$dir/conf"
	# the other side of its port is a terminal that script reads all the time
	script -qfc "exec '$BUILD/bin/tandemd' -c '$dir/conf' --root '$dir/root' --port \"\$(tty)\" --socket none" /dev/null \
		</dev/null >"$dir/out" 2>&1 &
	script=$!
	# shellcheck disable=SC2064
	trap "kill $script 2>/dev/null; rm -rf '$dir'" EXIT
	for ((i = 0; i < 50; i++)); do
		pid=$(pgrep -P "$script" -x tandemd) && grep -q '"type":"report"' "$dir/out" && break
		sleep 0.2
	done
	[[ -n $pid ]] && grep -q '"type":"report"' "$dir/out" ||
		unmeasured "tandemd sends no report: $(head -c 300 "$dir/out")"
	sleep 2
	period=$(grep -o '"period_ms":[0-9]*' "$dir/out" | head -n 1)
	for i in 1 2 3; do
		progress "tandemd natively, $RUN_SECONDS s ($i of 3)"
		a=$(usage "$pid") t=$(date +%s%N)
		sleep "$RUN_SECONDS"
		b=$(usage "$pid") t=$(($(date +%s%N) - t))
		[[ -d /proc/$pid ]] || unmeasured "tandemd ended: $(tail -n 1 "$dir/out")"
		# shellcheck disable=SC2086
		set -- $a $b
		cpu+=("$(awk -v d=$(($4 - $1)) -v t="$t" 'BEGIN { printf "%.4f", d / t * 3600 }')")
		wake+=("$(awk -v d=$(($5 - $2)) -v t="$t" 'BEGIN { printf "%.3f", d / t * 1e9 }')")
		rss+=("$(awk -v k="$6" 'BEGIN { printf "%.3f", k / 1024 }')")
	done
	grep -q '"module":{' "$dir/out" || unmeasured "tandemd did not see the module's files"
	i=$(grep -c '"type":"report"' "$dir/out")
	metric tandemd_cpu "s/h" "${cpu[@]}"
	metric tandemd_wakeups "1/s" "${wake[@]}"
	metric tandemd_rss MiB "${rss[@]}"
	aim tandemd_cpu "< 3"
	aim tandemd_wakeups "<= 1"
	aim tandemd_rss "<= 4"
	remark "tandemd: ${period/*:/period_ms } on $(nproc) CPUs, $i reports sent meanwhile; module's files simulated."
}

# --- one contended event, plain TCG guest, test hypervisor -------------------------
# Guest functions. Each event file's line is EVENTS NS NS_EMPTY.
guest_functions() {
	cat <<-'SH'
	E=/sys/kernel/debug/eventcost S=/sys/kernel/tandem P=/sys/module/eventcost/parameters
	C="holder_unknown holder_running holder_preempted suppressed_tries sent"
	counts() { if [ -d $S ]; then cd $S/stats; echo $(cat $C); else echo 0 0 0 0 0; fi; }
	# one LABEL FILE: measure, with what the module counted before and after
	one() { a=$(counts); l=$(taskset 1 cat $E/$2) || { echo "FAILED $1"; return; }
		echo "$1 $l $a $(counts)"; }
	# want LABEL FILE COUNTER: again until nearly all events went that way
	want() { for try in 1 2 3 4 5 6; do
		before=$(cat $S/stats/$3); one $1 $2; after=$(cat $S/stats/$3)
		[ $(((after - before) * 50)) -lt $((49 * $(cat $P/events) * $(cat $P/batches))) ] || break
		done; }
	# the most permissive tunables: every event with a preempted holder is sent
	permissive() { echo 1 >$S/hints/sustain; echo 100 >$S/hints/tries
		echo 100000 >$S/hints/budget; echo 10 >$S/hints/window_us; }
	SH
}

# spans OUT LABEL BATCHES [COLUMN WHAT]: ns per event of each round; only of those
# in which at least 98 % of the events went the way that a counter counts. Columns
# from 5 on are the counters before, from 10 on after.
spans() {
	awk -v l="$2" -v b="$3" -v c="${4:-0}" '
		$1 == l && (!c || $(c + 5) - $c >= $2 * b * 0.98) { printf "%.2f\n", ($3 - $4) / $2 }' "$1"
}

# report OUT PREFIX LABEL BATCHES [COLUMN WHAT]: a metric of that
report() {
	local values

	mapfile -t values < <(spans "$1" "$3" "$4" "${5:-}")
	[[ ${#values[@]} -ge 3 ]] || unmeasured "$3: in ${#values[@]} rounds only were the events $6"
	metric "$2_$3" ns "${values[@]}"
}

# ratio OUT PREFIX LABEL BATCHES COLUMN: how many yardsticks of the same round
# that was. Rounds begin with a line "round".
ratio() {
	local values

	mapfile -t values < <(awk -v l="$3" -v b="$4" -v c="$5" '
		function out() { if (x && y) printf "%.3f\n", x / y; x = y = 0 }
		$1 == "round" { out() }
		$1 == "yardstick" { y = ($3 - $4) / $2 }
		$1 == l && $(c + 5) - $c >= $2 * b * 0.98 { x = ($3 - $4) / $2 }
		END { out() }' "$1")
	metric "$2_$3_ratio" yardsticks "${values[@]}"
}

BATCHES=5

part_events() {
	local out=$JOB/events round order label column what

	progress "events: building the modules for $KERNEL"
	give test
	give_bench_module eventcost
	guest_functions >"$JOB/overlay/t/bench.sh"
	cat >>"$JOB/overlay/t/bench.sh" <<-'SH'
	off() { one yardstick lock; one free_off free; one held_off spin; }
	gated() { insmod /t/test.ko flatten=off hints=auto || { echo FAILED insmod; return; }
		grep -q gated $S/hints/state || echo FAILED gated
		one free_gated free; one held_gated spin; rmmod tandem; }
	hinting() { insmod /t/test.ko flatten=off hints=on || { echo FAILED insmod; return; }
		grep -q active $S/hints/state || echo FAILED active
		want free_hinting free holder_unknown; want held_hinting spin holder_running
		# the holder's vCPU counts as preempted from here on
		echo 2 >/sys/module/tandem/parameters/test_preempted
		want held_back spin suppressed_tries; permissive; want sent_no_hypercall spin sent; rmmod tandem; }
	SH
	progress "events: booting a plain guest"
	plain_start p "$KERNEL" "-smp 2"
	on p "insmod /t/eventcost.ko events=10000 batches=$BATCHES" ||
		unmeasured "eventcost.ko does not load: $(on p 'dmesg | tail -n 2')"
	for ((round = 1; round <= ROUNDS; round++)); do
		progress "events: round $round of $ROUNDS"
		order="off gated hinting"
		((round % 2)) || order="hinting gated off"
		echo round >>"$out"
		T=120 on p ". /t/bench.sh; for i in $order; do \$i; done" >>"$out" || unmeasured "round $round failed"
	done
	! grep FAILED "$out" >&2 || unmeasured "see above"
	clean_log p || unmeasured "the guest's log is not clean"
	for label in yardstick free_off free_gated held_off held_gated; do
		report "$out" tcg "$label" $BATCHES
	done
	while read -r label column what; do
		report "$out" tcg "$label" $BATCHES "$column" "$what"
		ratio "$out" tcg "$label" $BATCHES "$column"
	done <<-'LIST'
	free_hinting 5 without a holder
	held_hinting 6 with a running holder
	held_back 8 with a preempted holder and held back
	sent_no_hypercall 9 with a preempted holder and sent
	LIST
}

# --- flatten and restore ------------------------------------------------------------
# 64 vCPUs take long: 64 threads of the emulator on what CPUs there are
BOOT_SECONDS=${BOOT_SECONDS:-400}

topology() {
	local vcpus=$1 smp=$2 flat back

	give test
	progress "topology: booting a plain guest with $vcpus vCPUs"
	# by default all CPUs come up at once and wait for each other, spinning
	plain_start p "$KERNEL" "$smp" cpuhp.parallel=0
	[[ $(on p 'grep -c ^processor /proc/cpuinfo') -eq $vcpus ]] || unmeasured "not all of the $vcpus vCPUs came up"
	on p dmesg >"$JOB/dmesg"
	progress "topology: $vcpus vCPUs are up; $ROUNDS rounds"
	T=200 on p "insmod /t/test.ko flatten=off hints=off || exit 1
		cd /sys/kernel/tandem/topology
		for i in \$(seq $ROUNDS); do
			echo on >flatten; grep -qx flat state || exit 2
			echo off >flatten; grep -qx native state || exit 3
			echo \$(cat flatten_ns restore_ns)
		done
		rmmod tandem" >"$JOB/ns" || unmeasured "flatten and restore failed: $(on p 'dmesg | tail -n 2')"
	clean_log p || unmeasured "the guest's log is not clean"
	mapfile -t flat < <(awk '{ printf "%.3f\n", $1 / 1e6 }' "$JOB/ns")
	mapfile -t back < <(awk '{ printf "%.3f\n", $2 / 1e6 }' "$JOB/ns")
	metric "tcg_flatten_${vcpus}_vcpus" ms "${flat[@]}"
	metric "tcg_restore_${vcpus}_vcpus" ms "${back[@]}"
}

part_topology4() { topology 4 "-smp 4,sockets=1,cores=2,threads=2"; }
part_topology64() { topology 64 "-smp 64,sockets=2,cores=16,threads=2"; }

# --- one contended event, KVM guest ---------------------------------------------------
# Two vCPUs on one pCPU: a holder that runs is preempted whenever the waiter runs.
part_kvm() {
	local out=$JOB/events round order label tried worked

	progress "kvm: building the modules for $KERNEL"
	give product
	give_bench_module eventcost
	guest_functions >"$JOB/overlay/t/bench.sh"
	cat >>"$JOB/overlay/t/bench.sh" <<-'SH'
	set_() { echo $2 >$P/$1; }
	many() { set_ events 500; set_ batches 30; set_ settle_ms 30; }
	few() { set_ events 20; set_ batches 1; }
	off() { many; one yardstick lock; one free_off free; one held_off spin; few; set_ batches 3; one yield_in_vain yield; }
	gated() { many; insmod /t/product.ko flatten=off hints=auto || { echo FAILED insmod; return; }
		# two vCPUs on one pCPU steal from each other: keep the gate closed
		echo 1000 >$S/gate/open_permille
		grep -q gated $S/hints/state || echo FAILED gated
		one free_gated free; one held_gated spin; rmmod tandem; }
	hinting() { many; insmod /t/product.ko flatten=off hints=on || { echo FAILED insmod; return; }
		grep -q active $S/hints/state || echo FAILED active
		want free_hinting free holder_unknown; want held_back spin suppressed_tries
		permissive; few; want sent_followed spin sent; rmmod tandem; }
	SH
	progress "kvm: booting a host with one pCPU, and a guest with two vCPUs"
	host_start 1
	# while it waits the channel says on standard output that it waits
	guest_start g "$KERNEL" 2,sockets=1,cores=2,threads=1 >/dev/null
	on g "insmod /t/eventcost.ko batches=$BATCHES" ||
		unmeasured "eventcost.ko does not load: $(on g 'dmesg | tail -n 2')"
	tried=$(on host 'cat /sys/kernel/debug/kvm/directed_yield_attempted')
	worked=$(on host 'cat /sys/kernel/debug/kvm/directed_yield_successful')
	for ((round = 1; round <= KVM_ROUNDS; round++)); do
		progress "kvm: round $round of $KVM_ROUNDS"
		order="off gated hinting"
		((round % 2)) || order="hinting gated off"
		echo round >>"$out"
		T=120 on g ". /t/bench.sh; for i in $order; do \$i; done" >>"$out" || unmeasured "round $round failed"
	done
	tried=$(($(on host 'cat /sys/kernel/debug/kvm/directed_yield_attempted') - tried))
	worked=$(($(on host 'cat /sys/kernel/debug/kvm/directed_yield_successful') - worked))
	! grep FAILED "$out" >&2 || unmeasured "see above"
	clean_log g || unmeasured "the guest's log is not clean"
	self_check g
	for label in yardstick free_off free_gated held_off held_gated yield_in_vain; do
		report "$out" kvm "$label" 30
	done
	report "$out" kvm free_hinting 30 5 "without a holder"
	ratio "$out" kvm free_hinting 30 5
	report "$out" kvm held_back 30 8 "with a preempted holder and held back"
	ratio "$out" kvm held_back 30 8
	report "$out" kvm sent_followed 1 9 "with a preempted holder and sent"
	remark "kvm: the host counted $tried directed yields, $((60 * KVM_ROUNDS)) of them yield_in_vain; $worked successful."
}
