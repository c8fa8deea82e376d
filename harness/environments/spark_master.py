"""Masters of Spark, in every environment: which may be asked for, and what a standalone one says of its cluster."""

from __future__ import annotations

import http.client
import json
import re
from typing import Any

from ..runtime.ports import LOOPBACK

MASTER = re.compile(r"local\[(?P<cores>[1-9][0-9]{0,2})(?:\s*,\s*[1-9][0-9]{0,2})?\]|standalone")
"""``local[n]``, ``local[n,m]`` (m: how often a task may fail) or ``standalone``; n and m have up to three digits: each
core is a thread, and Spark takes a number that is too large for none."""


MASTER_CLASS = "org.apache.spark.deploy.master.Master"
WORKER_CLASS = "org.apache.spark.deploy.worker.Worker"
"""The main classes of a standalone cluster's own processes."""


def local_cores(master: str) -> int | None:
    """How many tasks run side by side with a local master; None for another one."""
    found = MASTER.fullmatch(master)
    return int(found["cores"]) if found and found["cores"] else None


def alive_workers(port: int) -> dict[str, str] | None:
    """The host of each worker that the master takes for alive, by the worker's name, which is new for each start.

    ``port`` is the master's web UI's, on loopback. None while the master does not answer.
    """
    state = _state(port)
    if state is None:
        return None
    return {str(one["id"]): str(one["host"]) for one in state.get("workers", ()) if one.get("state") == "ALIVE"}


def _state(port: int) -> dict[str, Any] | None:
    """The master's own account (http://.../json/)."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=2)
    try:
        connection.request("GET", "/json/")
        state: dict[str, Any] = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    else:
        return state
    finally:
        connection.close()
