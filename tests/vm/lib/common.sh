# SPDX-License-Identifier: GPL-2.0
# Common ground of the rig: where things are, how it speaks, how it caches.
# Sourced by every other script here; sets -u and pipefail for them.
# shellcheck shell=bash

set -u -o pipefail

RIG_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TOP=$(cd "$RIG_DIR/../.." && pwd)
BUILD=${BUILD:-$TOP/build}
CACHE=${TANDEM_CACHE:-$BUILD/cache}
RIG_KERNELS=${RIG_KERNELS:-6.1 6.12 7.3}
# The host kernel of the KVM rig: one stock kernel for all guests, so that a
# difference between guest kernels is the guest's.
RIG_HOST_KERNEL=${RIG_HOST_KERNEL:-6.12}
# shellcheck disable=SC2034  # used by the scripts that source this file
export RIG_DIR TOP BUILD CACHE RIG_KERNELS RIG_HOST_KERNEL

# exit status of a run that met an emulator fault (EX_TEMPFAIL of sysexits.h)
EMULATOR_FAULT=75

say() { printf '%s\n' "$*" >&2; }
die() { say "rig: $*"; exit 1; }

# progress TEXT: what is going on, with the seconds since the script began.
progress() { printf '  [%3ds] %s\n' "$SECONDS" "$*" >&2; }

# need_root_on_debian: the rig makes chroots and mounts, from Debian packages.
need_root_on_debian() {
	[[ $(id -u) -eq 0 ]] ||
		die "must run as root: it makes chroots with mmdebstrap; try: sudo make ..."
	command -v apt-get >/dev/null ||
		die "needs Debian's apt-get, and this machine has none: run it on Debian 12 or later"
	[[ $(dpkg --print-architecture) == amd64 ]] ||
		die "needs an amd64 machine: the hosts and guests are stock amd64 kernels"
}

# apt_lists: apt's package lists, fetched if the machine has none yet.
apt_lists() {
	compgen -G '/var/lib/apt/lists/*Release' >/dev/null || apt-get -qq update
}

# need_packages PKG...: install what is missing from Debian, say what failed.
need_packages() {
	local missing=() p log

	for p in "$@"; do
		dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null |
			grep -qx installed || missing+=("$p")
	done
	[[ ${#missing[@]} -gt 0 ]] || return 0
	need_root_on_debian
	progress "installing ${missing[*]}"
	log=$(mktemp)
	{ apt-get -q update &&
		DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
			--no-install-recommends "${missing[@]}"; } >"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		rm -f "$log"
		die "apt-get could not install: ${missing[*]} (its last lines are above)"
	}
	rm -f "$log"
}

# The cache. An entry is a folder CACHE/NAME-KEY with the hash of its recipe in
# its name and a manifest (path, size, mode of each file) beside it. It is made
# under another name and moved into place, so that an interrupted build leaves
# no entry; one whose files do not match the manifest is made anew.

manifest() { (cd "$1" && find . -xdev -type f -printf '%P %s %m\n' | LC_ALL=C sort | sha256sum); }

# cache_entry NAME RECIPE-FILE... -- BUILDER [ARG...]: print the entry's path,
# made by "BUILDER DIR ARG..." unless a sound one is there. One at a time.
cache_entry() {
	local name=$1 key dir tmp
	local recipe=()

	shift
	while [[ $1 != -- ]]; do
		recipe+=("$1")
		shift
	done
	shift
	key=$(cat "${recipe[@]}" | cat - <(printf '%s\n' "$*") | sha256sum | cut -c1-16)
	dir=$CACHE/$name-$key
	mkdir -p "$CACHE" && [[ -w $CACHE ]] ||
		die "cannot write to the cache $CACHE: run as its owner, or set TANDEM_CACHE"
	exec {lock}>"$CACHE/.$name.lock" || die "cannot lock the cache entry $name"
	flock "$lock"
	if [[ -d $dir && $(manifest "$dir") != "$(cat "$dir.manifest" 2>/dev/null)" ]]; then
		say "rig: cache entry $name is broken (its files do not match its manifest): making it anew"
		rm -rf "$dir" "$dir.manifest"
	fi
	if [[ ! -d $dir ]]; then
		for tmp in "$CACHE/$name"-*; do
			[[ -e $tmp ]] && rm -rf "$tmp"
		done
		tmp=$CACHE/.$name.new
		rm -rf "$tmp"
		mkdir -p "$tmp"
		"$1" "$tmp" "${@:2}" >&2 || {
			rm -rf "$tmp"
			die "could not make the cache entry $name"
		}
		manifest "$tmp" >"$dir.manifest"
		mv "$tmp" "$dir"
	fi
	exec {lock}>&-
	printf '%s\n' "$dir"
}
