# Fuzzing (tests/fuzz). Included by the Makefile.

FUZZERS := $(sort $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c)))
SEEDS   := $(BUILD)/fuzz/seeds
# Seconds for each entry; PROCESSES of them at a time.
FUZZ_SECONDS ?= 60
FUZZ_JOBS    ?= $(shell nproc)
FUZZ_ONLY    ?= $(FUZZERS)
# Runs of each entry in the short form, and what decides them.
FUZZ_RUNS ?= 3000
FUZZ_SEED ?= 1

.PHONY: fuzz fuzz-short
$(SEEDS)/.made: tests/fuzz/seeds.py $(wildcard tests/golden/*.capture.json) | setup-test
	$(call say,SEEDS,$(SEEDS))
	$(Q)rm -rf $(SEEDS) && $(PYTHON) tests/fuzz/seeds.py $(SEEDS) && touch $@

define fuzz_objects
$(patsubst %.c,$(BUILD)/$(1)/obj/%.o,$(wildcard tests/fuzz/*.c)): private EXTRA := -Itests/unit
endef
$(eval $(call fuzz_objects,san))
$(eval $(call fuzz_objects,fuzz))

# The entries need these helpers of the unit tests, which do not need its library.
FUZZ_HELPERS := tests/unit/scene.c tests/unit/cfi_maker.c tests/unit/elf_image.c

$(BUILD)/fuzz/fuzz_%: $(BUILD)/fuzz/obj/tests/fuzz/fuzz_%.o $(FUZZ_HELPERS:%.c=$(BUILD)/fuzz/obj/%.o) $(BUILD)/fuzz/libstacker.a
	$(call say,LINK fuzz,$@)
	$(Q)$(CC_fuzz) $(CFLAGS_fuzz) -fsanitize=fuzzer -o $@ $(filter %.o %.a,$^) $(LDLIBS)

$(BUILD)/san/fuzz_%: $(BUILD)/san/obj/tests/fuzz/fuzz_%.o $(BUILD)/san/obj/tests/fuzz/mutate.o $(FUZZ_HELPERS:%.c=$(BUILD)/san/obj/%.o) $(BUILD)/san/libstacker.a
	$(call say,LINK san,$@)
	$(Q)$(CC_san) $(CFLAGS_san) -o $@ $(filter %.o %.a,$^) $(LDLIBS)

# libFuzzer, from the seeds and what earlier runs found (build/fuzz/corpus).
fuzz: $(FUZZ_ONLY:%=$(BUILD)/fuzz/fuzz_%) $(SEEDS)/.made
	$(Q)scripts/fuzz $(BUILD)/fuzz $(FUZZ_SECONDS) $(FUZZ_JOBS) $(FUZZ_ONLY)

# A fixed number of mutations, for `make test`.
fuzz-short: $(FUZZ_ONLY:%=$(BUILD)/san/fuzz_%) $(SEEDS)/.made
	$(Q)scripts/fuzz-short $(BUILD)/san $(SEEDS) $(FUZZ_RUNS) $(FUZZ_SEED) $(FUZZ_ONLY)
