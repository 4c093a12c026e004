#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The programs as a person runs them. Usage: programs.sh DIRECTORY-WITH-THE-PROGRAMS
set -u
bin=$(cd "${1:?directory with the programs}" && pwd)
tmp=$(mktemp -d) || exit 1
pids=()
failed=0
cleanup() {
	for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done
	wait
	rm -rf "$tmp"
}
trap cleanup EXIT

ok() { echo "ok - $1"; }
bad() { echo "not ok - $1"; failed=1; }

# expect STATUS PATTERN NAME COMMAND...: exit status, and a pattern in the output
expect() {
	local want=$1 pattern=$2 name=$3 out status
	shift 3
	out=$(timeout 20 "$@" 2>&1)
	status=$?
	if [ "$status" = "$want" ] && grep -qE -- "$pattern" <<<"$out"; then
		ok "$name"
	else
		bad "$name: status $status, wanted $want and /$pattern/ in: $out"
	fi
}

# until_true COMMAND...: at most 10 s
until_true() {
	for _ in $(seq 200); do
		"$@" >/dev/null 2>&1 && return 0
		read -r -t 0.05 <> <(:)
	done
	return 1
}

root=$tmp/root
mkdir -p "$root"/proc/{pressure,sys/kernel/random} "$root"/sys/devices/system/cpu
printf 'cpu  500 0 0 500 30 0 0 70 0 0\ncpu0 500 0 0 500 30 0 0 70 0 0\nprocs_running 3\n' \
	>"$root/proc/stat"
echo "100.50 1.00" >"$root/proc/uptime"
echo "0-1" | tee "$root"/sys/devices/system/cpu/{online,present} >/dev/null
echo "a58921af-d380-4323-a209-0406c16e2cc3" >"$root/proc/sys/kernel/random/boot_id"
conf=$tmp/t.conf
echo "[tandemd]" >"$conf"

for p in tandemd tandem-groupd tandemctl; do
	expect 0 '0\.[0-9]+' "$p --version" "$bin/$p" --version
	expect 0 '^Usage' "$p --help" "$bin/$p" --help
	expect 2 'help' "$p with an unknown option" "$bin/$p" --nonsense
	expect 1 'cannot write' "$p --help on a full disk" sh -c "'$bin/$p' --help >/dev/full"
	expect 1 'cannot write' "$p --version on a full disk" sh -c "'$bin/$p' --version >/dev/full"
done
expect 2 'unexpected argument' "tandemd with an argument" "$bin/tandemd" x
expect 2 'not valid' "a period out of range" "$bin/tandemd" --period-ms 99
expect 2 'not valid' "a port that is no name" "$bin/tandemd" --port ../x
expect 2 "option --transport: 'vsock' is not valid, accepted: auto, virtio-serial or xenstore" \
	"a transport that is none" "$bin/tandemd" --transport vsock
expect 2 'NAME=PATH' "a guest without path" "$bin/tandem-groupd" --socket x
expect 1 'No such file' "a named configuration that is missing" "$bin/tandemd" --config "$tmp/none"
expect 1 'not a regular file' "a directory as configuration" "$bin/tandemd" --config "$tmp"
echo "period_ms = x" >>"$conf"
top=$(cd "$(dirname "$0")/../.." && pwd)
expect 0 '"used_ms":5000' "the packaged tandemd.conf is valid" \
	"$bin/tandemd" --once --root "$root" --config "$top/packaging/tandemd.conf"
expect 1 'not every named guest' "the packaged groupd.conf is valid" \
	"$bin/tandem-groupd" --config "$top/packaging/groupd.conf" --once --timeout 1 --socket a="$tmp/none.sock"
expect 2 't.conf:2: period_ms' "a bad value" "$bin/tandemd" --config "$conf"
head -c 3000 /dev/urandom >"$tmp/binary"
printf '\0' >>"$tmp/binary"
expect 2 'binary:[0-9]+: ' "a binary as configuration" "$bin/tandemd" --config "$tmp/binary"
expect 0 '"used_ms":5000,"steal_ms":700,' "--once prints what /proc says" \
	"$bin/tandemd" --once --json --root "$root" --period-ms 100
expect 1 'tandemd: cannot open the root directory' "a root that is missing" \
	"$bin/tandemd" --once --root "$tmp/none"
expect 1 'daemon running' "tandemctl without a daemon" "$bin/tandemctl" -s "$tmp/no.sock" status
expect 2 'unknown command' "tandemctl with an unknown command" "$bin/tandemctl" nonsense
expect 2 'no command' "tandemctl without a command" "$bin/tandemctl"
expect 2 'is empty' "tandemctl with an empty path" "$bin/tandemctl" -s '' status
expect 1 'cannot write the report' "--dry-run on a full disk" \
	sh -c "'$bin/tandemd' --dry-run --socket none --root '$root' >/dev/full"
printf '[tandemd]\nperiod_ms = 100\nheartbeat_ms = 100\n' >"$tmp/fast.conf"
expect 1 'cannot write the report: Broken pipe' "--dry-run into a pipe that nobody reads" \
	sh -c "{ '$bin/tandemd' --dry-run --socket none --config '$tmp/fast.conf' --root '$root'; echo \$? >'$tmp/status'; } | :
		exit \$(cat '$tmp/status')"
expect 1 'cannot make the directory .*: run as root' "a control socket below a file" \
	"$bin/tandemd" --root "$root" --socket "$conf/x/t.sock"
expect 1 'not every named guest' "--once without an answer" \
	"$bin/tandem-groupd" --once --timeout 1 --socket "a=$tmp/none.sock"

# xenstored is not there: said once, and the rest works
export XENSTORED_PATH=$tmp/no-xenstored
printf '[groupd]\nsockets = %s/none/*.sock\nxenstore = on\n' "$tmp" >"$tmp/x.conf"
expect 0 'xenstore: cannot connect: No such file' "no xenstored in dom0" \
	"$bin/tandem-groupd" --config "$tmp/x.conf" --once --timeout 1
printf '[groupd]\nxenstore = yes\n' >"$tmp/x.conf"
expect 2 "x.conf:2: xenstore = 'yes' is not valid, accepted: auto, on or off" \
	"a bad value for xenstore" "$bin/tandem-groupd" --config "$tmp/x.conf"
mkdir -p "$root/sys/hypervisor"
echo xen >"$root/sys/hypervisor/type"
"$bin/tandemd" --root "$root" --socket "$tmp/run/x.sock" 2>"$tmp/xlog" &
pid=$!
pids+=("$pid")
until_true grep -q 'xenstore: cannot connect: No such file' "$tmp/xlog" && ok "no xenstored in a guest" ||
	bad "no xenstored in a guest: $(cat "$tmp/xlog")"
expect 0 'not loaded' "tandemctl status without xenstored" "$bin/tandemctl" -s "$tmp/run/x.sock" status
kill -TERM "$pid"
wait "$pid"
status=$?
[ "$status" = 0 ] && ok "SIGTERM without xenstored" || bad "SIGTERM without xenstored: status $status"
expect 124 'dry run: reports would go over xenstore' "--dry-run says where to" \
	timeout -s TERM 1 "$bin/tandemd" --dry-run --socket none --root "$root"
rm -r "$root/sys/hypervisor"

printf '[tandemd]\nperiod_ms = 100\nheartbeat_ms = 200\n' >"$conf"
"$bin/tandemd" --config "$conf" --root "$root" --socket "$tmp/run/t.sock" --dry-run \
	>"$tmp/out" 2>"$tmp/log" &
pid=$!
pids+=("$pid")
until_true "$bin/tandemctl" -s "$tmp/run/t.sock" --json status || bad "tandemd's control socket"
expect 0 'not loaded' "tandemctl status" "$bin/tandemctl" -s "$tmp/run/t.sock" status
expect 0 '"used_ms":5000' "tandemctl status --json" \
	"$bin/tandemctl" -s "$tmp/run/t.sock" --json status
expect 1 'there is no such thing' "tandemctl asks the wrong daemon" \
	"$bin/tandemctl" -s "$tmp/run/t.sock" guests
expect 1 'another daemon serves it' "a second tandemd" \
	"$bin/tandemd" --config "$conf" --root "$root" --socket "$tmp/run/t.sock"
until_true grep -q '"seq":[3-9]' "$tmp/out" && ok "heartbeats" || bad "heartbeats"
echo "period_ms = 5" >>"$conf"
kill -HUP "$pid"
until_true grep -q 'the old one stays' "$tmp/log" && ok "a bad reload" || bad "a bad reload"
printf '[tandemd]\nperiod_ms = 150\n' >"$conf"
kill -HUP "$pid"
until_true grep -q '"period_ms":150' "$tmp/out" && ok "a good reload" || bad "a good reload"
kill -TERM "$pid"
wait "$pid"
status=$?
[ "$status" = 0 ] && [ ! -e "$tmp/run/t.sock" ] && ok "SIGTERM" || bad "SIGTERM: status $status"

"$bin/tandem-groupd" --control "$tmp/run/g.sock" --socket "a=$tmp/none.sock" 2>"$tmp/glog" &
pid=$!
pids+=("$pid")
until_true "$bin/tandemctl" -s "$tmp/run/g.sock" guests || bad "groupd's control socket"
expect 0 '^a .* gone' "tandemctl guests" "$bin/tandemctl" -s "$tmp/run/g.sock" guests
expect 0 '"state":"gone"' "tandemctl guests --json" "$bin/tandemctl" -s "$tmp/run/g.sock" -j guests
kill -INT "$pid" 2>/dev/null
kill -TERM "$pid"
wait "$pid"
status=$?
[ "$status" = 0 ] && [ ! -e "$tmp/run/g.sock" ] && ok "SIGTERM of groupd" ||
	bad "SIGTERM of groupd: status $status"

# Descriptors: less than every guest and client needs, and the standard ones closed.
printf '[groupd]\nsockets = %s/none/*.sock\n' "$tmp" >"$tmp/g.conf"
expect 0 'cannot look for guests: No such file' "no directory of guests" \
	"$bin/tandem-groupd" --config "$tmp/g.conf" --once --timeout 1
expect 0 '40 open files are allowed: 8 guests at most' "few open files" \
	bash -c "ulimit -n 40; '$bin/tandem-groupd' --config '$tmp/g.conf' --once --timeout 1"
bash -c "ulimit -S -n 64; exec '$bin/tandem-groupd' --config '$tmp/g.conf' --control '$tmp/run/n.sock'" \
	2>"$tmp/nlog" &
pid=$!
pids+=("$pid")
until_true "$bin/tandemctl" -s "$tmp/run/n.sock" guests || bad "groupd's control socket, few files"
[ "$(awk '/open files/ { print $4 }' "/proc/$pid/limits")" = 1056 ] &&
	ok "the limit of open files is raised" || bad "the limit of open files is raised"
kill -TERM "$pid"
wait "$pid"
"$bin/tandemd" --root "$root" --socket "$tmp/run/c.sock" --port none <&- >&- 2>&- &
pid=$!
pids+=("$pid")
until_true "$bin/tandemctl" -s "$tmp/run/c.sock" status || bad "tandemd without standard files"
[ "$(readlink "/proc/$pid/fd/2")" = /dev/null ] && ok "closed standard files" ||
	bad "closed standard files: $(ls -l "/proc/$pid/fd")"
kill -TERM "$pid"
wait "$pid"
exit $failed
