# Tests on an arm64 kernel, in a virtual machine (scripts/test-arm64). Included by the Makefile.

.PHONY: test-arm64 test-arm64-gdb

test-arm64: $(HOST) arm64 | setup-test
	+@scripts/test-arm64

# All of them against gdb too: takes minutes.
test-arm64-gdb: $(HOST) arm64 | setup-test
	+@scripts/test-arm64 all-by-gdb
