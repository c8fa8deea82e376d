"""Copies directories to where another user can read them: ``python -I -S copy_files.py FROM TO [FROM TO ...]``.

A process of its own, because the guardian can end it and know that it has ended before it removes what was copied; a
thread of the harness would go on writing. Standard library only and without relative imports: it is run by its path.
An error of the operating system is one line on stderr, and its number (errno) is the exit code: a log on a full disk
stays empty.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys

LEFT_OUT = ("include", "__pycache__")
"""Directories that nobody needs to run what is copied."""


def copy(source: str, destination: str) -> None:
    """Copy a directory into one that may be there already; everybody may read the copy. Raises OSError."""
    for place, folders, names in os.walk(source, followlinks=True):
        folders[:] = [folder for folder in folders if folder not in LEFT_OUT]
        below = os.path.normpath(os.path.join(destination, os.path.relpath(place, source)))
        os.makedirs(below, exist_ok=True)
        os.chmod(below, 0o755)
        for name in names:
            original, copied = os.path.join(place, name), os.path.join(below, name)
            shutil.copyfile(original, copied)
            os.chmod(copied, os.stat(original).st_mode & 0o777 | 0o444)


def main() -> None:
    try:
        for source, destination in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
            copy(source, destination)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(2, f"{error.strerror}: {error.filename2 or error.filename}\n".encode())
        sys.exit(error.errno)


if __name__ == "__main__":
    main()
