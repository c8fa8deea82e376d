"""The stopped thread waits; its process goes on."""

from __future__ import annotations

from ..declarations import ActionSpec, Parameter

ACTION = ActionSpec(
    name="delay",
    meaning="keeps the stopped thread for a time; the rest of its process goes on",
    example="sink.write:before[batch=1] -> delay(2s)",
    arguments=(Parameter("for", "duration", "how long the thread is kept", required=True),),
    positional="for",
    moment=False,
)
