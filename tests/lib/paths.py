"""Where things are."""
import os
import pathlib
import platform

TOP = pathlib.Path(__file__).resolve().parents[2]
MACHINE = platform.machine()
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
ARCH_NAME = MACHINES.get(MACHINE, MACHINE)
OTHER_ARCH_NAME = "arm64" if ARCH_NAME == "amd64" else "amd64"
STACKER = pathlib.Path(os.environ.get("STACKER", TOP / "dist" / f"stacker-{ARCH_NAME}"))
STACKER_SAN = pathlib.Path(os.environ.get("STACKER_SAN", TOP / "build" / "san" / "stacker"))
STACKER_OTHER = TOP / "dist" / f"stacker-{OTHER_ARCH_NAME}"
FIXTURES = pathlib.Path(os.environ.get("FIXTURES", TOP / "build" / "fixtures"))
