# Measurements beside other tools. Included by the Makefile.

.PHONY: bench-symbols
RUNS ?= 5
bench-symbols: $(HOST) | setup-test setup-symbolizer
	$(Q)$(PYTHON) bench/symbolize.py $(DIST)/stacker-$(HOST) --runs $(RUNS) --place $(BUILD)/bench \
		--json $(BUILD)/bench/symbolize.json
