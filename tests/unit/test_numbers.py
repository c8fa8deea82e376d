"""Numbers that a sink's text names, those in milliseconds as seconds."""

from __future__ import annotations

from pathlib import Path

from onceproof.faults.numbers import numbers_in

SINK = """
MAX_ATTEMPTS = 5
WAITS = (0.1, 0.1, 0.2)
NAMES = ("a", "b")
PATIENCE_MS = 30_000
CONFIG = {"delivery.timeout.ms": 45_000, "batch.size": 16_384, "enable.idempotence": True}

def write_batch(df, batch_id, target):
    producer = make(linger_ms=500, timeout=12.5)
    for attempt in range(int(os.environ.get("SINK_TRIES", "8"))):
        if batch_id % 20 == 0:
            pass
"""


def test_each_number_is_one_and_so_is_a_text_of_one_and_the_length_of_a_list_of_them(tmp_path: Path) -> None:
    path = tmp_path / "sink.py"
    path.write_text(SINK)
    assert numbers_in(path) == {5, 0.1, 0.2, 3, 30, 45, 16_384, 0.5, 12.5, 8, 20, 0}
