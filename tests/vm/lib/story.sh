# SPDX-License-Identifier: GPL-2.0
# First line of every demo: STORY names it. A story is told in steps, and ends
# with "STORY: ok", or exits non-zero with the reason.
# shellcheck shell=bash

if [[ -z ${STORY_TRY:-} ]]; then
	# an emulator fault says nothing about the product: once more
	for STORY_TRY in 1 2 3; do
		STORY_TRY=$STORY_TRY "$0" "$@"
		status=$?
		[[ $status -eq 75 ]] || exit $status
		echo "$STORY: the emulator failed, not the product; trying again" >&2
	done
	echo "$STORY: FAILED: three emulator faults in a row" >&2
	exit 75
fi
JOB=${BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build}/vm/$STORY
. "$(dirname "${BASH_SOURCE[0]}")/job.sh"

STEP=0

step() { STEP=$((STEP + 1)); printf '\n%d. %s\n' "$STEP" "$*"; }
failed() { say "$STORY: FAILED: $*"; exit 1; }
must() { local why=$1; shift; "$@" || failed "$why"; }
indent() { sed 's/^/     /'; }

# levels DUMP: "cpu0: SMT+MC" for each CPU
levels() {
	awk '{ l[$1] = l[$1] (l[$1] == "" ? "" : " in ") $3 "(" substr($4, 6) ")" }
		END { for (c in l) print c ":  " l[c] }' <<<"$1" | sort
}

# said NAME: the module's own lines in the guest's log
said() { on "$1" 'dmesg | grep "tandem: " | grep -v -e taints -e verification | sed "s/.*tandem: /tandem: /"'; }

# told_restored NAME BEFORE: the last step for one VM: unload, and all is as found
told_restored() {
	must "tandem.ko did not unload from $1" on "$1" 'killall -q tandemd 2>/dev/null; rmmod tandem'
	must "something of tandem is left in $1" test -z "$(in_guest "$1" leftovers)"
	must "the kernel log of $1 is not clean" clean_log "$1"
	must "the domains of $1 are not as they were" test "$(in_guest "$1" domains)" = "$2"
}
