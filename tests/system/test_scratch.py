"""A directory for a piece of work goes with the process that asked for it, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from onceproof.harness.runtime.scratch import scratch_directory
from probed import wait_until

HOLDER = """
import signal
from onceproof.harness.runtime.scratch import scratch_directory
with scratch_directory("test") as path:
    (path / "file").write_text("held")
    print(path, flush=True)
    signal.pause()
"""


def test_it_goes_at_the_end_of_its_block() -> None:
    with scratch_directory("test") as path:
        (path / "file").write_text("held")
    assert not path.exists()


def test_it_goes_when_its_process_is_killed() -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    path = Path(holder.stdout.readline().strip())
    assert (path / "file").exists()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert wait_until(lambda: not path.exists(), 30)
