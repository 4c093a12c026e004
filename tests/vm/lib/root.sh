# SPDX-License-Identifier: GPL-2.0
# How the rig enters its root, the Debian chroot that recipe.sh describes.
# shellcheck shell=bash

# shellcheck source=tests/vm/lib/recipe.sh
. "$RIG_DIR/lib/recipe.sh"

# rig_setup: have the root, checked once; everything after finds it in RIG_ROOT.
rig_setup() {
	[[ -z ${RIG_ROOT:-} ]] || return 0
	need_packages mmdebstrap debian-archive-keyring kmod cpio xz-utils zstd util-linux
	apt_lists
	RIG_ROOT=$(cache_entry root "$RIG_DIR/lib/recipe.sh" -- build_root "${RIG_PACKAGES[@]}") || exit 1
	export RIG_ROOT
}

# in_root COMMAND...: run it in the root, in a mount and PID namespace of its
# own: the root itself read-only, the tree at /tandem (read-only), the build
# folder at /build, the rest as a chroot needs it. Nothing stays mounted, and
# what it started ends with it. IN_ROOT_EXEC=exec replaces the calling shell,
# so that a background job's PID is the one to kill.
in_root() {
	mkdir -p "$BUILD"
	${IN_ROOT_EXEC:-} unshare --mount --pid --fork --kill-child=KILL -- "$BASH" -c '
		set -e
		root=$1 top=$2 build=$3; shift 3
		mount --bind "$root" "$root"
		mount --bind "$top" "$root/tandem"
		mount -o remount,bind,ro "$root/tandem"
		mount --bind "$build" "$root/build"
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs tmpfs "$root/tmp"
		mount -t tmpfs tmpfs "$root/run"
		mount -o remount,bind,ro "$root"
		export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin
		exec chroot "$root" "$@"' - "$RIG_ROOT" "$TOP" "$BUILD" "$@"
}
