#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tandemd in a guest and tandem-groupd on the machine, over a real virtio-serial
# port: reports equal /proc and sysfs and come in time; reader, guest, port and
# agent go and come back; nonsense from any side changes nothing.
. "$(dirname "$0")/../lib/job.sh"

DIR=$(rig_path "$JOB")
TALK=/tandem/tests/vm/lib/talk.pl
GROUPD=/build/rig/bin/tandem-groupd
PORT=$DIR/p.agent.sock
CTL=$DIR/groupd.sock
SLACK=2000	# ms that the emulator and two shared cores may add

give agent test
for f in /usr/bin/perl /usr/lib/x86_64-linux-gnu/perl-base/{strict,warnings}.pm; do
	add_file "$JOB/overlay" "$f"
done
cp "$RIG_DIR/lib/talk.pl" "$JOB/overlay/t/"

# --- bad input --------------------------------------------------------------------

# bad_confs DIR SECTION NUMBER-KEY TEXT-KEY
bad_confs() {
	local s="[$2]\n" long

	mkdir -p "$1"
	cd "$1" || exit 1
	printf -v long '%0300d' 0
	printf 'what is this\n' >nonsense
	printf "[$2\n$3 = 500" >truncated
	printf "${s}$3\n" >no-value
	printf "${s}colour = red\n" >unknown-key
	printf "[other]\n$3 = 500\n" >unknown-section
	printf "$3 = 500\n" >no-section
	printf "${s}$3 = 99999999\n" >range
	printf "${s}$3 = -1\n" >negative
	printf "${s}$3 = 1e3\n" >exponent
	printf "${s}$3 = 99999999999999999999\n" >huge
	printf "${s}$3 =\n" >empty
	printf "${s}$3 = 500\n$3 = 500\n" >twice
	printf "${s}$3 = 500\n  more\n" >indented
	printf "${s}$4 = /$long\n" >long-line
	printf "${s}$3 = 500\0\n" >nul
	printf "${s}$4 = relative/path\n" >relative
	head -c 4096 /dev/urandom >binary
	yes '# comment' | head -c 70000 >large
	cd "$OLDPWD" || exit 1
}
bad_confs "$JOB/overlay/t/bad" tandemd period_ms socket
bad_confs "$JOB/bad" groupd interval_s socket

# what a peer should not send
mkdir -p "$JOB/overlay/t/hostile"
(
	cd "$JOB/overlay/t/hostile" || exit 1
	printf 'hello %%s%%n \033[2J\n' >nonsense
	printf '{"v":1,"type":"po\n' >truncated
	printf '[1,2]\n' >array
	printf '[[[[[[[[[[[[[[[[\n' >deep
	printf '{"v":2,"type":"poll"}\n' >version
	printf '{}\n' >nothing
	printf '{"v":1,"type":"poll"}\n' >poll
	head -c 1048576 /dev/zero | tr '\0' x >large
	echo >>large
	yes nonsense | head -n 3000 >flood
	head -c 65536 /dev/urandom >binary
	echo >>binary
)

# --- in the guest -------------------------------------------------------------

# /t/agent.sh: conf KEY=VALUE..., agent_start [OPTION...], agent_end SIGNAL, facts
cat >"$JOB/overlay/t/agent.sh" <<'GUEST'
conf() {
	mkdir -p /etc/tandem
	echo "[tandemd]" >/etc/tandem/tandemd.conf
	for kv in "$@"; do echo "${kv%%=*} = ${kv#*=}"; done >>/etc/tandem/tandemd.conf
}

# its log and its status, however it ends, are in /tmp/td.log and /tmp/td.status
agent_start() {
	rm -f /tmp/td.status
	: >/tmp/td.log
	(tandemd "$@" >>/tmp/td.log 2>&1 </dev/null & echo $! >/tmp/td.pid
	wait $!; echo $? >/tmp/td.status) >/dev/null 2>&1 </dev/null &
	wait_for 20 test -S /run/tandem/tandemd.sock
}

agent_end() {
	kill -$1 $(cat /tmp/td.pid)
	wait_for 20 test -s /tmp/td.status && cat /tmp/td.status
}

seq_now() { tandemctl status --json | sed 's/.*"seq":\([0-9]*\).*/\1/'; }
seq_past() { [ "$(seq_now)" -gt "$1" ]; }
# after this, the newest sample is younger than the call
fresh() { wait_for 20 seq_past $(($(seq_now) + 1)); }

# ticks of CPU time, and how often it went to sleep
spent() {
	p=$(cat /tmp/td.pid)
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' /proc/$p/stat
	cat /proc/$p/task/*/status | awk '/^voluntary/ { n += $2 } END { print n }'
}

# over_quiet SECONDS: what it spent meanwhile, "TICKS SLEEPS"
over_quiet() {
	a=$(spent); sleep $1; b=$(spent)
	echo $a $b | awk '{ print $3 - $1, $4 - $2 }'
}

cpus() { tr ',' '\n' <$1 | awk -F- '{ n += (NF > 1 ? $2 - $1 + 1 : 1) } END { print n }'; }

# facts: what /proc and sysfs say, without any code of ours
facts() {
	e=/sys/devices/system/cpu
	echo "exact boot_id $(cat /proc/sys/kernel/random/boot_id)"
	echo "exact host $(cat /proc/sys/kernel/hostname)"
	echo "exact vcpus_online $(cpus $e/online)"
	echo "exact vcpus_present $(cpus $e/present)"
	awk '/^cpu / { f = "range %s_ms %.0f\n"; printf f, "used", ($2 + $3 + $4 + $7 + $8) * 10
		printf f, "idle", $5 * 10; printf f, "iowait", $6 * 10
		printf "exact steal_ms %.0f\n", $9 * 10 }' /proc/stat
	awk '{ printf "range uptime_ms %.0f\n", $1 * 1000 }' /proc/uptime
	awk '{ for (i = 1; i < 4; i++) { split("1 5 15", n, " ")
		printf "range load%s_centi %.0f\n", n[i], $i * 100 } }' /proc/loadavg
	if [ -e /proc/pressure/cpu ]; then
		sed -n 's/^some.*total=/range psi_total_us /p' /proc/pressure/cpu
	else
		echo "exact psi_total_us null"
	fi
	cd /sys/kernel/tandem 2>/dev/null || { echo "exact module null"; return; }
	while read -r key file; do
		v=$(cat $file 2>/dev/null)
		echo "exact module.$key ${v:-null}"
	done <<-END
	version version
	hypervisor hypervisor
	features features
	flatten topology/flatten
	variant topology/variant
	topology topology/state
	reason topology/reason
	hints_mode hints/mode
	hints_state hints/state
	gate gate/state
	gate_steal_permille gate/steal_permille
	END
	for f in contended_mutex contended_rwsem contended_spin contended_other holder_unknown \
		holder_asleep holder_self holder_running holder_idle holder_preempted \
		suppressed_sustain suppressed_tries suppressed_budget sent failed; do
		echo "range module.stats.$f $(cat stats/$f)"
	done
}
GUEST

guest() { in_guest p ". /t/agent.sh; $1"; }
said() { on p "grep -c -E '$1' /tmp/td.log"; true; }
says() { [[ $(said "$1") -ge ${2:-1} ]]; }
status_works() { on p 'tandemctl status' | grep -q '^vCPUs'; }

# said_n TEXT N NAME: the guest's log has that line N times, and not once more
said_n() {
	until_true 20 says "$1" "$2"
	is "$(said "$1")" "$2" "$3"
}

# quiet NAME: it sleeps between its samples. A spin takes all of a CPU, 300 ticks
# and more; what the machine takes from the emulator counts as the guest's, too.
quiet() {
	local ticks sleeps

	read -r ticks sleeps < <(guest 'over_quiet 3')
	note "$1: $ticks ticks of CPU and $sleeps sleeps in 3 s"
	above 150 "$ticks" "$1: it does not spin"
	above 150 "$sleeps" "$1: few wake-ups"
}

# --- on the machine -----------------------------------------------------------

talk() { in_root perl $TALK "$@"; }
once() { in_root $GROUPD --once --timeout "${1:-20}" --socket "p=$PORT" --json; }

groupd_start() {
	local name=groupd

	IN_ROOT_EXEC=exec in_root $GROUPD "$@" --socket "p=$PORT" >>"$JOB/groupd.log" 2>&1 </dev/null &
	VM_PID[$name]=$!
	until_true 20 test -S "$JOB/groupd.sock"
}

# unshare, which VM_PID names, does not pass signals on: it is killed with all,
# or its child, the daemon, gets the signal.
groupd_kill() { kill -KILL "${VM_PID[groupd]}"; wait "${VM_PID[groupd]}" 2>/dev/null; unset 'VM_PID[groupd]'; }
groupd_signal() {
	local child

	read -r child _ <"/proc/${VM_PID[groupd]}/task/${VM_PID[groupd]}/children"
	kill "-$1" "$child"
}
guests() { in_root /build/rig/bin/tandemctl -s "$CTL" guests --json 2>/dev/null; }
state() { guests | sed 's/.*"state":"\([a-z]*\)".*/\1/'; }
state_is() { [[ $(state) == "$1" ]]; }
groupd_said() { grep -c -E "$1" "$JOB/groupd.log"; true; }
groupd_says() { [[ $(groupd_said "$1") -ge ${2:-1} ]]; }
report_has() { guests | grep -q -- "$1"; }
now_ms() { printf '%d\n' $((${EPOCHREALTIME/./} / 1000)); }
vm_end() { kill -KILL "${VM_PID[p]}"; wait "${VM_PID[p]}" 2>/dev/null; unset 'VM_PID[p]'; }
qmp() { talk qmp "$DIR/p.qmp.sock" "$@"; }
unplug() { [[ $(qmp '{"execute":"device_del","arguments":{"id":"agentport"}}') == *return* ]]; }
# QEMU lets go of the port's chardev a moment after it has unplugged the port
plug() {
	local n out

	for n in {1..50}; do
		out=$(qmp '{"execute":"device_add","arguments":{"driver":"virtserialport","chardev":"agent","name":"org.tandem.agent.0","id":"agentport"}}')
		[[ $out == *return* ]] && return
		sleep 0.1
	done
	say "# after $n attempts: $out"
	return 1
}
# hostile FILE SECONDS [PAUSE]: send it to the guest as the host, print what comes back
hostile() { talk say "$PORT" "${@:2}" <"$JOB/overlay/t/hostile/$1"; }

# A report is equal to what was read before and after it: exact values to both,
# values that only grow or move lie between. Prints what is not so.
judge() {
	awk '
	FNR == 1 { n++ }
	n < 3 { k = $2; kind[k] = $1; v = $0; sub(/^[^ ]+ [^ ]+ /, "", v)
		if (n == 1) before[k] = v; else after[k] = v
		next }
	{ k = $1; v = $0; sub(/^[^ ]+ /, "", v); seen[k] = 1 }
	!(k in kind) { rest = rest " " k; next }
	kind[k] == "exact" { if (v != before[k] || v != after[k])
		print "wrong: " k " is " v ", was " before[k] ", then " after[k]; next }
	{ lo = before[k] + 0; hi = after[k] + 0; if (lo > hi) { t = lo; lo = hi; hi = t }
		if (v !~ /^[0-9]+$/ || v + 0 < lo || v + 0 > hi)
			print "wrong: " k " is " v ", not from " lo " to " hi }
	END { for (k in kind) if (!(k in seen)) print "missing: " k
		print "not judged:" rest }' "$@"
}

REST='agent demand_mcpu dropped group heartbeat_ms interval_ms period_ms psi_avg10_centi runq seq steal_max_mcpu steal_mcpu type used_mcpu v'

# equal LABEL: a report against /proc and sysfs
equal() {
	local r

	guest facts >"$JOB/before"
	guest fresh
	once >"$JOB/once" 2>"$JOB/once.err"
	ok $? "$1: a report comes"
	guest facts >"$JOB/after"
	talk flat <"$JOB/once" >"$JOB/flat"
	# none of it is there without pressure information
	is "$(judge "$JOB/before" "$JOB/after" "$JOB/flat")" "not judged: $REST" "$1: it says what /proc and sysfs said"
	r=$(<"$JOB/flat")
	value() { sed -n "s/^$1 //p" <<<"$r"; }
	is "$(value v) $(value type) $(value period_ms) $(value heartbeat_ms)" \
		"1 report 500 2000" "$1: version, type, periods"
	is "$(value agent)" "$(on p 'tandemd --version' | awk 'NR == 1 { print $NF }')" "$1: the agent's version"
	# a reader that leaves at once may leave one behind
	above "$(said 'the host reads')" $(($(value dropped) - 1)) "$1: no more dropped than readers came"
	is "$(value demand_mcpu)" $(($(value used_mcpu) + $(value steal_mcpu))) "$1: demand is used and stolen"
	above $((SLACK + 500)) "$(value interval_ms)" "$1: the sample's interval is about a period"
	above 2500 "$(value used_mcpu)" "$1: used is at most what 2 vCPUs can be"
	above "$(value runq)" -1 "$1: a run queue"
}

# ==============================================================================
plain_start p "$KERNEL" "-smp 2"

out=$(once 1 2>&1 >/dev/null)
is "$?" 1 "no agent yet: tandem-groupd --once fails"
like "$out" "not every named guest has answered within 1 s" "and says so"

# threshold_permille=1000: an idle guest has nothing to say but heartbeats
guest 'conf period_ms=500 heartbeat_ms=2000 threshold_permille=1000; agent_start'
said_n 'nobody reads on the host' 1 "one line: nobody reads yet"
said_n 'module tandem is not loaded' 1 "one line: no module"
equal "no module"
said_n 'the host reads' 1 "one line: the host reads"
said_n 'nobody reads on the host' 2 "one line: nobody reads any more"

on p 'insmod /t/test.ko flatten=off hints=on'
said_n 'module tandem [0-9.]+ found \(test\)' 1 "one line: the module is there"
# until there is something to compare
try "there is contention to count" on p 'n=0
	until [ $(($(cat /sys/kernel/tandem/stats/contended_* | tr "\n" "+")0)) -gt 0 ]; do
		n=$((n + 1)); [ $n -lt 20 ] || exit 1; hackbench -g 2 -f 4 -l 100 >/dev/null
	done'
equal "hints=on"
on p 'echo on >/sys/kernel/tandem/topology/flatten; hackbench -g 2 -f 4 -l 100 >/dev/null
	echo off >/sys/kernel/tandem/hints/mode'
equal "flat, hints=off"
is "$(grep -E '^module.topology|^module.hints_state' "$JOB/flat" | tr '\n' ' ')" \
	"module.hints_state off module.topology flat " "what was switched shows"
above "$(awk '/^module.stats.contended/ { n += $2 } END { print n }' "$JOB/flat")" 0 "there were counts to compare"
on p 'echo 0 >/sys/devices/system/cpu/cpu1/online'
equal "a vCPU offline"
on p 'echo 1 >/sys/devices/system/cpu/cpu1/online'

# --- in time -------------------------------------------------------------------
printf '[groupd]\nsocket = %s\n' "$CTL" >"$JOB/groupd.conf"
groupd_start -c "$DIR/groupd.conf"
try "the daemon has a report" until_true 20 state_is ok
talk watch "$CTL" 11 >"$JOB/watch"
note "heartbeats at (ms seq): $(awk '{ printf "%s:%s ", $1, $2 }' "$JOB/watch")"
# the first line is what was there already; in 11 s there are 5 heartbeats of 2 s
above "$(wc -l <"$JOB/watch")" 4 "heartbeat_ms=2000: 4 more reports in 11 s"
is "$(awk 'NR > 1 && $2 <= s { print } { s = $2 }' "$JOB/watch")" "" "the sequence only grows"
is "$(awk 'NR > 1 && $4 != n + 1 { print } { n = $4 }' "$JOB/watch")" "" "none came unseen"
is "$(awk -v most=$((2000 + 500 + SLACK)) 'NR > 1 && $1 - t > most { print } { t = $1 }' "$JOB/watch")" "" \
	"no gap is longer than heartbeat and period (and $SLACK ms of slack)"
is "$(awk 'NR > 2 && $1 - t < 1000 { print } { t = $1 }' "$JOB/watch")" "" "an idle guest sends no more than heartbeats"

# a change is told within a period, long before the heartbeat
guest 'conf period_ms=500 heartbeat_ms=600000 threshold_permille=1000; kill -HUP $(cat /tmp/td.pid)'
said_n 'configuration reloaded' 1 "SIGHUP reads the configuration"
change() {
	local start took

	on p "$1"
	start=$(now_ms)
	until_true 20 report_has "$2"
	took=$(($(now_ms) - start))
	note "$3: told after $took ms"
	above $((500 + SLACK)) "$took" "$3: told within its period of 500 ms (and $SLACK ms of slack)"
}
change 'echo off >/sys/kernel/tandem/topology/flatten' '"topology":"native"' "restored"
change 'echo on >/sys/kernel/tandem/topology/flatten' '"topology":"flat"' "flattened"
change 'echo 0 >/sys/devices/system/cpu/cpu1/online' '"vcpus_online":1,' "a vCPU offline"
change 'echo 1 >/sys/devices/system/cpu/cpu1/online' '"vcpus_online":2,' "a vCPU back"
change 'rmmod tandem' '"module":null' "the module unloaded"
said_n 'module tandem is gone' 1 "one line: the module is gone"
guest 'conf period_ms=60000 heartbeat_ms=600000; kill -HUP $(cat /tmp/td.pid)'
said_n 'configuration reloaded' 2 "SIGHUP again"

# --- the reader goes and comes back ---------------------------------------------
# Nothing samples for a minute now: what is noticed is noticed by the port alone.
reads='the host reads' nobody='nobody reads on the host'
pid=$(on p 'cat /tmp/td.pid')
came=$(said "$reads") went=$(said "$nobody")
for i in 1 2 3; do
	groupd_kill
	said_n "$nobody" $((went + i)) "reader killed, $i: one line in the guest"
	groupd_start -c "$DIR/groupd.conf"
	try "reader back, $i: reports flow" until_true 20 state_is ok
	said_n "$reads" $((came + i)) "reader back, $i: one line in the guest"
done
is "$(groupd_said 'guest p: connected') $(groupd_said 'guest p: gone')" "4 0" "each reader says once that it is connected"
groupd_signal TERM
wait "${VM_PID[groupd]}"
is "$?" 0 "SIGTERM ends tandem-groupd with 0"
unset 'VM_PID[groupd]'
is "$([[ -e $JOB/groupd.sock ]] && echo there)" "" "and its socket is removed"
said_n "$nobody" $((went + 4)) "one more line in the guest"
once >"$JOB/once" 2>/dev/null
is "$(sed 's/.*"report":\({.*}\)}\]}$/\1/' "$JOB/once")" "$(on p 'tandemctl status --json')" \
	"tandemctl and tandem-groupd say the same, to the byte"
guest 'conf period_ms=500 heartbeat_ms=2000 threshold_permille=1000; kill -HUP $(cat /tmp/td.pid)'
said_n 'configuration reloaded' 3 "SIGHUP once more"
quiet "nobody reads"

# --- the port goes and comes back -----------------------------------------------
groupd_start -c "$DIR/groupd.conf"
try "reports flow before the port goes" until_true 20 state_is ok
came=$(said "$reads") went=$(said "$nobody")
try "QEMU unplugs the port" unplug
said_n 'port .*: removed, looking for it' 1 "unplugged: one line"
try "unplugged: tandemctl works" status_works
quiet "unplugged"
seen=$(guests | sed 's/.*"reports":\([0-9]*\).*/\1/')
try "QEMU plugs it in again" plug
said_n "$reads" $((came + 1)) "plugged in: one line"
more() { [[ $(guests | sed 's/.*"reports":\([0-9]*\).*/\1/') -gt $((seen + 1)) ]]; }
try "plugged in: reports flow to the reader that was there" until_true 20 more
is "$(groupd_said 'guest p: gone')" 0 "which did not have to connect again"
groupd_kill
said_n "$nobody" $((went + 1)) "nobody reads"
try "QEMU unplugs it once more" unplug
said_n 'port .*: removed, looking for it' 2 "unplugged while nobody reads: one line"
try "and plugs it in" plug
said_n "$nobody" $((went + 2)) "plugged in: one line"
for i in 1 2 3 4 5; do unplug && plug || say "# unplugging failed, $i"; done
groupd_start -c "$DIR/groupd.conf"
try "after five quick ones: reports flow" until_true 20 state_is ok
is "$(on p 'cat /tmp/td.pid; kill -0 $(cat /tmp/td.pid) || echo gone')" "$pid" "all that with one tandemd"
try "clean log after unplugging" clean_log p

# --- the agent goes and comes back ----------------------------------------------
out=$(on p 'tandemd 2>&1'; echo "status $?")
like "$out" "another daemon serves it.*status 1" "a second tandemd says why it cannot start"
out=$(on p 'timeout 3 tandemd --socket none 2>&1')
is "$(grep -c 'cannot open it: Device or resource busy' <<<"$out")" 1 "one without a socket says once that the port is taken"
is "$(guest 'agent_end KILL; agent_start')" 137 "the agent is killed, and starts again over its old socket"
try "groupd says that it was restarted" until_true 20 groupd_says 'guest p: its agent was restarted'
is "$(guest 'agent_end INT; test -e /run/tandem/tandemd.sock || echo removed; agent_start' | tr '\n' ' ')" "0 removed " \
	"SIGINT ends it with 0, its socket is removed"
is "$(guest 'agent_end TERM; test -e /run/tandem/tandemd.sock || echo removed; agent_start' | tr '\n' ' ')" "0 removed " \
	"SIGTERM ends it with 0, its socket is removed"
is "$(on p 'stat -c %a /run/tandem/tandemd.sock')" 660 "mode of tandemd's socket"
is "$(stat -c %a "$JOB/groupd.sock")" 660 "mode of tandem-groupd's socket"

# --- configurations ---------------------------------------------------------------
# wrong "PROGRAM" FILE...: those that do not end with 2 and one line FILE:LINE
cat >"$JOB/wrong.sh" <<'SH'
for f in $FILES; do
	out=$($RUN -c $f --once 2>&1); status=$?
	echo "$out" | grep -q -E "^[a-z-]+: $f:[0-9]+: .*accepted: " && [ $status = 2 ] &&
		[ "$(echo "$out" | wc -l)" = 1 ] || echo "$f: status $status, says: $out"
done
SH
is "$(on p "RUN=tandemd; FILES=\$(ls /t/bad/*); $(<"$JOB/wrong.sh")")" "" "tandemd: each bad configuration is refused with FILE:LINE and 2"
is "$(in_root sh -c "RUN='$GROUPD --timeout 1'; FILES=\$(ls $DIR/bad/*); $(<"$JOB/wrong.sh")")" "" \
	"tandem-groupd: each bad configuration is refused with FILE:LINE and 2"
above "$(ls "$JOB/bad" | wc -l)" 14 "there were enough of them"
out=$(on p 'printf "[tandemd]\nperiod_ms = 5000\nheartbeat_ms = 4000\n" >/tmp/c; tandemd -c /tmp/c 2>&1'; echo "status $?")
like "$out" "/tmp/c: heartbeat_ms is less than period_ms.*status 2" "two keys that do not fit are refused"
out=$(on p 'for o in --period-ms=5 --period-ms=x --port=a/b --socket= --nonsense more; do
	tandemd $o >/tmp/o 2>&1; echo "$? $(wc -l </tmp/o)"; done | sort -u' | tr '\n' ' ')
is "$out" "2 1 2 2 " "bad options are refused with 2 and a line or two"

before=$(on p 'tandemctl status --json' | grep -o '"period_ms":[0-9]*,"heartbeat_ms":[0-9]*')
n=0
for bad in range unknown-key binary; do
	n=$((n + 1))
	guest "cp /t/bad/$bad /etc/tandem/tandemd.conf; kill -HUP \$(cat /tmp/td.pid)"
	said_n 'the configuration is not reloaded, the old one stays' $n "SIGHUP with $bad: the old one stays"
	said_n 'tandemd.conf:[0-9]+: .*accepted' $n "SIGHUP with $bad: FILE:LINE and what is accepted"
done
is "$(on p 'tandemctl status --json' | grep -o '"period_ms":[0-9]*,"heartbeat_ms":[0-9]*')" "$before" "nothing has changed"
guest 'conf period_ms=500 heartbeat_ms=2000 threshold_permille=1000'
cp "$JOB/bad/range" "$JOB/groupd.conf"
groupd_signal HUP
try "tandem-groupd: SIGHUP with a bad one: the old one stays" until_true 20 groupd_says 'the configuration is not reloaded, the old one stays'
is "$(groupd_said 'groupd.conf:[0-9]+: .*accepted')" 1 "FILE:LINE and what is accepted"
printf '[groupd]\nsocket = %s\n' "$CTL" >"$JOB/groupd.conf"
groupd_signal HUP
try "tandem-groupd: SIGHUP with a good one" until_true 20 groupd_says 'configuration reloaded'
try "and it goes on" until_true 20 state_is ok

# --- nonsense to the control sockets ----------------------------------------------
# ask SOCKET: each of the hostile files is answered with an error, or not at all
cat >"$JOB/ask.sh" <<'SH'
for f in nonsense truncated array deep version nothing; do
	perl $TALK say $SOCKET 1 <$HOSTILE/$f | head -c 300 | grep -q '^{"v":1,"error":"' || echo "$f was not refused"
done
perl $TALK say $SOCKET 1 <$HOSTILE/large | grep -q '"error":"the request is too long"' || echo "large was not refused"
# the daemon need not take all of it
perl $TALK say $SOCKET 1 <$HOSTILE/binary >/tmp/said
grep -q '"error":"' /tmp/said && ! grep -v -e '"error":"' -e '^talk: .* were not taken' /tmp/said || echo "binary was not refused"
true
SH
is "$(on p "TALK=/t/talk.pl SOCKET=/run/tandem/tandemd.sock HOSTILE=/t/hostile; $(<"$JOB/ask.sh")")" "" \
	"tandemd: nonsense to the control socket is refused"
try "tandemd: and it answers as before" status_works
is "$(in_root sh -c "TALK=$TALK SOCKET=$CTL HOSTILE=$DIR/overlay/t/hostile; $(<"$JOB/ask.sh")")" "" \
	"tandem-groupd: nonsense to the control socket is refused"
try "tandem-groupd: and it answers as before" state_is ok
# eight that come again when they are closed, as they are after 10 s
out=$(on p 'rm -f /tmp/enough
	for i in 1 2 3 4 5 6 7 8; do
		(until [ -e /tmp/enough ]; do perl /t/talk.pl deaf /run/tandem/tandemd.sock 8; done) >/dev/null 2>&1 &
	done
	n=0; until tandemctl status 2>&1 | grep "too many clients"; do n=$((n + 1)); [ $n -lt 100 ] || break; usleep 100000; done
	touch /tmp/enough')
like "$out" "the daemon answered with an error: too many clients" "a ninth client is refused"
try "and served when they are gone" until_true 40 status_works

# --- nonsense through the port ----------------------------------------------------
groupd_kill
dropped='a line from the host is dropped: '
check_hostile() {
	guest 'agent_end TERM >/dev/null; agent_start'
	out=$(hostile "$1" 1)
	like "$out" '"type":"report"' "$1: the host gets its report"
	said_n "$dropped$2" 1 "$1: one line, and it says why"
}
check_hostile nonsense 'not JSON'
check_hostile truncated 'not JSON: it ends too early'
check_hostile array 'not one JSON object'
check_hostile version 'v: not 1'
guest 'agent_end TERM >/dev/null; agent_start'
for f in large flood binary; do
	out=$(hostile "$f" 3)
	[[ $out != *"were not taken"* ]]
	ok $? "$f: all of it is read"
done
said_n 'a line of more than 4096 bytes from the host is dropped' 1 "line of 1 MiB: one line"
said_n 'the host sends more than 10 lines/s' 1 "flood of lines: one line"
said_n "$dropped" 1 "binary and nonsense: one line"
is "$(on p "LC_ALL=C grep -c '[^ -~]' /tmp/td.log"; true)" 0 "nothing of it gets into the log as it is"
try "tandemd answers" status_works
out=$(hostile poll 2 1 | grep -c '^{"v":1,"type":"report".*}$')
above "$out" 1 "and the host's question has its answer, beside the report to a new reader"
try "clean log" clean_log p

# --- the guest reboots ------------------------------------------------------------
groupd_start -c "$DIR/groupd.conf"
try "reports flow before the reboot" until_true 20 state_is ok
: >"$JOB/groupd.log"
vm_end
try "groupd says that the guest is gone" until_true 20 groupd_says 'guest p: gone: '
plain_start p "$KERNEL" "-smp 2"
guest 'conf period_ms=500 heartbeat_ms=2000 threshold_permille=1000; agent_start'
try "rebooted: reports flow again" until_true 30 state_is ok
is "$(groupd_said "guest p: rebooted .boot $(on p 'cat /proc/sys/kernel/random/boot_id').")" 1 "one line, with the new boot"
is "$(groupd_said 'guest p: gone') $(groupd_said 'guest p: connected') $(groupd_said 'restarted')" "1 1 0" "and one for gone and for back"
vm_end

# --- no port --------------------------------------------------------------------------
NO_AGENT_PORT=1 plain_start p "$KERNEL" "-smp 2"
guest 'conf period_ms=500 heartbeat_ms=2000 threshold_permille=1000; agent_start'
said_n 'port .*: not there, looking for it with every sample' 1 "no port: one line"
quiet "no port"
try "no port: tandemctl works" status_works
is "$(said 'tandemd: port ')" 1 "no port: still one line"
try "QEMU plugs one in" plug
try "the port is found: reports flow" until_true 30 state_is ok
said_n "$reads" 1 "one line"
is "$(guest 'agent_end TERM')" 0 "it ends with 0"
try "clean log without a port" clean_log p
tap_done
