"""Numbers that a sink's text names, those in milliseconds as seconds."""

from __future__ import annotations

from pathlib import Path

from onceproof.faults.numbers import numbers_in

SINK = """
MAX_ATTEMPTS = 5
PATIENCE_MS = 30_000
CONFIG = {"delivery.timeout.ms": 45_000, "batch.size": 16_384, "enable.idempotence": True}

def write_batch(df, batch_id, target):
    producer = make(linger_ms=500, timeout=12.5)
    for attempt in range(7):
        if batch_id % 20 == 0:
            pass
"""


def test_each_number_is_one(tmp_path: Path) -> None:
    path = tmp_path / "sink.py"
    path.write_text(SINK)
    assert numbers_in(path) == {5, 30, 45, 16_384, 0.5, 12.5, 7, 20, 0}
