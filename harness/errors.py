"""The errors that a user may see, and the exit codes they end in."""

from __future__ import annotations

from pathlib import Path

HELD, BROKE, USAGE, INCONCLUSIVE, UNAVAILABLE = 0, 1, 2, 3, 4
"""Exit codes: the claim held; it broke; wrong usage or bad input; inconclusive; the environment is not available."""

INTERNAL, INTERRUPTED = 70, 130
"""Exit codes: a bug of onceproof (EX_SOFTWARE of sysexits.h); interrupted by a signal."""


class Unavailable(Exception):
    """The environment is not available or broke by itself: exit code 4, never a verdict.

    ``problem`` is what is wrong, ``fix`` what to do about it (empty where that is not known); the message has both.

    >>> str(Unavailable("no Java was found", "install one"))
    'no Java was found: install one'
    """

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(f"{problem}: {fix}" if fix else problem)
        self.problem = problem
        self.fix = fix


class UsageError(Exception):
    """Wrong usage or bad input, in one line that names the thing, the value and the fix: exit code 2."""


class ObservationError(Exception):
    """A target or the source could not be observed: one line naming it and what was seen last."""


class SinkError(UsageError):
    """The sink's own error, before any fault: its file, its functions, or what they raise."""


class SinkHangs(SinkError):
    """A function of the sink gave no answer in time; its process has been ended."""


def no_file(path: Path) -> str:
    """What is wrong with the path of a file that is none."""
    if path.is_dir():
        return "is a directory"
    if path.exists():
        return "is no regular file"
    return "is a link that leads to no file" if path.is_symlink() else "does not exist"


def one_line(error: BaseException) -> str:
    """What it says, else what it is."""
    return " ".join(str(error).split()) or type(error).__name__
