"""Whether changes of files can be stopped here, which takes a kernel and its leave."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

from ..faults.probes import FILE_PROBE, PYTHON_PROBE


@cache
def no_files() -> str:
    """Why the kernel hands no system calls over, in one line; empty if it does. Containers have the same kernel."""
    if sys.platform != "linux":
        return f"it needs Linux, and this is {sys.platform}"
    program = [sys.executable, "-I", "-S", str(PYTHON_PROBE / FILE_PROBE), "--check"]
    found = subprocess.run(program, capture_output=True, text=True, check=False)
    return "" if found.returncode == 0 else f"the kernel refuses it ({(found.stdout or found.stderr).strip()[-200:]})"
