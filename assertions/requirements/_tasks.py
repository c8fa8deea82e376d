"""How a task is named in evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def named(task: Mapping[str, Any]) -> str:
    """``task 0 of batch 1``"""
    return f"task {task.get('partition')} of batch {task.get('batch')}"
