# Measurements beside other tools. Included by the Makefile.

.PHONY: bench bench-symbols setup-bench gimli
RUNS ?= 5
# Some of: stop, methods, load, trace, start, symbols, unwind, real, capture, instructions.
BENCH ?=
BENCH_RESULTS ?= $(BUILD)/bench/results.md

setup-bench:
	@scripts/install-packages symbolizer bench
	@$(MAKE) --no-print-directory gimli

# A peer that not every distribution has: then it is left out, and the table shows that.
gimli:
	-@scripts/install-packages gimli
	-@scripts/build-gimli $(BUILD)/bench

BENCHES := $(addprefix $(BUILD)/bench/,unwind_bench capture_bench lookup_bench)
$(BENCHES): $(BUILD)/bench/%: bench/%.c $(BUILD)/$(HOST)/libstacker.a
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC_$(HOST)) $(CPPFLAGS) $(CFLAGS) $(CFLAGS_$(HOST)) $(LDFLAGS_$(HOST)) -o $@ $(filter %.c %.a,$^) $(LDLIBS)

# Everything: takes about half an hour, and wants a quiet machine.
bench: $(HOST) $(BENCHES) | setup-test setup-bench
	$(Q)$(PYTHON) bench/all.py $(BENCH_RESULTS) $(DIST)/stacker-$(HOST) $(BUILD) --runs $(RUNS) $(if $(BENCH),--only $(BENCH))

bench-symbols: $(HOST) | setup-programs gimli
	$(Q)$(PYTHON) bench/symbolize.py $(DIST)/stacker-$(HOST) --runs $(RUNS) --place $(BUILD)/bench \
		--json $(BUILD)/bench/symbolize.json
