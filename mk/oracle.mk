# Comparisons with other readers and tracers, in their long form. Included by the Makefile.

.PHONY: oracle-rows oracle-lengths oracle-symbols oracle-live

ORACLES := $(BUILD)/oracle
# The files whose call frames, instructions and functions are compared.
ORACLE_FILES ?= $(shell ldconfig -p | sed -n 's!.*(libc6,.*) => \(.*/lib\(c\|m\|stdc++\)\.so\.[0-9]*\)$$!\1!p') \
		$(shell readlink -f $(PYTHON))

define oracle_program
$(ORACLES)/$(1): $(2) $(BUILD)/$(HOST)/libstacker.a
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC_$(HOST)) $$(CPPFLAGS) -Itests/unit $$(CFLAGS) $$(CFLAGS_$(HOST)) $$(LDFLAGS_$(HOST)) -o $$@ $$(filter %.c %.a,$$^) $$(LDLIBS)
endef
$(eval $(call oracle_program,rows,tests/oracle/rows.c tests/unit/row_text.c))
$(eval $(call oracle_program,lengths,tests/oracle/lengths.c))

oracle-rows: $(ORACLES)/rows | setup-test
	$(Q)$(PYTHON) tests/oracle/compare_rows.py $< $(ORACLE_FILES)

oracle-lengths: $(ORACLES)/lengths | setup-test
	$(Q)$(PYTHON) tests/oracle/compare_lengths.py $< $(ORACLE_FILES)

# The newest llvm-symbolizer that is there: older ones than 16 differ in what they themselves have mended.
SYMBOLIZER   ?= $(lastword $(shell ls -v /usr/bin/llvm-symbolizer*))
# The debug file of the C library, by its build-id.
SYMBOL_FILES ?= $(shell readelf -n $(firstword $(filter %/libc.so.6,$(ORACLE_FILES))) | \
		sed -n 's,.*Build ID: \(..\)\(.*\),/usr/lib/debug/.build-id/\1/\2.debug,p')
ADDRESSES    ?= 2000
oracle-symbols: $(HOST) | setup-programs
	$(Q)$(PYTHON) tests/oracle/compare_symbolizer.py --stacker $(DIST)/stacker-$(HOST) --oracle $(SYMBOLIZER) \
		--count $(ADDRESSES) $(SYMBOL_FILES)

# SAMPLES of each program, every GDB_EVERY-th asked of gdb too; ONLY=python3,redis.
SAMPLES   ?= 150
GDB_EVERY ?= 12
oracle-live: $(HOST) | setup-programs
	$(Q)$(PYTHON) tests/oracle/compare_live.py $(DIST)/stacker-$(HOST) --samples $(SAMPLES) --gdb-every $(GDB_EVERY) $(if $(ONLY),--only $(ONLY))
