# SPDX-License-Identifier: GPL-2.0
# First line of every test in t/: the rig, a job folder, the overlay for guests.
# shellcheck shell=bash

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
for part in root image vm tap; do
	# shellcheck source=/dev/null
	. "$RIG_DIR/lib/$part.sh"
done
unset part
KERNEL=${KERNEL:-6.12}
JOB=${JOB:-$BUILD/vm/$(basename "$0" .t)-$KERNEL}

rig_setup
job_init
cp "$RIG_DIR/guest-lib.sh" "$JOB/overlay/t/lib.sh"

# give WHAT...: put built things into the guests' overlay, below /t.
give() {
	local what

	for what in "$@"; do
		case $what in
		product | test)
			build_kmod "$KERNEL" "$what"
			cp "$BUILD/kmod/$KERNEL-$what/tandem.ko" "$JOB/overlay/t/$what.ko" ;;
		lockload)
			build_kmod "$KERNEL" lockload
			cp "$BUILD/kmod/$KERNEL-lockload/lockload.ko" "$JOB/overlay/t/" ;;
		agent)
			build_agent
			add_built "$JOB/overlay" tandemd tandemctl ;;
		*) die "give: nothing is called $what" ;;
		esac
	done
}

# add_built DIR PROGRAM...: our programs with their libraries.
add_built() {
	local dir=$1 p lib

	shift
	mkdir -p "$dir/usr/bin"
	for p in "$@"; do
		cp "$BUILD/rig/bin/$p" "$dir/usr/bin/$p" || die "no $p was built"
		in_root ldd "/build/rig/bin/$p" | grep -o '/[^ ]*' | while read -r lib; do
			mkdir -p "$dir$(dirname "$lib")"
			[[ -e $dir$lib || ! -e $RIG_ROOT$lib ]] || cp -L "$RIG_ROOT$lib" "$dir$lib"
		done
	done
}

# in_guest NAME COMMANDS: with the guest's own library loaded.
in_guest() { on "$1" ". /t/lib.sh; $2"; }
