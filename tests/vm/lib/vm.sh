# SPDX-License-Identifier: GPL-2.0
# Booting and driving VMs. Some kinds, one way to speak to them:
#   plain   a guest under TCG on this machine (no KVM inside: 4 s to boot)
#   host    a stock KVM host under TCG (L1)
#   nested  a KVM guest in that host (L2)
#   dom0    of a stock Xen host under TCG (xen.sh)
#   pv, pvh a guest of that host
# A test says:  plain_start NAME ... | host_start PCPUS | guest_start NAME ...
# and then:     on NAME 'command'      (its output and exit status come back)
# A VM that stops answering ends the test, with the last lines of its console
# and the verdict: failure, or emulator fault (see README.md).
# shellcheck shell=bash

declare -A VM_KIND=()	# name -> plain | host | nested | dom0 | pv | pvh
declare -A VM_PID=()	# name -> process here (plain, host, dom0)
declare -A VM_SEEN=()	# name -> lines of the console already judged

# The settings under which the emulator was measured to be trustworthy. Without
# XSAVE there is no AVX either, and 7.x panics in a crypto self-test if CPUID
# still claims it.
TCG_CPU=max,-xsave,-pku,-avx,-avx2,-vaes,-vpclmulqdq,-pclmulqdq,-fma
# No HPET: the guest leaves it ticking at 250 Hz for nothing, and each tick wakes
# QEMU's main loop, a quarter of the host's one pCPU when nested.
QEMU_COMMON=(-machine pc,hpet=off -nodefaults -no-user-config -no-reboot -display none -vga none -nic none)

BOOT_SECONDS=${BOOT_SECONDS:-240}
T=${T:-60}	# seconds that one command may take

job_init() {
	rm -rf "$JOB"
	mkdir -p "$JOB/overlay/t"
	trap job_end EXIT
	trap 'exit 1' INT TERM
}

# job_end: nothing that this job started outlives it.
job_end() {
	local status=$? name

	trap - EXIT
	for name in "${!VM_PID[@]}"; do
		kill -KILL "${VM_PID[$name]}" 2>/dev/null
	done
	wait 2>/dev/null
	rm -f "$JOB"/*.initrd "$JOB"/*.sock "$JOB"/overlay.cpio
	[[ ! -e $JOB/fault ]] || exit $EMULATOR_FAULT
	exit "$status"
}

# ports NAME DIR: the serial console to a file, the rig's channel and the
# agent's port to sockets in DIR. Two ports and no more: each port that could be
# there costs two queues to set up, nested, and a file for QEMU to poll.
ports() {
	printf '%s\n' -serial "file:$2/$1.console" \
		-device virtio-serial-pci,max_ports=3 \
		-chardev "socket,id=rig,path=$2/$1.sock,server=on,wait=off" \
		-device virtserialport,chardev=rig,name=org.tandem.rig.0 \
		-chardev "socket,id=agent,path=$2/$1.agent.sock,server=on,wait=off" \
		-qmp "unix:$2/$1.qmp.sock,server=on,wait=off"
	[[ -n ${NO_AGENT_PORT:-} ]] ||
		printf '%s\n' -device virtserialport,chardev=agent,name=org.tandem.agent.0,id=agentport
}

# initrd KERNEL: the guest's image with the job's overlay behind it, and what is
# for that kernel only.
initrd() {
	local out=$JOB/$1.initrd base dir

	if [[ ! -e $out ]]; then
		base=$(guest_image "$1") || return 1
		cp "$base/initrd" "$out" || return 1
		for dir in "$JOB/overlay" "$JOB/overlay-$1"; do
			[[ -d $dir ]] || continue
			pack "$dir" "$JOB/overlay.cpio" && cat "$JOB/overlay.cpio" >>"$out" || return 1
		done
	fi
	printf '%s\n' "$out"
}

rig_path() { printf '/build%s\n' "${1#"$BUILD"}"; }

# launch NAME QEMU-ARG...: QEMU in the root, in the background. Plain guests give
# way to a host beside them, whose one thread everything nested waits for.
launch() {
	local name=$1

	shift
	rm -f "$JOB/$name".*sock
	IN_ROOT_EXEC=exec in_root nice -n "${NICE:-0}" qemu-system-x86_64 "${QEMU_COMMON[@]}" "$@" >"$JOB/$name.qemu" 2>&1 </dev/null &
	VM_PID[$name]=$!
	VM_SEEN[$name]=0
}

# plain_start NAME KERNEL "QEMU OPTIONS" ["KERNEL ARGUMENTS"]
plain_start() {
	local name=$1 kernel=$2 opts=$3 append=${4:-} image dir

	image=$(initrd "$kernel") || die "no initrd for $kernel"
	dir=$(rig_path "$JOB")
	VM_KIND[$name]=plain
	# shellcheck disable=SC2086,SC2046  # options are words
	NICE=5 launch "$name" -accel tcg,thread=multi -cpu "$TCG_CPU" -m 1024 $opts \
		-kernel "/kernels/$kernel/vmlinuz" -initrd "$(rig_path "$image")" \
		-append "console=ttyS0 quiet panic=-1 cryptomgr.notests sched_verbose $append" \
		$(ports "$name" "$dir")
	wait_up "$name"
}

# host_start PCPUS ["QEMU OPTIONS"]: the KVM host. Its name is host.
host_start() {
	local dir image

	image=$(host_image) || die "no image for the host"
	dir=$(rig_path "$JOB")
	VM_KIND[host]=host
	# shellcheck disable=SC2086,SC2046
	launch host -accel tcg,thread=multi -cpu "$TCG_CPU,+svm,+npt" -smp "$1" \
		-m "${HOST_MB:-4096}" ${2:-} \
		-kernel "/kernels/$RIG_HOST_KERNEL/vmlinuz" \
		-initrd "$(rig_path "$image")/initrd" \
		-append "console=ttyS0 quiet panic=-1 cryptomgr.notests mitigations=off" \
		-virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
		-virtfs "local,path=$dir,mount_tag=job,security_model=none,multidevs=remap" \
		$(ports host "$dir")
	wait_up host
	on host 'test -e /dev/kvm' || die "the host has no /dev/kvm: $(on host dmesg | grep -i -E "kvm|svm" | tail -n 3)"
	on host 'mkdir -p /run/tandem/guests
		echo +cpu +cpuset >/sys/fs/cgroup/cgroup.subtree_control'
}

# guest_start NAME KERNEL VCPUS ["QEMU OPTIONS"] ["KERNEL ARGUMENTS"]: a KVM
# guest, its QEMU in a cgroup of its own as libvirt does it. VCPUS is what -smp
# takes. guest_boot starts it, guest_start waits for it too.
guest_boot() {
	local name=$1 kernel=$2 smp=$3 opts=${4:-} append=${5:-} image vmlinux

	image=$(initrd "$kernel") || die "no initrd for $kernel"
	vmlinux=$(uncompressed "$kernel") || die "no kernel $kernel"
	VM_KIND[$name]=nested
	VM_SEEN[$name]=0
	on host "mkdir -p /sys/fs/cgroup/$name
		rm -f /run/$name.sock /run/$name.qmp.sock
		(echo \$\$ >/sys/fs/cgroup/$name/cgroup.procs || exit
		exec setsid nice -n 19 qemu-system-x86_64 ${QEMU_COMMON[*]} -accel kvm \
			-cpu host,+kvm-pv-sched-yield,+topoext -smp $smp -m ${GUEST_MB:-512} $opts \
			-kernel $(rig_path "$vmlinux")/vmlinux -initrd /rig/$(basename "$image") \
			-append 'console=ttyS0 quiet panic=-1 cryptomgr.notests sched_verbose $append' \
			$(ports "$name" /run | tr '\n' ' ') \
			>/run/$name.qemu 2>&1 </dev/null & echo \$! >/run/$name.pid)
		ln -sf /run/$name.agent.sock /run/tandem/guests/$name.sock"
}

guest_start() {
	guest_boot "$@"
	wait_up "$1"
}

guest_stop() { on host "kill \$(cat /run/$1.pid); while kill -0 \$(cat /run/$1.pid) 2>/dev/null; do sleep 0.05; done"; unset "VM_KIND[$1]"; }

# wait_up NAME: until the channel answers. A command waits in the channel until
# the guest opens it; before QEMU made the socket there is nothing to wait in.
wait_up() {
	local end=$((SECONDS + BOOT_SECONDS))

	until raw "$1" $((end > SECONDS ? end - SECONDS : 1)) true 2>/dev/null; do
		alive "$1" || lost "$1" "it ended while booting"
		((SECONDS < end)) || lost "$1" "it did not come up within $BOOT_SECONDS s"
		sleep 0.1
	done
}

# quoted TEXT: as one word for any POSIX shell (bash's %q is for bash only).
quoted() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

# outer NAME: the VM inside which it runs, nothing if that is this machine.
outer() {
	case ${VM_KIND[$1]} in
	nested) echo host ;;
	pv | pvh) echo dom0 ;;
	esac
}

# raw NAME SECONDS COMMAND: as rpc says it.
raw() {
	local cmd=$3 outer

	outer=$(outer "$1")
	if [[ -n $outer ]]; then
		cmd="$(rig_path "$(rig_tools)")/rpc /run/$1.sock $2 $(quoted "$3")"
		(cd "$JOB" && "$(rig_tools)/rpc" "$outer.sock" $(($2 + 20)) "$cmd")
	else
		(cd "$JOB" && "$(rig_tools)/rpc" "$1.sock" "$2" "$cmd")
	fi
}

# A guest lives while its QEMU does (KVM), its pvcon (Xen).
alive() {
	case ${VM_KIND[$1]} in
	nested | pv | pvh) raw "$(outer "$1")" 20 "kill -0 \$(cat /run/$1.pid)" >/dev/null 2>&1 ;;
	*) kill -0 "${VM_PID[$1]}" 2>/dev/null ;;
	esac
}

# on NAME COMMAND: run it there; T seconds at most.
on() {
	local status=0

	raw "$1" "$T" "$2" || status=$?
	[[ $status -ne 125 ]] || lost "$1" "it stopped answering to: ${2:0:70}"
	[[ $status -ne 124 ]] || say "# $1: took more than $T s: ${2:0:100}"
	return $status
}

console() {
	case ${VM_KIND[$1]} in
	nested | pv | pvh) raw "$(outer "$1")" 20 "cat /run/$1.console" 2>/dev/null ;;
	*) cat "$JOB/$1.console" ;;
	esac | tr -d '\r\000'
}

# console_has NAME REGEX. Not by grep -q, which may end before all is written to
# it: then the pipe fails, and what is there counts as not there.
console_has() { [[ -n $(console "$1" | grep -E "$2") ]]; }

# lost NAME WHY: the VM is gone or hangs. Say what it said last, judge, end.
lost() {
	local name=$1 why=$2 outer reason

	# from a subshell, too: the verdict must reach the job
	outer=$(outer "$name")
	{
		echo "# $name: $why"
		[[ -z $outer ]] || console "$outer" | tail -n "${CONSOLE_LINES:-15}" | sed "s/^/# $outer: /"
		console "$name" | tail -n "${CONSOLE_LINES:-25}" | sed "s/^/# $name: /"
	} >&2
	reason=$(emulator_broke "$name") && fault "$reason"
	echo "$name: $why" >"$JOB/failed"
	kill -TERM $$
	exit 1
}

# emulator_broke NAME: whether the loss of that VM is the emulator's doing, and
# how that is known.
#
# Only nested emulation is known to break (design notes: SVM under TCG with two
# threads): a panic of the host, on which no code of ours runs in the kernel,
# or a guest that is gone without a panic of its own. On Xen that is said of the
# hypervisor, which runs no code of ours either, and of PVH guests, also when one
# panics that has not our module; dom0 and PV guests use no SVM, and are judged
# like plain ones. All else is a failure.
emulator_broke() {
	local kind=${VM_KIND[$1]}

	if [[ -n ${VM_KIND[host]:-} ]] && console_has host 'Kernel panic|corrupted stack end'; then
		echo "the host panicked"
	elif [[ -n ${VM_KIND[dom0]:-} ]] && console_has dom0 'Panic on CPU'; then
		echo "the hypervisor panicked"
	elif [[ $kind == nested || $kind == pvh ]] && ! alive "$1" && ! console_has "$1" "$BAD_WORDS"; then
		echo "the guest $1 is gone without a panic of its own"
	elif [[ $kind == pvh ]] && console_has "$1" 'Kernel panic' && ! console_has "$1" 'Modules linked in:.*tandem'; then
		echo "the PVH guest $1 panicked without our module"
	else
		return 1
	fi
}

fault() {
	echo "$*" >"$JOB/fault"
	say "# emulator fault: $*"
	kill -TERM $$
	exit $EMULATOR_FAULT
}

# What no kernel log may hold.
BAD_WORDS='BUG:|WARNING:|Oops|Kernel panic|rcu.*(stall|detected)|soft lockup|hung_task|blocked for more than|general protection|KASAN|leaked|refcount_t|still has|double free|unable to handle'

# clean_log NAME: fails, and shows them, if the console has such lines since
# the last call. Stalls in a VM whose host is busy on purpose are told apart by
# the tests' control runs, not here.
clean_log() {
	local bad

	bad=$(on "$1" "dmesg" | grep -E -A 12 "$BAD_WORDS" | head -n "${LOG_LINES:-40}")
	[[ -z $bad ]] && return
	printf '%s\n' "$bad" | sed "s/^/# $1: /" >&2
	return 1
}

# self_check NAME: sums that must come out right; a wrong one is the emulator's.
self_check() {
	local sums

	sums=$(on "$1" 'for i in 1 2 3 4 5; do md5sum /usr/bin/hackbench; done | sort -u | wc -l')
	[[ $sums == 1 ]] || fault "a checksum came out wrong in $1"
}

# until_true SECONDS COMMAND...: a condition instead of a sleep.
until_true() {
	local end=$((SECONDS + $1))

	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.2
	done
}
