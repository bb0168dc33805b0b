# Which lines the unit tests and the whole program's tests run. Included by the Makefile.

.PHONY: coverage setup-coverage
setup-coverage:
	@scripts/install-packages coverage

# One after the other: the counts of each program are added to files beside its objects.
COVERAGE_TESTS ?= tests/cli tests/live
coverage: cov $(UNIT_TESTS:tests/unit/%.c=$(BUILD)/cov/%) fixtures $(HOST) san | setup-coverage
	$(Q)find $(BUILD)/cov/obj -name '*.gcda' -delete
	-$(Q)scripts/run-unit-tests 'unit tests (coverage)' '' $(filter-out %/test_live_sandbox,$(filter $(BUILD)/cov/test_%,$^))
	-$(Q)STACKER=$(abspath $(BUILD))/cov/stacker STACKER_SAN=$(abspath $(BUILD))/cov/stacker \
		$(PYTHON) -m pytest -q $(COVERAGE_TESTS) $(PYTEST_ARGS)
	$(Q)gcovr -r . --object-directory $(BUILD)/cov/obj -f src/ --txt $(BUILD)/cov/lines.txt --json-summary $(BUILD)/cov/lines.json
	$(Q)scripts/coverage-by-room $(BUILD)/cov/lines.json

cov: $(BUILD)/cov/stacker
