"""An exception in the stopped thread, at the step or line at which it stopped."""

from __future__ import annotations

from ..declarations import ActionSpec, Parameter

ACTION = ActionSpec(
    name="fail",
    meaning="raises an exception in the stopped thread: in Python a RuntimeError or the class given, in the JVM a "
    "RuntimeException",
    example="line[my_sink.py:42][batch=1]#3 -> fail(error=psycopg.OperationalError)",
    arguments=(
        Parameter("error", "class", "dotted name of a Python exception class", default="RuntimeError"),
        Parameter("message", "text", "what the exception says", default="injected by onceproof"),
    ),
    places=("driver", "executor", "python"),
    moment=False,
)
