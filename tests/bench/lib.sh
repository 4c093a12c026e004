# SPDX-License-Identifier: GPL-2.0
# What the benchmarks in b/ use. Sourced by run; see docs/bench.md.
#
# b/NAME.sh describes one benchmark:
#	PARTS	names of its parts, in order
#	RIG_PARTS	those that need the rig: they find what a test of
#		tests/vm/t/ finds, with a job folder of their own
#	FOOTER	lines for below the table, an array
#	part_X	measures part X and calls metric and aim; where it
#		cannot it calls unmeasured
# Each part is a process of its own, so that one can be run again.
# shellcheck shell=bash

# metric NAME UNIT VALUE...: all values of one quantity, as measured.
metric() {
	local name=$1 v

	[[ $# -gt 2 ]] || unmeasured "$name: no value"
	for v in "${@:3}"; do
		[[ $v =~ ^-?[0-9]+(\.[0-9]+)?$ ]] || unmeasured "$name: '$v' is not a number"
	done
	(IFS=' '; printf '%s\t%s\t%s\n' "$name" "$2" "${*:3}") >>"$VALUES"
}

# aim NAME TEXT: what the design wants of it; shown, not judged.
aim() { printf '%s\t%s\n' "$1" "$2" >>"$VALUES.aims"; }

# remark TEXT: one more line below the table.
remark() { printf '%s\n' "$*" >>"$VALUES.remarks"; }

# unmeasured REASON: end the benchmark.
unmeasured() { die "bench $BENCH, $PART: could not measure: $*"; }

# give_bench_module NAME: tests/bench/kmod/NAME.c into the guests' overlay.
give_bench_module() {
	local out=kmod/$KERNEL-bench log=$BUILD/kmod/$KERNEL-bench.log

	mkdir -p "$BUILD/$out"
	{ cp -a -u "$TOP"/tests/bench/kmod/* "$BUILD/$out/" &&
		in_root make -C "/kernels/$KERNEL/build" M="/build/$out" W=1 KCFLAGS=-Werror modules; } >"$log" 2>&1 || {
		tail -n 30 "$log" >&2
		unmeasured "building $1 for kernel $KERNEL failed (log: $log)"
	}
	mkdir -p "$JOB/overlay-$KERNEL/t" && cp "$BUILD/$out/$1.ko" "$JOB/overlay-$KERNEL/t/"
}
