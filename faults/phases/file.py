"""Changes of files below the sink's directory and the checkpoint: where a process of the driver's machine asks the
system for one, and where it has been made. The system stops it, in whichever language it is written."""

from __future__ import annotations

from ..declarations import Parameter, Phase
from ._selectors import ATTEMPT, BATCH, OF_A_QUERY, PARTITION, STAGE

OPERATIONS = ("create", "open", "rename", "link", "delete", "mkdir", "truncate", "sync")

OP = Parameter(
    "op",
    "text",
    "create (made, or made empty), open (one that exists, to be written), rename, link, delete, mkdir, truncate, sync",
    choices=OPERATIONS,
    sample="rename",
)
PATH = Parameter("path", "text", "target/... or checkpoint/..., of a rename or link the new one; * stands for any text")

PHASES = (
    Phase(
        name="file",
        edges=("before", "after"),
        selectors=(OP, PATH, BATCH, STAGE, PARTITION, ATTEMPT, *OF_A_QUERY),
        where="files",
        sinks="files",
        meaning="a file below target.directory or the checkpoint is changed: before that is done, and before its "
        "process learns that it was",
        two_phase="any step of the sink's own protocol",
        source="system calls of the driver's processes: seccomp_unotify(2)",
        step=120,
    ),
)
