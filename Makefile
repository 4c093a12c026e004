# SPDX-License-Identifier: GPL-2.0
# tandem: see README.md; "make help" lists the targets.

VERSION := 0.1.0

# Everything that is built goes below BUILD; the tree itself stays clean.
BUILD	?= build
override BUILD := $(abspath $(BUILD))
KDIR	?= /lib/modules/$(shell uname -r)/build
KOUT	?= $(BUILD)/kmod/$(shell uname -r)

CLANG	?= clang
# make V=1 shows the commands
Q	:= $(if $(V),,@)
WARN	:= -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
CFLAGS	?= -O2 -g
CPPFLAGS += -D_GNU_SOURCE -DTANDEM_VERSION='"$(VERSION)"' -Iagent -Iguest-kmod
ALL_CFLAGS = -std=gnu11 $(WARN) $(CFLAGS) $(SAN)
LDLIBS	:= $(shell pkg-config --libs xenstore 2>/dev/null || echo -lxenstore) -linih -ljson-c -lev $(shell pkg-config --libs liburcu 2>/dev/null || echo -lurcu) -lpthread
SAN	:=
# what the build needs is installed first; set it to nothing where that is done
PREREQ	?= prereq

PROGRAMS := tandemd tandem-groupd tandemctl
AGENT_SRC := $(filter-out $(PROGRAMS:%=agent/%.c),$(wildcard agent/*.c))
AGENT_OBJ := $(AGENT_SRC:%.c=$(BUILD)/%.o)
UNIT	:= $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
FUZZ	:= $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 10

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all help module agent unit unit-run fuzz style check check-fast demo demo-xen bench clean distclean prereq

all: module agent ## build the module for the running kernel (or KDIR=...) and the userspace

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

# --- the module -------------------------------------------------------------
# Kbuild writes beside its sources: it gets a copy, so that one tree serves any
# number of kernels. cp -u keeps the times, so a second build is incremental.

module: ## build tandem.ko against KDIR into KOUT
	@test -e '$(KDIR)/Makefile' || { \
		echo "make: no kernel headers at $(KDIR): install linux-headers-$$(uname -r), or name others: make KDIR=/path/to/headers, or build the userspace alone: make agent" >&2; exit 1; }
	@mkdir -p '$(KOUT)'
	@cp -a -u Kbuild guest-kmod hypercall '$(KOUT)/'
	$(MAKE) -C '$(KDIR)' M='$(abspath $(KOUT))' W=1 KCFLAGS=-Werror $(if $(CHECK_SPARSE),C=1) \
		$(if $(TANDEM_TEST_HV),TANDEM_TEST_HV=1) modules

# --- the userspace ----------------------------------------------------------

agent: $(PROGRAMS:%=$(BUILD)/bin/%) ## build tandemd, tandem-groupd and tandemctl into build/bin

$(BUILD)/%.o: %.c | $(PREREQ)
	@mkdir -p $(@D)
	@echo "  CC      $@"
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/libtandem.a: $(AGENT_OBJ)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/bin/%: $(BUILD)/agent/%.o $(BUILD)/libtandem.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# --- tests ------------------------------------------------------------------

# the tests that need a xenstored bring their own
$(filter $(BUILD)/unit/test_xen%,$(UNIT:%=$(BUILD)/unit/%)): $(BUILD)/tests/unit/fakestore.o
$(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/guest-kmod/policy.o $(BUILD)/libtandem.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

unit-run: $(UNIT:%=$(BUILD)/unit/%) $(PROGRAMS:%=$(BUILD)/bin/%)
	@BUILD='$(BUILD)' tests/run-unit $(UNIT:%=$(BUILD)/unit/%)

unit: ## build and run the unit tests, plain and with ASan and UBSan
	@$(MAKE) --no-print-directory unit-run
	@$(MAKE) --no-print-directory unit-run BUILD='$(BUILD)/asan' \
		SAN='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'

$(BUILD)/fuzz/%: tests/fuzz/%.c $(AGENT_SRC) $(wildcard agent/*.h) | $(PREREQ)
	@mkdir -p $(@D)
	@echo "  FUZZ    $@"
	$(Q)$(CLANG) $(CPPFLAGS) -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-o $@ $< $(AGENT_SRC) $(LDLIBS)

fuzz: $(FUZZ:%=$(BUILD)/fuzz/%) ## run every fuzzer for FUZZ_SECONDS (10)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run-fuzz $(FUZZ:%=$(BUILD)/fuzz/%)

style: ## checkpatch --strict and man page warnings
	@tests/style

check-fast: ## before each commit: build with all warnings, unit tests, style
	@tests/check fast

check: ## everything: unit tests, fuzzers, style, VM tests on real hosts in the rig
	@tests/check all

demo: ## the main job from a fresh machine: two guests on an overcommitted KVM host
	@tests/vm/demo

demo-xen: ## the same on a Xen host, two PV guests of four vCPUs on two pCPUs
	@tests/vm/demo-xen

bench: ## run one benchmark: make bench B=cost
	@tests/bench/run '$(B)'

clean: ## remove what was built, keep the cache of chroots and kernels
	@test ! -d '$(BUILD)' || find '$(BUILD)' -mindepth 1 -maxdepth 1 ! -name cache -exec rm -rf {} +

distclean: ## remove the cache too
	rm -rf '$(BUILD)'

prereq:
	@tests/prereq

-include $(shell find $(BUILD) -name '*.d' -not -path '*/cache/*' 2>/dev/null)
