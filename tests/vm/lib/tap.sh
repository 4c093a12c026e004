# SPDX-License-Identifier: GPL-2.0
# TAP for the rig's tests. Text that explains goes to standard error.
# shellcheck shell=bash

TAP_N=0
TAP_BAD=0

# ok CONDITION-STATUS NAME: pass when the status is 0.
ok() {
	TAP_N=$((TAP_N + 1))
	if [[ $1 -eq 0 ]]; then
		printf 'ok %d - %s\n' "$TAP_N" "$2"
	else
		printf 'not ok %d - %s\n' "$TAP_N" "$2"
		TAP_BAD=$((TAP_BAD + 1))
	fi
	return "$1"
}

# try NAME COMMAND...: pass when the command succeeds.
try() {
	local name=$1 status=0

	shift
	"$@" || status=$?
	[[ ! -e $JOB/fault && ! -e $JOB/failed ]] || exit 1
	ok "$status" "$name"
}

# is GOT WANTED NAME
is() {
	local same=1

	[[ $1 == "$2" ]] && same=0
	ok "$same" "$3" || diff <(printf '%s\n' "$2") <(printf '%s\n' "$1") |
		head -n 30 | sed 's/^/#   /; s/^#   </#   wanted/; s/^#   >/#   got   /' >&2
	return $same
}

# like GOT REGEX NAME
like() {
	local same=1

	[[ $1 =~ $2 ]] && same=0
	ok "$same" "$3" || printf '#   got    %s\n#   wanted %s\n' "${1:0:300}" "$2" >&2
	return $same
}

# above GOT FLOOR NAME (integers)
above() {
	local good=1

	[[ $1 =~ ^-?[0-9]+$ && $2 =~ ^-?[0-9]+$ && $1 -gt $2 ]] && good=0
	ok "$good" "$3" || printf '#   got %s, wanted more than %s\n' "$1" "$2" >&2
	return $good
}

note() { printf '# %s\n' "$*"; }

tap_done() {
	printf '1..%d\n' "$TAP_N"
	[[ $TAP_BAD -eq 0 ]]
}
