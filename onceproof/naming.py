"""What messages call a value: what it is where it was given, so that whoever reads them finds it there."""

from __future__ import annotations

from collections.abc import Callable

Named = Callable[[str], str]
"""What messages call the value of this name, such as ``run_directory``."""


def as_option(name: str) -> str:
    """As the command line has it.

    >>> as_option("run_directory")
    '--run-directory'
    """
    return f"--{name.replace('_', '-')}"
