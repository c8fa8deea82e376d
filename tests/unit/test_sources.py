"""Sources are parsed by many threads of a sweep."""

from __future__ import annotations

import ast
import gc
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onceproof.sources import parsed

SOURCE = Path(ast.__file__).read_bytes()


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can, also while a tree is made: whatever a collection of garbage calls lets
    another one go on."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()

    def let_others_go_on(*_: object) -> None:
        time.sleep(0)

    sys.setswitchinterval(1e-6)
    gc.set_threshold(500)
    gc.callbacks.append(let_others_go_on)
    yield
    gc.callbacks.remove(let_others_go_on)
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


def test_trees_that_threads_ask_for_at_the_same_time_are_all_made(restless: None) -> None:
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(lambda _: len(parsed(SOURCE).body), range(64)))
    assert len(set(trees)) == 1
