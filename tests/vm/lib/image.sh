# SPDX-License-Identifier: GPL-2.0
# What runs inside the VMs: the rig's tools, the product, and initramfs images.
# shellcheck shell=bash

# rig_tools: folder with rpc, rpcd and pvcon, static, so that they run anywhere.
rig_tools() {
	cache_entry tools "$RIG_DIR"/rpc/* "$RIG_DIR/lib/image.sh" -- build_tools
}

build_tools() {
	local p

	for p in rpc rpcd pvcon; do
		in_root gcc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -static \
			-o "/build/.$p" "/tandem/tests/vm/rpc/$p.c" || return 1
		mv "$BUILD/.$p" "$1/$p"
	done
}

# build_kmod KERNEL product|test|lockload: build it in the root; below
# BUILD/kmod/KERNEL-WHAT. Incremental: kbuild decides.
build_kmod() {
	local kernel=$1 what=$2 out=kmod/$1-$2 log

	log=$BUILD/$out.log
	mkdir -p "$BUILD/$out"
	case $what in
	product) in_root make -C /tandem module KDIR="/kernels/$kernel/build" \
		KOUT="/build/$out" CHECK_SPARSE=1 ;;
	test) in_root make -C /tandem module KDIR="/kernels/$kernel/build" \
		KOUT="/build/$out" TANDEM_TEST_HV=1 ;;
	lockload) cp -a -u "$TOP"/tests/kmod/* "$BUILD/$out/" &&
		in_root make -C "/kernels/$kernel/build" M="/build/$out" modules ;;
	esac >"$log" 2>&1 || {
		tail -n 30 "$log" >&2
		die "building $what for kernel $kernel failed (log: $log)"
	}
}

# build_agent: the userspace as the guests and the L1 host run it.
build_agent() {
	in_root make -C /tandem agent BUILD=/build/rig PREREQ= >"$BUILD/rig.log" 2>&1 || {
		tail -n 30 "$BUILD/rig.log" >&2
		die "building the userspace in the rig's root failed (log: $BUILD/rig.log)"
	}
}

# add_file DIR FILE-IN-ROOT: copy a program of the root and the libraries that
# it needs into the tree DIR.
add_file() {
	local dir=$1 file=$2 lib

	mkdir -p "$dir$(dirname "$file")"
	cp -L "$RIG_ROOT$file" "$dir$file" || return 1
	# a static program has none, and says so
	{ in_root ldd "$file" 2>/dev/null || true; } | { grep -o '/[^ ]*' || true; } | while read -r lib; do
		[[ -e $dir$lib ]] || { mkdir -p "$dir$(dirname "$lib")" && cp -L "$RIG_ROOT$lib" "$dir$lib"; }
	done
}

# add_modules DIR KERNEL MODULE...: the modules with what they depend on, and
# DIR/modules.list in the order of loading. What the kernel has built in is no
# module and no error.
add_modules() {
	local dir=$1 kernel=$2 base release m path

	shift 2
	base=$RIG_ROOT/kernels/$kernel
	release=$(cat "$base/release")
	mkdir -p "$dir/modules"
	: >"$dir/modules.list"
	for m in "$@"; do
		modprobe -d "$base" -S "$release" --show-depends "$m" 2>/dev/null || true
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r path; do
		m=$(basename "$path")
		case $m in
		*.xz) m=${m%.xz}; xz -dc "$path" >"$dir/modules/$m" ;;
		*.zst) m=${m%.zst}; zstd -qdc "$path" >"$dir/modules/$m" ;;
		*) cp "$path" "$dir/modules/$m" ;;
		esac || return 1
		printf '%s\n' "$m" >>"$dir/modules.list"
	done
}

# pack DIR FILE: an initramfs of the tree. Not compressed: unpacking costs more
# inside the emulator than reading.
pack() { (cd "$1" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) >"$2"; }

# uncompressed KERNEL: the stock kernel as the ELF file inside its bzImage, which
# QEMU starts through the PVH entry. The same kernel; only that decompressing it
# inside nested emulation would take longer than the rest of the boot.
uncompressed() { cache_entry "vmlinux-$1" "$RIG_DIR"/lib/image.sh "$RIG_DIR"/lib/recipe.sh -- build_uncompressed "$1"; }

# Offsets: Documentation/arch/x86/boot.rst, setup_sects, payload_offset and
# payload_length; the payload ends with its uncompressed size, 4 bytes.
build_uncompressed() {
	local out=$1/vmlinux image=$RIG_ROOT/kernels/$2/vmlinuz start length

	start=$((($(u8 "$image" 0x1f1) + 1) * 512 + $(u32 "$image" 0x248)))
	length=$(($(u32 "$image" 0x24c) - 4))
	tail -c +$((start + 1)) "$image" | head -c "$length" >"$out.packed"
	case $(od -An -tx1 -N4 "$out.packed" | tr -d ' ') in
	28b52ffd) zstd -qdc "$out.packed" ;;
	fd377a58) xz -dc "$out.packed" ;;
	*) say "rig: kernel $2 is packed in a way that is not known here"; return 1 ;;
	esac >"$out" || return 1
	rm "$out.packed"
}

u8() { od -An -tu1 -j $(($2)) -N1 "$1" | tr -d ' '; }
u32() { od -An -tu4 -j $(($2)) -N4 "$1" | tr -d ' '; }

# A guest: busybox, the rig's channel, hackbench. Its init brings up the
# channel and nothing else: what a test needs, the test starts.
guest_image() { cache_entry "guest-$1" "$RIG_DIR"/lib/image.sh "$RIG_DIR"/rpc/* "$RIG_DIR"/lib/recipe.sh -- build_guest_image "$1"; }

build_guest_image() {
	local out=$1 kernel=$2 dir=$1/tree

	mkdir -p "$dir"/{bin,sbin,proc,sys,dev,tmp,run,etc,root,usr/bin}
	add_file "$dir" /usr/bin/busybox || return 1
	add_file "$dir" /usr/bin/hackbench || return 1
	add_file "$dir" /usr/bin/nice || return 1
	ln -s /usr/bin/busybox "$dir/bin/sh"
	cp "$(rig_tools)/rpcd" "$dir/sbin/rpcd"
	add_modules "$dir" "$kernel" virtio_pci virtio_console || return 1
	cat >"$dir/init" <<-'INIT'
	#!/bin/sh
	export PATH=/usr/bin:/bin:/sbin HOME=/root
	/usr/bin/busybox --install -s /bin
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t devtmpfs dev /dev
	mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
	mount -t debugfs debugfs /sys/kernel/debug
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	echo Y >/sys/kernel/debug/sched/verbose 2>/dev/null
	echo 1 >/proc/sys/kernel/sched_schedstats 2>/dev/null
	while read -r m; do insmod /modules/$m; done </modules.list
	ip link set lo up 2>/dev/null
	# the channel: the port of this name, when it is there, or the console of a
	# Xen domain, which then is the channel's: only a panic is printed there
	if [ "$(cat /sys/hypervisor/type 2>/dev/null)" = xen ]; then
		dmesg -n 1
		echo "rig: guest is up"
		while :; do setsid /sbin/rpcd /dev/hvc0; done
	fi
	while :; do
		for p in /sys/class/virtio-ports/*; do
			[ "$(cat $p/name 2>/dev/null)" = org.tandem.rig.0 ] || continue
			echo "rig: guest is up"
			setsid /sbin/rpcd /dev/${p##*/}
		done
		usleep 20000
	done
	INIT
	chmod +x "$dir/init"
	pack "$dir" "$out/initrd" && rm -rf "$dir"
}

# The KVM host (L1): an initramfs that mounts the rig's root over 9p, read-only,
# with the job's folder at /rig, and runs everything from there.
host_image() { cache_entry "host-$RIG_HOST_KERNEL" "$RIG_DIR"/lib/image.sh "$RIG_DIR"/rpc/* "$RIG_DIR"/lib/recipe.sh -- build_host_image; }

build_host_image() {
	local out=$1 dir=$1/tree

	mkdir -p "$dir"/{bin,proc,sys,dev,root}
	add_file "$dir" /usr/bin/busybox || return 1
	mkdir -p "$dir/bin"
	ln -s /usr/bin/busybox "$dir/bin/sh"
	cp "$(rig_tools)/rpcd" "$dir/bin/rpcd"
	add_modules "$dir" "$RIG_HOST_KERNEL" virtio_pci virtio_console 9p 9pnet_virtio kvm kvm-amd || return 1
	cat >"$dir/init" <<-'INIT'
	#!/bin/sh
	export PATH=/usr/bin:/bin HOME=/root
	/usr/bin/busybox --install -s /bin
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t devtmpfs dev /dev
	while read -r m; do insmod /modules/$m; done </modules.list
	o=trans=virtio,version=9p2000.L,msize=262144
	mount -t 9p -o ro,cache=loose,$o root /root || echo "rig: no root over 9p"
	mount -t 9p -o rw,$o job /root/rig || echo "rig: no job folder over 9p"
	mount -t tmpfs tmpfs /root/tmp
	mount -t tmpfs tmpfs /root/run
	mount --bind /dev /root/dev
	mount -t proc proc /root/proc
	mount -t sysfs sysfs /root/sys
	mount -t debugfs debugfs /root/sys/kernel/debug
	mount -t tracefs tracefs /root/sys/kernel/tracing
	mount -t cgroup2 cgroup2 /root/sys/fs/cgroup
	cp /bin/rpcd /root/run/rpcd
	for p in /sys/class/virtio-ports/*; do
		[ "$(cat $p/name)" = org.tandem.rig.0 ] && port=${p##*/}
	done
	echo "rig: host is up"
	# not exec: the shell stays as init and reaps what commands leave behind
	while :; do
		# before the guests' vCPUs in the queue; a guest's QEMU starts at nice 0
		chroot /root env PATH=/usr/sbin:/usr/bin LC_ALL=C.UTF-8 nice -n -19 /run/rpcd /dev/$port
	done
	INIT
	chmod +x "$dir/init"
	pack "$dir" "$out/initrd" && rm -rf "$dir"
}
