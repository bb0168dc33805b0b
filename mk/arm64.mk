# Tests on an arm64 kernel, in a virtual machine (scripts/test-arm64). Included by the Makefile.

.PHONY: test-arm64 test-arm64-gdb arm64-test-programs

# Programs of this machine whose captures the arm64 binary symbolizes.
ARM64_HOST_FIXTURES := $(addprefix $(abspath $(BUILD))/fixtures/,threads-gcc-O2 inlines-cpp-gcc-O2 signals-gcc-O2)
# What prints call frames of arm64 files, for comparison with other readers.
ARM64_ORACLES := $(BUILD)/arm64-tests/oracles

$(ARM64_ORACLES)/rows: tests/oracle/rows.c tests/unit/row_text.c
$(ARM64_ORACLES)/code_rows: tests/arm64/code_rows.c
$(ARM64_ORACLES)/rows $(ARM64_ORACLES)/code_rows: $(BUILD)/$(HOST)/libstacker.a
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC_$(HOST)) $(CPPFLAGS) -Itests/unit $(CFLAGS) $(CFLAGS_$(HOST)) $(LDFLAGS_$(HOST)) -o $@ $(filter %.c,$^) $(filter %.a,$^) $(LDLIBS)

arm64-test-programs: $(ARM64_ORACLES)/rows $(ARM64_ORACLES)/code_rows $(BUILD)/arm64/test_live_sandbox | setup-programs
	+$(Q)$(MAKE) -C tests/fixtures $(ARM64_HOST_FIXTURES)

test-arm64: $(HOST) arm64 arm64-test-programs
	+@scripts/test-arm64

# VM_PAGES=16k: on a kernel with pages of 16 KiB and addresses of 52 bits.
# test-arm64-gdb: all of them against gdb too: takes minutes.
test-arm64-gdb: $(HOST) arm64 arm64-test-programs
	+@scripts/test-arm64 all-by-gdb
