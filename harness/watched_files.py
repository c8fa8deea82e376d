"""Whether changes of files can be stopped here, which takes a kernel and its leave."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

from ..faults.probes import FILE_PROBE, PYTHON_PROBE


def no_files(env: str, master: str) -> str:
    """Why not, in one line; empty if they can be."""
    if env != "local":
        return "it needs --env local"
    if not master.startswith("local"):
        return "it needs --master local[n]: what executors do to files is not seen"
    return kernel_refuses()


@cache
def kernel_refuses() -> str:
    """Why the kernel hands no system calls over, in one line; empty if it does."""
    if sys.platform != "linux":
        return f"it needs Linux, and this is {sys.platform}"
    program = [sys.executable, "-I", "-S", str(PYTHON_PROBE / FILE_PROBE), "--check"]
    found = subprocess.run(program, capture_output=True, text=True, check=False)
    return "" if found.returncode == 0 else f"the kernel refuses it ({(found.stdout or found.stderr).strip()[-200:]})"
