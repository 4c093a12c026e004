# SPDX-License-Identifier: GPL-2.0
# Stock Xen hosts: the hypervisor and its tools from Debian's packages, dom0 on
# one of the rig's kernels, domUs. Driven as vm.sh drives the others:
#   xen_start PCPUS             then: on dom0 'command'
#   domu_start NAME KERNEL pv|pvh VCPUS ["XL CONFIGURATION"] ["KERNEL ARGUMENTS"]
#                               then: on NAME 'command'
# shellcheck shell=bash

# Which Xen, by its version as Debian names its packages, and in which suite.
RIG_XEN=${RIG_XEN:-4.17}
declare -A XEN_SUITE=([4.17]=bookworm [4.20]=trixie)

# xen_files VERSION: the cache entry with xen (the hypervisor) and tree (what
# lies over the rig's root in dom0).
xen_files() {
	cache_entry "xen-$1" <(declare -f build_xen) "$RIG_DIR/lib/recipe.sh" -- build_xen "$1" "${XEN_SUITE[$1]}"
}

# The packages with all that they depend on, unpacked and not installed; of the
# libraries, only Xen's own and what the root has none of: the C library is the
# root's, which is never the older one.
build_xen() {
	local dir=$1 version=$2 suite=$3 all=$1/all tree=$1/tree lib f

	mirrors
	progress "fetching Xen $version of Debian $suite"
	mmdebstrap --quiet --variant=extract \
		--include="xen-hypervisor-$version-amd64,xen-utils-$version,xenstore-utils" \
		"$suite" "$all" - <<-LIST || return 1
		deb $MIRROR $suite main
		deb $MIRROR $suite-updates main
		deb $SECURITY $suite-security main
	LIST
	gunzip -c "$all/boot/xen-$version-amd64.gz" >"$dir/xen" || return 1
	lib=usr/lib/x86_64-linux-gnu
	mkdir -p "$tree"/{"$lib",usr/bin,usr/sbin,etc}
	cp -a "$all/etc/xen" "$tree/etc/xen" || return 1
	cp -a "$all/usr/lib/xen-$version" "$tree/usr/lib/" || return 1
	rm -rf "$tree/usr/lib/xen-$version"/{boot,lib}
	cp -a "$all"/usr/bin/xenstore* "$tree/usr/bin/" || return 1
	for f in "$tree/usr/lib/xen-$version/bin"/*; do
		ln -sf "../lib/xen-$version/bin/${f##*/}" "$tree/usr/sbin/"
	done
	for f in "$all/$lib"/*.so.* "$all/lib/x86_64-linux-gnu"/*.so.*; do
		[[ ${f##*/} == libx[el]* || ! -e $RIG_ROOT/$lib/${f##*/} ]] || continue
		[[ -e $f && ! -e $tree/$lib/${f##*/} ]] || continue
		cp -a "$f" "$tree/$lib/" || return 1
	done
	rm -rf "$all"
}

# dom0: as the KVM host (image.sh), the rig's root over 9p and the job's folder
# at /rig; Xen's files over it, all writable in memory. xenstored is the C one.
dom0_image() {
	cache_entry "dom0-$1" <(declare -f build_dom0_image) "$RIG_DIR"/lib/image.sh "$RIG_DIR"/rpc/* \
		"$RIG_DIR/lib/recipe.sh" -- build_dom0_image "$1"
}

build_dom0_image() {
	local out=$1 dir=$1/tree

	mkdir -p "$dir"/{bin,proc,sys,dev,root,ro,xen,rw}
	add_file "$dir" /usr/bin/busybox || return 1
	ln -s /usr/bin/busybox "$dir/bin/sh"
	cp "$(rig_tools)"/{rpcd,pvcon} "$dir/bin/" || return 1
	add_modules "$dir" "$2" virtio_pci virtio_console 9p 9pnet_virtio overlay \
		xen-evtchn xen-gntdev xen-gntalloc xen-privcmd xenfs || return 1
	cat >"$dir/init" <<-'INIT'
	#!/bin/sh
	export PATH=/usr/bin:/bin HOME=/root
	/usr/bin/busybox --install -s /bin
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t devtmpfs dev /dev
	while read -r m; do insmod /modules/$m; done </modules.list
	o=trans=virtio,version=9p2000.L,msize=262144
	mount -t 9p -o ro,cache=loose,$o root /ro || echo "rig: no root over 9p"
	mount -t 9p -o ro,cache=loose,$o xen /xen || echo "rig: no Xen over 9p"
	mount -t tmpfs tmpfs /rw
	mkdir /rw/up /rw/work
	mount -t overlay -o lowerdir=/xen:/ro,upperdir=/rw/up,workdir=/rw/work overlay /root || echo "rig: no overlay"
	mount --bind /ro/build /root/build
	mount --bind /ro/tandem /root/tandem
	mount -t 9p -o rw,$o job /root/rig || echo "rig: no job folder over 9p"
	mount -t tmpfs tmpfs /root/tmp
	mount -t tmpfs tmpfs /root/run
	mount --bind /dev /root/dev
	mount -t proc proc /root/proc
	mount -t sysfs sysfs /root/sys
	mount -t debugfs debugfs /root/sys/kernel/debug
	mount -t tracefs tracefs /root/sys/kernel/tracing
	mount -t cgroup2 cgroup2 /root/sys/fs/cgroup
	mount -t xenfs xenfs /root/proc/xen
	cp /bin/rpcd /bin/pvcon /root/run/
	# what guest-lib.sh takes from busybox and the root has not
	ln -s busybox /root/usr/bin/usleep
	mkdir -p /root/run/xen /root/run/xenstored /root/var/lib/xen /root/var/lib/xenstored /root/var/log/xen
	export PATH=/usr/sbin:/usr/bin LC_ALL=C.UTF-8
	chroot /root xenstored --pid-file /run/xenstored.pid || echo "rig: no xenstored"
	chroot /root xen-init-dom0 || echo "rig: xen-init-dom0 failed"
	for p in /sys/class/virtio-ports/*; do
		[ "$(/bin/cat $p/name)" = org.tandem.rig.0 ] && port=${p##*/}
	done
	echo "rig: dom0 is up"
	while :; do
		chroot /root nice -n -19 /run/rpcd /dev/$port
	done
	INIT
	chmod +x "$dir/init"
	pack "$dir" "$out/initrd" && rm -rf "$dir"
}

# xen_start PCPUS [KERNEL] ["HYPERVISOR OPTIONS"]: a Xen host, up to the answer
# of its dom0. dom0's weight lets it serve guests that take all they can get.
xen_start() {
	local pcpus=$1 kernel=${2:-$RIG_HOST_KERNEL} options=${3:-} xen image vmlinux dir

	xen=$(xen_files "$RIG_XEN") || die "no Xen $RIG_XEN"
	image=$(dom0_image "$kernel") || die "no image for dom0"
	vmlinux=$(uncompressed "$kernel") || die "no kernel $kernel"
	dir=$(rig_path "$JOB")
	VM_KIND[dom0]=dom0
	# dom0's tools take their time while domUs are busy, or other jobs here
	((T >= 240)) || T=240
	# thread=single: pCPUs that wait for each other (Xen flushes TLBs by IPI) cost
	# three times the CPU time as two threads, once there are not two idle cores
	# for them; one thread goes on to the other pCPU at each "pause".
	# bootscrub: the idle pCPU would clear all memory, which only costs here.
	# shellcheck disable=SC2046
	launch dom0 -accel tcg,thread=single -cpu "$TCG_CPU,+svm,+npt" -smp "$pcpus" \
		-m "${HOST_MB:-3072}" \
		-kernel "$(rig_path "$xen")/xen" \
		-append "console=com1 com1=115200,8n1 bootscrub=0 dom0_mem=${DOM0_MB:-1024}M,max:${DOM0_MB:-1024}M $options" \
		-initrd "$(rig_path "$vmlinux")/vmlinux console=hvc0 quiet panic=-1 cryptomgr.notests sched_verbose,$(rig_path "$image")/initrd" \
		-virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
		-virtfs "local,path=$(rig_path "$xen")/tree,mount_tag=xen,security_model=none,readonly=on,multidevs=remap" \
		-virtfs "local,path=$dir,mount_tag=job,security_model=none,multidevs=remap" \
		$(ports dom0 "$dir")
	wait_up dom0
	# what "give" gave to guests is there, too
	on dom0 "mkdir /t; cp /rig/overlay/t/* /rig/overlay-$kernel/t/* /t/ 2>/dev/null"
	on dom0 'xl sched-credit2 -d Domain-0 -w 4096' || die "dom0 has no working xl: $(on dom0 'xl info 2>&1' | tail -n 3)"
}

# What dom0 does to make a domain.
#   attach NAME XL-PROCESS [ready]  once xl has made the domain and left it paused:
#       the rig's channel (pvcon.c), then the domain may run. xl waits for the
#       node "tty", which xenconsoled would write.
#   gone NAME   pvcon ends with its domain; only then is the memory free
DOM0_LIB='attach() {
	until id=$(xl domid "$1" 2>/dev/null) && port=$(xenstore-read /local/domain/$id/console/port 2>/dev/null); do
		kill -0 $2 2>/dev/null || return
		sleep 0.1
	done
	xenstore-write /local/domain/$id/console/tty /run/$1.sock
	wait $2 || return
	/run/pvcon $id $port /run/$1.sock /run/$1.console $3 >/run/$1.pvcon 2>&1 </dev/null & echo $! >/run/$1.pid
	xl unpause "$1"
}
gone() { while kill -0 $(cat /run/$1.pid) 2>/dev/null; do sleep 0.1; done; }'

# domu_boot NAME KERNEL pv|pvh VCPUS ["XL CONFIGURATION"] ["KERNEL ARGUMENTS"]:
# a guest with its vCPUs on all pCPUs; domu_start waits for it, too.
domu_boot() {
	local name=$1 kernel=$2 kind=$3 vcpus=$4 conf=${5:-} append=${6:-} image vmlinux

	image=$(initrd "$kernel") || die "no initrd for $kernel"
	vmlinux=$(uncompressed "$kernel") || die "no kernel $kernel"
	VM_KIND[$name]=$kind
	VM_SEEN[$name]=0
	# tsc_mode: emulating the TSC makes booting nine times slower.
	cat >"$JOB/$name.cfg" <<-CONF
	name = "$name"
	type = "$kind"
	kernel = "$(rig_path "$vmlinux")/vmlinux"
	ramdisk = "/rig/$(basename "$image")"
	extra = "console=hvc0 quiet panic=-1 cryptomgr.notests sched_verbose $append"
	memory = ${GUEST_MB:-256}
	vcpus = $vcpus
	tsc_mode = "native"
	on_poweroff = "destroy"
	on_reboot = "destroy"
	on_crash = "destroy"
	$conf
	CONF
	on dom0 "$DOM0_LIB
		xl create -q -p /rig/$name.cfg >/run/$name.xl 2>&1 & attach $name \$! || { cat /run/$name.xl; exit 1; }" >&2 ||
		die "xl could not make $name"
}

domu_start() {
	domu_boot "$@"
	wait_up "$1"
}

domu_stop() {
	on dom0 "$DOM0_LIB; xl destroy $1; gone $1"
	unset "VM_KIND[$1]"
}

# domu_save NAME, domu_restore NAME: through a file in dom0's memory. The
# channel of a restored domain is a new one to a rpcd that was there all along.
domu_save() { on dom0 "$DOM0_LIB; xl save $1 /run/$1.save >/run/$1.xl 2>&1 || { cat /run/$1.xl; exit 1; }; gone $1"; }
domu_restore() {
	on dom0 "$DOM0_LIB
		xl restore -p /run/$1.save >/run/$1.xl 2>&1 & attach $1 \$! ready || { cat /run/$1.xl; exit 1; }
		rm /run/$1.save"
}

# --- what the tests of Xen guests share -------------------------------------------

# steal NAME: jiffies that its kernel counts
steal() { on "$1" "awk '/^cpu / { print \$9 }' /proc/stat"; }

# value NAME FILE, tandem NAME FILE VALUE: of the module's sysfs folder
value() { on "$1" "cat /sys/kernel/tandem/$2"; }
tandem() { on "$1" "echo $3 >/sys/kernel/tandem/$2"; }

declare -A BEFORE=()	# name -> its domains as xen_topology found them

# xen_topology NAME CPUS HYPERVISOR: the module is loaded; as found, flat, flat with
# a shared cache, restored, and flat again
xen_topology() {
	local name=$1 cpus=$2 before flat

	before=$(in_guest "$name" domains)
	note "$name: $(awk '{ print $3 }' <<<"$before" | sort | uniq -c | tr -s ' \n' ' ')"
	like "$before" "SD_SHARE_(LLC|PKG_RESOURCES|CPUCAPACITY)" "$name: there is something to flatten"
	try "$name: loads" on "$name" 'insmod /t/product.ko flatten=off hints=off'
	is "$(value "$name" hypervisor)" "$3" "$name: hypervisor is $3"
	like "$(value "$name" features)" "steal-time" "$name: Xen offers steal time"
	like "$(value "$name" features)" "preempted" "$name: and who is preempted"
	is "$(in_guest "$name" domains)" "$before" "$name: loading alone changes no domain"
	# no vCPU's topology is true on Xen: auto does not wait for steal
	tandem "$name" topology/flatten auto
	is "$(value "$name" topology/state)" flat "$name: auto means flat"
	flat=$(in_guest "$name" domains)
	check_flat "$flat" "$cpus" 0 "$name flat"
	tandem "$name" topology/variant flat-llc
	check_flat "$(in_guest "$name" domains)" "$cpus" "$cpus" "$name flat-llc"
	tandem "$name" topology/flatten off
	is "$(in_guest "$name" domains)" "$before" "$name: off restores every domain"
	tandem "$name" topology/variant flat
	tandem "$name" topology/flatten on
	is "$(in_guest "$name" domains)" "$flat" "$name: as flat as before"
	BEFORE[$name]=$before
}

# xen_unload NAME: what xen_topology found is restored, nothing left, nothing bad said
xen_unload() {
	try "$1: unloads while flat" on "$1" 'rmmod tandem'
	is "$(in_guest "$1" domains)" "${BEFORE[$1]}" "$1: unloading restores every domain"
	is "$(in_guest "$1" leftovers)" "" "$1: nothing outlives the module"
	try "$1: clean log" clean_log "$1"
	self_check "$1"
}
