"""What the command ``onceproof`` calls. To import the command line takes seconds, in which Ctrl-C ends it as later."""

from __future__ import annotations

import os
import sys

from .errors import INTERRUPTED


def main() -> None:
    """Run the command line of this process. Ends it with the command's exit code."""
    try:
        from .cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        print("onceproof: interrupted", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)  # see cli.main
