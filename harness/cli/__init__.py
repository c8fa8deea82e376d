"""The command line of onceproof: one file for each command."""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

from cyclopts import App, CycloptsError
from cyclopts.exceptions import UnusedCliTokensError

from ...faults.errors import listed
from ..console.printing import OutputError, Terminal, say
from ..environments.base import Unavailable
from ..errors import INTERNAL, INTERRUPTED, UNAVAILABLE, USAGE, UsageError
from ..run_directories import is_text
from . import bench, certify, check, demo, environment, lists, plan, run
from .values import check_values

EXHAUSTED = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENOMEM)

ESCAPED = "onceproof.escaped"
"""What Python calls our way with characters that an encoding lacks."""

HELP = """Certifies end-to-end exactly-once for Spark Structured Streaming on Kafka: kills the driver, executors, Python
workers and brokers at chosen steps of the commit protocol, and compares what a reader sees with the ground truth.

Exit codes: 0 the claimed guarantee held; 1 it broke; 2 wrong usage or bad input; 3 inconclusive; 4 the environment is
not available; 70 a bug of onceproof; 130 interrupted."""

app = App(
    name="onceproof",
    help=HELP,
    version_flags=["--version"],
    config=check_values,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
for module in (environment, lists, plan, run, certify, check, demo, bench):
    module.register(app)


def main(arguments: Sequence[str] | None = None) -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ESCAPED)
    code = execute(sys.argv[1:] if arguments is None else arguments)
    if code == INTERRUPTED:
        # A thread that was cut short may still be in a library's native code, which complains of an interpreter that is
        # taken down around it. What was printed is flushed already.
        os._exit(code)
    sys.exit(code)


def execute(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code. What is wrong is said in one line on stderr; a bug of onceproof has
    its traceback before that."""
    try:
        _check_place()
        return int(app(arguments, console=Terminal(), exit_on_error=False, print_error=False) or 0)
    except UnusedCliTokensError as error:
        return _complain(f"{_too_many(error.unused_tokens or [])} See onceproof {_command(arguments)}--help", USAGE)
    except CycloptsError as error:
        return _complain(f"{str(error).strip()} See onceproof {_command(arguments)}--help", USAGE)
    except UsageError as error:
        return _complain(str(error), USAGE)
    except Unavailable as error:
        return _complain(str(error), UNAVAILABLE)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except OutputError as error:
        return _complain(f"{error}: send it elsewhere, or free some space, and run again", UNAVAILABLE)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            return _complain(f"the name {error.filename} is too long for a file: give a shorter one", USAGE)
        if isinstance(error, PermissionError) and error.filename is not None:
            # Path.is_file and its like raise it, too, for what lies below a directory that may not be entered.
            what = f"{os.fsdecode(error.filename)} cannot be read ({error.strerror})"
            return _complain(f"{what}: give another path, or change its permissions or those of what it is in", USAGE)
        if isinstance(error, OSError) and error.errno in EXHAUSTED:
            what = f"{error.strerror}: {error.filename or 'a file of the run'}"
            return _complain(f"{what}: free some and run again", UNAVAILABLE)
        with suppress(OutputError):
            say(traceback.format_exc().rstrip(), sys.stderr)
        return _complain("this is a bug of onceproof and no verdict: please report the lines above", INTERNAL)


def _check_place() -> None:
    """Raises UsageError for a current directory that was removed, or whose path no document can hold."""
    try:
        place = os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("the current directory is gone: change to another") from error
    if not is_text(place):
        raise UsageError(f"the current directory {place!r} is no UTF-8 text: change to another")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """What the terminal's encoding does not have, as JSON escapes it: documents stay documents."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(ESCAPED, _escaped)


def _command(arguments: Sequence[str]) -> str:
    """The command that was called, as far as there is one of that name."""
    names, _, _ = app.parse_commands(arguments)
    return "".join(f"{name} " for name in names)


def _too_many(words: Sequence[str]) -> str:
    """What is wrong with words that no argument takes."""
    what = "is one argument too many: leave it out." if len(words) == 1 else "are too many: leave them out."
    return f"{listed(map(repr, words), 'and')} {what}"


def _complain(message: str, code: int) -> int:
    """The code stands though nobody can be told why."""
    with suppress(OutputError):
        say(f"onceproof: {message}", sys.stderr)
    return code
