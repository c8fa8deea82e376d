"""The actions by which a certification strikes at the phases of a kind of process."""

from __future__ import annotations

from ...plans import Action

DRIVER = (Action("kill", "driver"),)
"""The driver's machine dies: all of the batch that is not committed is replayed by another one."""

TASK = (Action("kill", "driver"), Action("fail"), Action("kill", "executor"))
"""Besides, a task alone fails or dies with its executor: Spark attempts it again within the same hand-over."""

WORKER = (*TASK, Action("kill", "worker"))
"""Besides, the Python worker that serves the task dies."""

BROKER = (Action("kill", "broker"),)
"""The broker dies and comes back; another one may take its part over meanwhile."""
