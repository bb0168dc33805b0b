"""These tests judge what the virtual machine brought out: `make test-arm64` runs it and them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
