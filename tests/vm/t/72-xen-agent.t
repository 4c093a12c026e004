#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rig: kernels=6.12
# tandemd and tandem-groupd over a real xenstore: reports from dom0 and from two
# PV guests, what the host says obeyed at once, a xenstored that hangs, missing
# permissions, a full quota, a domain that writes all it can, domains that come
# and go.
. "$(dirname "$0")/../lib/job.sh"

CONF='printf "[tandemd]\nperiod_ms = 500\nheartbeat_ms = 2000\nthreshold_permille = 1000\n" >/run/td.conf'
START="$CONF; tandemd -c /run/td.conf 2>>/run/td.log & echo \$! >/run/td.pid"
STOP='kill $(cat /run/td.pid); while kill -0 $(cat /run/td.pid) 2>/dev/null; do usleep 50000; done'
HOME_OF() { printf '/local/domain/%s' "$(on dom0 "xl domid $1")"; }

give agent product
for f in /usr/bin/perl /usr/lib/x86_64-linux-gnu/perl-base/{strict,warnings}.pm; do
	add_file "$JOB/overlay" "$f"
done
cp "$RIG_DIR/lib/talk.pl" "$JOB/overlay/t/"

# what groupd says of a guest, as "KEY VALUE"; the value of one key
guests() { on dom0 '/build/rig/bin/tandemctl guests --json'; }
known() { guests | in_root perl /tandem/tests/vm/lib/talk.pl flat "$1"; }
key() { known "$1" | sed -n "s/^$2 //p"; }
key_is() { [[ $(key "$1" "$2") == "$3" ]]; }
key_above() { local v; v=$(key "$1" "$2"); [[ $v =~ ^[0-9]+$ && $v -gt $3 ]]; }
# lines of a log that match: of an agent, of groupd
said() { on "$1" "grep -c -E '$2' /run/td.log"; true; }
says() { [[ $(said "$1" "$2") -ge 1 ]]; }
groupd_said() { on dom0 "grep -c -E '$1' /run/groupd.log"; true; }
groupd_rss() { on dom0 'awk "/^VmRSS/ { print \$2 }" /proc/$(cat /run/groupd.pid)/status'; }
host_says() { on dom0 "xenstore-write $H1/control/tandem/$1 '$2'"; }
host_takes_back() { on dom0 "xenstore-rm $H1/control/tandem/$1"; }
topology() { on g1 'cat /sys/kernel/tandem/topology/state'; }
topology_is() { [[ $(topology) == "$1" ]]; }

xen_start 2 "$KERNEL"
for g in g1 g2; do domu_boot "$g" "$KERNEL" pv 2; done
on dom0 'printf "[groupd]\nxenstore = auto\n" >/run/groupd.conf
	/build/rig/bin/tandem-groupd -c /run/groupd.conf >/run/groupd.log 2>&1 </dev/null & echo $! >/run/groupd.pid'
for g in g1 g2; do wait_up "$g"; done
H1=$(HOME_OF g1) H2=$(HOME_OF g2)

# --- reports ------------------------------------------------------------------
try "dom0: groupd knows both guests" until_true 30 eval 'key_is g1 state waiting && key_is g2 state waiting'
try "g1: tandem.ko loads" on g1 'insmod /t/product.ko'
for g in dom0 g1; do on "$g" "PATH=/build/rig/bin:\$PATH; $START"; done
try "the report of g1 arrives" until_true 20 key_is g1 state ok
try "and dom0's own" until_true 20 key_is Domain-0 state ok
is "$(key g1 transport) $(key g1 domid)" "xenstore ${H1##*/}" "by xenstore, from the domain of that number"
is "$(key g1 report.boot_id)" "$(on g1 'cat /proc/sys/kernel/random/boot_id')" "it is this boot of g1"
is "$(key g1 report.module.hypervisor)" xen-pv "its module is in it"
is "$(key Domain-0 report.vcpus_online)" "$(on dom0 nproc)" "dom0 reports its vCPUs"
used=$(on g1 "awk '/^cpu / { printf \"%.0f\", (\$2 + \$3 + \$4 + \$7 + \$8) * 10 }' /proc/stat")
try "what g1 has used goes on to be reported" until_true 20 key_above g1 report.used_ms $((used - 1))
table=$(on dom0 '/build/rig/bin/tandemctl guests')
note "the table:"
sed 's/^/#   /' <<<"$table"
like "$table" "Domain-0 +2 " "the table shows dom0"
like "$table" "g1 +2 .* flat " "and g1, flat"
is "$(on dom0 "xenstore-list $H1/data/tandem")" report "one node holds the report"
seq=$(key g1 report.seq)
try "a heartbeat: newer samples follow" until_true 20 key_above g1 report.seq "$seq"
try "xl vcpu-set g1 1" on dom0 'xl vcpu-set g1 1'
try "a vCPU less is reported at once" until_true 20 key_is g1 report.vcpus_online 1
on dom0 'xl vcpu-set g1 2'
on g1 'until [ -e /sys/devices/system/cpu/cpu1/online ]; do usleep 100000; done; f=/sys/devices/system/cpu/cpu1/online; [ $(cat $f) = 1 ] || echo 1 >$f'
try "and when it is back" until_true 20 key_is g1 report.vcpus_online 2

# --- what the host says -----------------------------------------------------------
host_says group web
try "group: heard and reported" until_true 20 key_is g1 report.group web
host_says period_ms 1000
try "period_ms: obeyed" until_true 20 key_is g1 report.period_ms 1000
host_takes_back period_ms
try "period_ms taken back: as configured" until_true 20 key_is g1 report.period_ms 500
is "$(topology)" flat "g1 is flat"
host_says topology pinned
try "topology pinned: native" until_true 20 topology_is native
is "$(on g1 'cat /sys/kernel/tandem/topology/reason')" "auto: the host says that the vCPUs are pinned" "and the reason says so"
host_says topology nonsense
try "topology nonsense: nothing is said, flat again" until_true 20 topology_is flat
is "$(said g1 'topology.*accepted: pinned or trusted')" 1 "one line says what is accepted"
host_says topology trusted
try "topology trusted: native" until_true 20 topology_is native
host_takes_back topology
try "topology taken back: flat" until_true 20 topology_is flat
host_says group "$(printf '%0300d' 0)"
try "a group of 300 bytes: none" until_true 20 key_is g1 report.group null
on dom0 "head -c 4000 /dev/zero | tr '\\0' x >/run/large; xenstore-write $H1/control/tandem/group \"\$(cat /run/large)\""
host_says group web
try "g1 goes on after 4000 bytes: group web" until_true 20 key_is g1 report.group web

# --- xenstored hangs --------------------------------------------------------------
seq=$(key g1 report.seq)
on dom0 'kill -STOP $(cat /run/xenstored.pid)'
try "xenstored hangs: g1's agent says so" until_true 30 says g1 'no answer from xenstored for 5 s'
is "$(on g1 'tandemctl status' | grep -c '^vCPUs')" 1 "and its control socket answers"
is "$(key g1 name)" g1 "groupd's, too"
on dom0 'kill -CONT $(cat /run/xenstored.pid)'
try "xenstored goes on: so do reports" until_true 30 key_above g1 report.seq "$((seq + 1))"
is "$(said g1 'no answer from xenstored for 5 s')" 1 "there was one line about it"

# --- no permission, no room ---------------------------------------------------------
on g1 "$STOP"
try "an agent that ends takes its report away" until_true 20 key_is g1 state waiting
on dom0 "xenstore-chmod $H1/data n0 r${H1##*/}"
on g1 "$START"
try "no permission: the agent says what is missing" until_true 20 says g1 'cannot write data/tandem/report .*Permission denied: the toolstack has to let'
is "$(on g1 'tandemctl status' | grep -c '^vCPUs')" 1 "and goes on"
on dom0 "xenstore-chmod $H1/data n${H1##*/}"
try "permission given: reports come" until_true 20 key_is g1 state ok
try "one line" says g1 'data/tandem/report can be written again'
# the stock quota of 1000 nodes takes minutes to fill in the emulator
try "a quota of 100 nodes" on dom0 'xenstore-control quota set nodes 100'
filled=$(on g2 'perl /t/talk.pl xs fill data/fill 300')
note "g2 fills its quota: $filled"
like "$filled" "written: ENOSPC|written: EQUOTA" "g2 has used up its quota"
on g2 "$START"
try "no room: the agent says what is missing" until_true 20 says g2 'cannot write data/tandem/report .*: is the guest.s quota in xenstored used up'
is "$(on g2 'tandemctl status' | grep -c '^vCPUs')" 1 "and goes on"
is "$(said g2 'cannot write')" 1 "one line, whatever the number of attempts"
on dom0 "xenstore-rm $H2/data/fill"
try "room again: reports come" until_true 20 key_is g2 state ok
on g2 "$STOP"
on dom0 'xenstore-control quota set nodes 1000' >/dev/null

# --- a hostile guest ------------------------------------------------------------------
rss=$(groupd_rss)
lines=$(on dom0 'wc -l </run/groupd.log')
reports=$(key g1 reports)
for bad in 'hello' '{"v":1,"type":"report"' '[1,2]' '[[[[[[[[[[[[[[[[' '{"v":2,"type":"report"}' '{"v":1,"type":"report"}'; do
	malformed=$(key g2 malformed)
	printf '%s' "$bad" | on g2 "perl /t/talk.pl xs put data/tandem/report <<-END
	$bad
	END" >/dev/null
	try "g2 writes $bad: malformed" until_true 20 key_above g2 malformed "$malformed"
done
on g2 'head -c 1500 /dev/urandom | perl /t/talk.pl xs put data/tandem/report' >/dev/null
like "$(on g2 'head -c 3000 /dev/urandom | perl /t/talk.pl xs put data/tandem/report')" "written: E" "xenstored refuses 3000 bytes of a guest"
on dom0 "xenstore-write $H2/data/tandem/report \"\$(cat /run/large)\""
on dom0 "head -c 4040 /dev/zero | tr '\\0' y >/run/larger; xenstore-write $H2/data/tandem/report \"\$(cat /run/larger)\""
try "a node as large as they get: groupd goes on" until_true 20 key_above g2 malformed "$((malformed + 1))"
note "g2 below its report: $(on g2 'perl /t/talk.pl xs fill data/tandem/report 300')"
note "g2 beside it: $(on g2 'perl /t/talk.pl xs fill data/tandem 300')"
flood=$(on g2 'perl /t/talk.pl xs flood data/tandem/report 10')
note "g2 floods its report: $flood"
above "${flood%% *}" 20 "g2 wrote more than a bucket"
above "$(key g2 limited)" 0 "groupd did not read all of it"
lines=$(($(on dom0 'wc -l </run/groupd.log') - lines))
above 30 "$lines" "groupd's log is bounded ($lines lines)"
on dom0 'cat /run/groupd.log' | LC_ALL=C grep -c '[^ -~]' >/dev/null
is "$?" 1 "nothing of it gets into the log as it is"
try "g1's reports came through meanwhile" key_above g1 reports "$((reports + 4))"
rss=$(($(groupd_rss) - rss))
note "groupd: $rss KiB more memory"
above 2048 "$rss" "groupd's memory is bounded"
on dom0 "xenstore-rm $H2/data/tandem/report; xenstore-rm $H2/data/tandem"
on g2 "$START"
try "g2 behaves again: its report is taken" until_true 30 key_is g2 state ok

# --- domains come and go --------------------------------------------------------------
domu_stop g2
try "g2 is destroyed: groupd forgets it" until_true 20 eval '[[ -z $(known g2) ]]'
is "$(groupd_said 'guest g2: domain [0-9]+ is gone')" 1 "one line says so"
domu_start g2 "$KERNEL" pv 2
on g2 "$START"
try "another g2: its report arrives" until_true 30 key_is g2 state ok
is "$(guests | grep -o '"name":"g2[^"]*"')" '"name":"g2"' "under its own name, once"

# --- xenstored is another one -----------------------------------------------------------
# A C xenstored that dies takes the guests' connections with it, as on any host;
# what dom0 speaks to by socket has to come back.
on dom0 'kill -KILL $(cat /run/xenstored.pid); while kill -0 $(cat /run/xenstored.pid) 2>/dev/null; do sleep 0.05; done'
try "xenstored dies: groupd says so" until_true 30 eval '[[ $(groupd_said "the connection to xenstored was lost") -ge 1 ]]'
try "and dom0's agent" until_true 30 says dom0 'the connection to xenstored was lost'
is "$(key g1 state)" gone "g1 is not known to be there"
on dom0 'rm -f /run/xenstored/socket; xenstored --pid-file /run/xenstored.pid && xen-init-dom0' >/dev/null 2>&1
try "another xenstored: dom0 reports again" until_true 60 key_is Domain-0 state ok ||
	on dom0 'tail -n 5 /run/td.log /run/groupd.log; xenstore-ls -f /local/domain | grep -v "report = "' | sed 's/^/# /' >&2
is "$(on g1 'tandemctl status' | grep -c '^vCPUs')" 1 "g1's agent still answers"

for g in g1 g2; do try "$g: clean log" clean_log "$g"; done
try "dom0: clean log" clean_log dom0
try "g1: tandem.ko unloads" on g1 'rmmod tandem'
for p in groupd td; do
	on dom0 "kill \$(cat /run/$p.pid); i=0; while kill -0 \$(cat /run/$p.pid) 2>/dev/null; do i=\$((i + 1)); [ \$i -lt 100 ] || exit 1; sleep 0.1; done"
	ok $? "dom0: $p ends"
done
try "g1's agent ends though its xenstored is gone" on g1 "kill \$(cat /run/td.pid); i=0; while kill -0 \$(cat /run/td.pid) 2>/dev/null; do i=\$((i + 1)); [ \$i -lt 100 ] || exit 1; usleep 100000; done"
self_check dom0
tap_done
