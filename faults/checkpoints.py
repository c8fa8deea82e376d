"""Changes of a checkpoint while its query is down: what storage loses, tears or gives back from an older copy."""

from __future__ import annotations

from ..requirements import Requirement
from .declarations import ProcessKind

LOGS = ("offsets", "commits")
"""Spark's own logs of a query: OffsetSeqLog and CommitLog."""

PARTS = ("metadata", *LOGS, "state")
"""What a checkpoint consists of. A part's newest file is changed; of the state, those of its newest version."""

WHOLE = "checkpoint"

READ = (Requirement("checkpoint_read"),)
"""What the next driver does depends on what is left: that it has read it is what is required."""

STOPPED_IN: tuple[ProcessKind, ...] = ("driver", "python")
"""While one of these threads is stopped, the query writes to no log."""

FOR_THE_NEXT = "driver"
"""Whoever has read a checkpoint keeps to what it knows: only the driver that follows reads what was changed."""
