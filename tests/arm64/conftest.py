"""These tests judge what the virtual machine brought out: `make test-arm64` runs it and them."""
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

import pytest  # noqa: E402
import results  # noqa: E402


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents and not results.TESTS:
            item.add_marker(pytest.mark.skip(reason="make test-arm64 runs these"))
