# SPDX-License-Identifier: GPL-2.0
# The recipe of the rig's root; a change here makes the root anew. One Debian chroot with QEMU 10, the headers and compilers of
# the three kernels, and the kernels themselves unpacked beside it.
# shellcheck shell=bash

# Debian 13 brings QEMU 10 and gcc-14 for 6.12 and 7.3; Debian 12 brings 6.1.
RIG_SUITE=trixie
RIG_PACKAGES=(
	busybox-static kmod cpio xz-utils zstd make gcc libc6-dev pkgconf bash
	procps iproute2 qemu-system-x86 seabios
	libinih-dev libjson-c-dev libev-dev liburcu-dev libxen-dev
	rt-tests perl sparse
)

# mirrors: the machine's own mirrors, from apt's configuration at run time.
# Sets MIRROR and SECURITY.
mirrors() {
	local label site

	MIRROR='' SECURITY=''
	while IFS='|' read -r label site; do
		case $label in
		Debian) MIRROR=${MIRROR:-$site} ;;
		Debian-Security) SECURITY=${SECURITY:-$site} ;;
		esac
	done < <(apt-get indextargets --format '$(LABEL)|$(SITE)' 'Created-By: Packages')
	[[ -n $MIRROR ]] ||
		die "apt knows no Debian mirror: run apt-get update, or add one to /etc/apt/sources.list.d"
	SECURITY=${SECURITY:-${MIRROR%/debian}/debian-security}
}

# kernel_version ROOT SERIES: the newest package version of linux-image-amd64
# in that series that the root's suites offer.
kernel_version() {
	chroot "$1" apt-cache madison linux-image-amd64 |
		awk -F' *[|] *' -v s="$2." 'index($2, s) == 1 { print $2 }' |
		sort -V | tail -n 1
}

# depends_of ROOT PACKAGE PATTERN: the first dependency that matches.
depends_of() {
	chroot "$1" apt-cache depends "$2" |
		sed -n 's/.*Depends: //p' | grep -m 1 -E "^$3"
}

# unpack_kernel ROOT SERIES: the image, unpacked and not installed (no
# initramfs is made, no boot loader is touched), below ROOT/kernels/SERIES.
unpack_kernel() {
	local root=$1 series=$2 version image deb dir

	version=$(kernel_version "$root" "$series")
	[[ -n $version ]] || { say "rig: no linux-image-amd64 $series.* in Debian's suites"; return 1; }
	image=$(depends_of "$root" "linux-image-amd64=$version" 'linux-image-[0-9]') || return 1
	dir=$root/kernels/$series
	mkdir -p "$dir" "$root/tmp/deb"
	# From 7.x on the image is split: modules and binary are dependencies.
	(cd "$root/tmp/deb" && chroot "$root" sh -c 'cd /tmp/deb && apt-get -qq -o APT::Sandbox::User=root download "$@"' - \
		"$image=$version" $(chroot "$root" apt-cache depends "$image=$version" |
			sed -n 's/.*Depends: //p' | grep -E '^linux-(modules|binary)-[0-9]')) || return 1
	for deb in "$root"/tmp/deb/*.deb; do
		dpkg-deb -x "$deb" "$dir" || return 1
	done
	rm -rf "$root/tmp/deb"
	printf '%s\n' "${image#linux-image-}" >"$dir/release"
	cp "$(find "$dir" -name 'vmlinuz*' -type f | head -n 1)" "$dir/vmlinuz" || return 1
	# one place for the modules, wherever the package puts them; Debian's
	# debug-size modules that no guest here can use are left out
	[[ -d $dir/usr/lib/modules ]] && mkdir -p "$dir/lib" && mv "$dir/usr/lib/modules" "$dir/lib/modules"
	rm -rf "$dir/usr" "$dir/boot" "$dir"/lib/modules/*/kernel/{sound,drivers/{gpu,media,net/wireless,iio,staging,infiniband,usb,hwmon,scsi}}
	# it warns of lists that 7.x keeps in a package that is not needed here
	depmod -b "$dir" "${image#linux-image-}" 2>/dev/null
}

# build_root DIR PACKAGE...: the whole root, about 90 s.
build_root() {
	local root=$1 series version headers=()

	shift
	mirrors
	progress "making the rig's root: Debian $RIG_SUITE with QEMU and compilers (about a minute)"
	mmdebstrap --quiet --variant=apt --skip=cleanup/apt/lists --include="$(IFS=,; echo "$*")" \
		"$RIG_SUITE" "$root" - <<-LIST || return 1
		deb $MIRROR $RIG_SUITE main
		deb $MIRROR $RIG_SUITE-updates main
		deb $MIRROR $RIG_SUITE-backports main
		deb $SECURITY $RIG_SUITE-security main
		deb $MIRROR bookworm main
		deb $SECURITY bookworm-security main
	LIST
	mkdir -p "$root"/{kernels,rig,tandem,build}
	for series in $RIG_KERNELS; do
		progress "unpacking kernel $series"
		unpack_kernel "$root" "$series" || return 1
		version=$(kernel_version "$root" "$series")
		headers+=("$(depends_of "$root" "linux-headers-amd64=$version" 'linux-headers-[0-9]')")
	done
	progress "installing ${headers[*]}"
	# INITRD=No: nobody boots the images that the headers pull in
	DEBIAN_FRONTEND=noninteractive INITRD=No chroot "$root" apt-get -q install -y \
		--no-install-recommends "${headers[@]}" >"$root/tmp/log" 2>&1 || {
		tail -n 20 "$root/tmp/log" >&2
		return 1
	}
	# names that do not change with the version
	for series in $RIG_KERNELS; do
		ln -s "/usr/src/linux-headers-$(cat "$root/kernels/$series/release")" \
			"$root/kernels/$series/build"
	done
	rm -rf "$root"/tmp/* "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/usr/share/{doc,man,locale}
	: >"$root/etc/resolv.conf"
}
