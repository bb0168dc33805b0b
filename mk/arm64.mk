# Tests on an arm64 kernel, in a virtual machine (scripts/test-arm64). Included by the Makefile.

.PHONY: test-arm64 test-arm64-gdb arm64-host-fixtures

# Programs of this machine whose captures the arm64 binary symbolizes.
ARM64_HOST_FIXTURES := $(addprefix $(abspath $(BUILD))/fixtures/,threads-gcc-O2 inlines-cpp-gcc-O2 signals-gcc-O2)

arm64-host-fixtures: | setup-test
	+$(Q)$(MAKE) -C tests/fixtures $(ARM64_HOST_FIXTURES)

test-arm64: $(HOST) arm64 arm64-host-fixtures | setup-test
	+@scripts/test-arm64

# All of them against gdb too: takes minutes.
test-arm64-gdb: $(HOST) arm64 arm64-host-fixtures | setup-test
	+@scripts/test-arm64 all-by-gdb
