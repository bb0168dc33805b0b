# Stacker. `make help` lists the targets. Every target does the set-up it needs.

VERSION := $(shell cat VERSION)
PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   ?= build
DIST    ?= dist
PYTHON  ?= /usr/bin/python3

HOST_ARCH := $(shell uname -m)
HOST      := $(if $(filter aarch64,$(HOST_ARCH)),arm64,amd64)

export PATH := $(CURDIR)/scripts:$(PATH)

MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc) # an explicit -j wins
endif
ifneq ($(filter clean distclean,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif
.DELETE_ON_ERROR:
.SECONDARY:

quote = '$(subst ','\'',$(1))'
# Writes the text to the target, unless it is there already.
keep  = @mkdir -p $(@D); printf '%s\n' $(call quote,$(1)) >$@.$$$$; \
	if cmp -s $@.$$$$ $@; then rm $@.$$$$; else mv $@.$$$$ $@; fi

# `make V=1` shows the commands.
Q   := $(if $(V),,@)
say  = @printf '  %-10s %s\n' '$(1)' '$(2)'

## Flavours
#
# amd64 and arm64 are what is shipped: static-pie on musl, by the same rules on either machine. san
# is for developers: the machine's own C library and shared libraries, with the address and
# undefined-behaviour sanitizers. clang is compiled for its warnings.

RELEASED := amd64 arm64
FLAVOURS := $(RELEASED) san clang fuzz cov

ARCH_amd64 := x86_64
ARCH_arm64 := aarch64

define released
CC_$(1)       := $(ARCH_$(1))-linux-musl-gcc
BINUTILS_$(1) := $(ARCH_$(1))-linux-gnu-
SETUP_$(1)    := $(ARCH_$(1))
PROGRAM_$(1)  := stacker.debug
CFLAGS_$(1)   := -O2 -fPIE -fstack-protector-strong -ffunction-sections -fdata-sections \
		 -isystem build/deps/$(ARCH_$(1))/include/libiberty
LDFLAGS_$(1)  := -static-pie -Wl,--gc-sections
endef
$(foreach f,$(RELEASED),$(eval $(call released,$(f))))

CC_san       := gcc
BINUTILS_san :=
SETUP_san    := san
PROGRAM_san  := stacker
CFLAGS_san   := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined \
		-fno-sanitize-recover=undefined -isystem /usr/include/libiberty
LDFLAGS_san  :=

CC_clang       := clang
BINUTILS_clang :=
SETUP_clang    := san lint
PROGRAM_clang  := stacker
CFLAGS_clang   := -O1 -Wno-unknown-warning-option -isystem /usr/include/libiberty
LDFLAGS_clang  :=

# libFuzzer's, see mk/fuzz.mk.
CC_fuzz       := clang
BINUTILS_fuzz :=
SETUP_fuzz    := san lint
PROGRAM_fuzz  := stacker
CFLAGS_fuzz   := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined,fuzzer-no-link \
		-fno-sanitize-recover=undefined -Wno-unknown-warning-option -isystem /usr/include/libiberty
LDFLAGS_fuzz  :=

# To count lines, see mk/coverage.mk.
CC_cov       := gcc
BINUTILS_cov :=
SETUP_cov    := san
PROGRAM_cov  := stacker
CFLAGS_cov   := -O0 --coverage -fprofile-update=atomic -isystem /usr/include/libiberty
LDFLAGS_cov  := -Wl,--wrap=sandbox_enter tests/lib/no_sandbox.c

CPPFLAGS := -Isrc -D_GNU_SOURCE -DSTACKER_VERSION='"$(VERSION)"'
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	    -Wcast-qual -Wwrite-strings -Wvla -Wconversion -Wsign-conversion -Wno-format-truncation
CFLAGS   := -std=gnu17 -g $(WARNINGS) -ffile-prefix-map=$(CURDIR)=.
LDLIBS   := -ljson-c -llzma -lzstd -lisal -liberty -lm
WERROR   := $(if $(CI),-Werror)

# What runs in the kernel is compiled for it (mk/bpf.mk).
SOURCES  := $(sort $(shell find src -name '*.c' ! -name '*.bpf.c'))
CORE     := $(filter-out src/main.c,$(SOURCES))

# Every tests/unit/test_*.c is a program; the other files there are linked into each of them.
UNIT_SOURCES := $(sort $(wildcard tests/unit/*.c))
UNIT_TESTS   := $(filter tests/unit/test_%,$(UNIT_SOURCES))
UNIT_HELPERS := $(filter-out $(UNIT_TESTS),$(UNIT_SOURCES))
# What needs a live process cannot run in an emulator.
UNIT_PURE    := $(filter-out tests/unit/test_live_%,$(UNIT_TESTS))

.PHONY: default all help clean distclean check install uninstall FORCE
default: $(HOST)
all: $(RELEASED)

## Set-up

.PHONY: setup setup-bpf setup-test setup-programs setup-lint $(FLAVOURS:%=setup-%)
setup:
	@scripts/setup bpf x86_64 aarch64
setup-bpf:
	@scripts/setup bpf
setup-test:
	@scripts/setup bpf san test x86_64 aarch64
setup-programs:
	@scripts/setup bpf san test symbolizer programs x86_64 aarch64
setup-lint:
	@scripts/setup bpf san lint x86_64 aarch64
$(FLAVOURS:%=setup-%): setup-%:
	@scripts/setup $(SETUP_$*)

## Building

include mk/bpf.mk

# $(1) = flavour. Two files change only when what they hold does, and then what depends on them is
# made again: `flags` (compiler and options: everything) and `sources` (their list: what is linked).
define flavour
.PHONY: objects-$(1) unit-objects-$(1)
objects-$(1): $(SOURCES:%.c=$(BUILD)/$(1)/obj/%.o)
unit-objects-$(1): $(patsubst %.c,$(BUILD)/$(1)/obj/%.o,$(UNIT_HELPERS) $(UNIT_PURE))

$(BUILD)/$(1)/flags: FORCE
	$$(call keep,$$(CC_$(1)) $$(CPPFLAGS) $$(CFLAGS) $$(CFLAGS_$(1)) $$(WERROR) \
		$$(LDFLAGS_$(1)) $$(LDLIBS))
$(BUILD)/$(1)/sources: FORCE
	$$(call keep,$$(SOURCES) $$(UNIT_HELPERS))

$(BUILD)/$(1)/obj/%.o: %.c $(BUILD)/$(1)/flags | setup-$(1)
	$$(call say,CC $(1),$$<)
	@mkdir -p $$(@D)
	$$(Q)$$(CC_$(1)) $$(CPPFLAGS) $$(CFLAGS) $$(CFLAGS_$(1)) $$(EXTRA) $$(WERROR) \
		-MMD -MP -c $$< -o $$@

$(BUILD)/$(1)/obj/src/process/iterator.o: $(BPF_DIR)/$(or $(ARCH_$(1)),$(HOST_ARCH))/threads.lskel.h
$(BUILD)/$(1)/obj/src/process/iterator.o: private EXTRA := $(call BPF_INCLUDE,$(or $(ARCH_$(1)),$(HOST_ARCH)))

$(BUILD)/$(1)/$(PROGRAM_$(1)): $(SOURCES:%.c=$(BUILD)/$(1)/obj/%.o) $(BUILD)/$(1)/sources
	$$(call say,LINK $(1),$$@)
	$$(Q)$$(CC_$(1)) $$(CFLAGS_$(1)) $$(LDFLAGS_$(1)) -o $$@ $$(filter %.o,$$^) $$(LDLIBS)

# The unit tests: all of src but main(), tests/unit/test_*.c with the helpers beside them.
$(UNIT_SOURCES:%.c=$(BUILD)/$(1)/obj/%.o): private EXTRA := -Wno-unused-parameter
$(UNIT_SOURCES:%.c=$(BUILD)/$(1)/obj/%.o): | setup-test

$(BUILD)/$(1)/libstacker.a: $(CORE:%.c=$(BUILD)/$(1)/obj/%.o) $(BUILD)/$(1)/sources
	@rm -f $$@
	$$(Q)$$(BINUTILS_$(1))ar rcsD $$@ $$(filter %.o,$$^)

$(BUILD)/$(1)/test_%: $(BUILD)/$(1)/obj/tests/unit/test_%.o \
		$(UNIT_HELPERS:%.c=$(BUILD)/$(1)/obj/%.o) $(BUILD)/$(1)/libstacker.a
	$$(call say,LINK $(1),$$@)
	$$(Q)$$(CC_$(1)) $$(CFLAGS_$(1)) $$(LDFLAGS_$(1)) -o $$@ $$(filter %.o %.a,$$^) \
		-lcmocka $$(LDLIBS)
endef
$(foreach f,$(FLAVOURS),$(eval $(call flavour,$(f))))

-include $(shell find $(FLAVOURS:%=$(BUILD)/%/obj) -name '*.d' 2>/dev/null)

# What is shipped has lost the debug information but not the symbol table, so that Stacker can name
# its own functions; build/FLAVOUR/stacker.debug has everything and the same build-id.
.PHONY: $(FLAVOURS)
$(RELEASED): %: $(DIST)/stacker-%
$(DIST)/stacker-%: $(BUILD)/%/stacker.debug
	$(call say,STRIP,$@)
	@mkdir -p $(@D)
	$(Q)$(BINUTILS_$*)strip --strip-debug -o $@ $<

san: $(BUILD)/san/stacker

## Checking and testing

.PHONY: unit unit-arm64 fixtures pytest test lint format demo

check:
	@scripts/check-static $(wildcard $(DIST)/*)

unit: $(UNIT_TESTS:tests/unit/%.c=$(BUILD)/san/%)
	@scripts/run-unit-tests 'unit tests (sanitizers)' '' $^

unit-arm64: $(UNIT_PURE:tests/unit/%.c=$(BUILD)/arm64/%)
	@scripts/run-unit-tests 'unit tests (arm64)' '$(if $(filter arm64,$(HOST)),,qemu-aarch64)' $^

fixtures: | setup-programs
	$(if $(wildcard tests/fixtures/Makefile),+$(Q)$(MAKE) -C tests/fixtures)

# The programs' tests as a whole; PYTEST_ARGS= for more (-k, -x ...).
pytest: $(HOST) san fixtures | setup-programs
	$(Q)STACKER=$(abspath $(DIST))/stacker-$(HOST) STACKER_SAN=$(abspath $(BUILD))/san/stacker \
		$(PYTHON) -m pytest -q tests $(PYTEST_ARGS)

# Captures are made without a stop where that can be had: the live tests that choose no method, by ptrace.
.PHONY: pytest-ptrace
pytest-ptrace: $(HOST) san fixtures | setup-programs
	$(Q)STACKER=$(abspath $(DIST))/stacker-$(HOST) STACKER_METHOD=ptrace $(PYTHON) -m pytest -q \
		tests/live/test_builds.py tests/live/test_life.py tests/live/test_situations.py $(PYTEST_ARGS)

# The README's commands in a minimal system (scripts/test-fresh); FRESH= for others.
.PHONY: test-fresh
test-fresh:
	@scripts/test-fresh $(FRESH)

# One after the other, so that the log can be read.
test:
	+@$(MAKE) --no-print-directory setup-programs
	+@$(MAKE) --no-print-directory all san
	+@$(MAKE) --no-print-directory check
	+@$(MAKE) --no-print-directory unit
	+@$(MAKE) --no-print-directory unit-arm64
	+@$(MAKE) --no-print-directory fuzz-short
	+@$(MAKE) --no-print-directory pytest
	+@$(MAKE) --no-print-directory pytest-ptrace
	$(if $(wildcard mk/arm64.mk),+@$(MAKE) --no-print-directory test-arm64)

include $(wildcard mk/arm64.mk mk/coverage.mk mk/bench.mk mk/fuzz.mk mk/oracle.mk mk/torture.mk)

lint: | setup-lint
	+@scripts/lint

format: | setup-lint
	$(Q)clang-format-14 -i $(sort $(shell find src tests demo -name '*.[ch]'))

demo: $(HOST)
	@scripts/demo $(DIST)/stacker-$(HOST) $(BUILD)/demo

## Installing

# `PREFIX=~/.local`: not every shell expands the ~ there.
prefix := $(DESTDIR)$(patsubst ~/%,$(HOME)/%,$(PREFIX))
INSTALLED := bin/stacker share/man/man1/stacker.1 \
	     share/bash-completion/completions/stacker \
	     share/zsh/site-functions/_stacker \
	     share/fish/vendor_completions.d/stacker.fish

install: $(HOST)
	install -D -m 755 $(DIST)/stacker-$(HOST) $(prefix)/bin/stacker
	install -D -m 644 docs/stacker.1 $(prefix)/share/man/man1/stacker.1
	install -D -m 644 completions/stacker.bash $(prefix)/share/bash-completion/completions/stacker
	install -D -m 644 completions/_stacker $(prefix)/share/zsh/site-functions/_stacker
	install -D -m 644 completions/stacker.fish $(prefix)/share/fish/vendor_completions.d/stacker.fish

uninstall:
	rm -f $(INSTALLED:%=$(prefix)/%)

## Cleaning

# The libraries (build/deps) are kept: they take minutes, and nothing here changes them.
clean:
	rm -rf $(DIST) $(filter-out $(BUILD)/deps,$(wildcard $(BUILD)/*))

distclean:
	rm -rf $(DIST) $(BUILD)

help:
	@printf '%s\n' \
	'make              the static binary for this machine ($(HOST)), in $(DIST)/' \
	'make amd64|arm64  the static binary for one architecture' \
	'make all          both' \
	'make setup        only what the other targets do first: distribution packages (apt-get, with' \
	'                  sudo when not root) and the static libraries, for both architectures' \
	'make demo         build, and trace a small sample program' \
	'make test         all tests' \
	'make test-fresh   make demo and make test on a clone of HEAD in a minimal system made on the spot (root)' \
	'make unit         the unit tests, with sanitizers     make unit-arm64  in an emulator' \
	'make pytest       the tests of the whole program      (PYTEST_ARGS="-k name")' \
	'make fuzz         libFuzzer on every parser, FUZZ_SECONDS=60 each (fuzz-short: some runs)' \
	'make bench        measures Stacker beside its peers (RUNS=5 BENCH=stop,trace,symbols...)' \
	'make coverage     which lines the tests run, by room' \
	'make torture      storms of signals, stops, threads, execs and kills, long (TORTURE=8)' \
	'make oracle-rows|oracle-lengths|oracle-symbols|oracle-live' \
	'                  comparisons with other readers and tracers, in their long form (mk/oracle.mk)' \
	'make bench-symbols  stacker addr2line beside its peers, on large debug files (RUNS=5)' \
	'make lint         warnings of two compilers, formatting, clang-tidy, layers, scripts' \
	'make format       clang-format on all C sources' \
	'make san          $(BUILD)/san/stacker: native, with the address and undefined sanitizers' \
	'                  (ASAN_OPTIONS=detect_leaks=0: leak checking traces, which its sandbox refuses)' \
	'make check        verify that every binary in $(DIST)/ is static' \
	'make install      PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)   make uninstall' \
	'make clean        all but the libraries               make distclean   everything' \
	'' \
	'V=1 shows the commands, CI=1 makes warnings errors, BUILD= and DIST= build elsewhere.'
