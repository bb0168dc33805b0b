# The long form of tests/live/test_torture.py. Included by the Makefile.

# How many times longer than in `make test`: 8 is 160,000 numbered signals over 240 captures, 160
# rounds of stops, 200 of thread churn, 3,200 execs, and 600 times SIGKILL to stacker.
TORTURE ?= 8

.PHONY: torture
torture: $(HOST) fixtures | setup-test
	$(Q)STACKER=$(abspath $(DIST))/stacker-$(HOST) STACKER_TORTURE=$(TORTURE) \
		$(PYTHON) -m pytest -q -rA tests/live/test_torture.py $(PYTEST_ARGS)
