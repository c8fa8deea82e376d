"""Reading a Structured Streaming checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.harness.trial import checkpoint

OFFSETS = 'v1\n{{"batchWatermarkMs":0}}\n{{"topic":{{"0":{0},"1":{1}}}}}'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
    for batch, ends in enumerate([(10, 20), (15, 40), (16, 41)]):
        (tmp_path / "offsets" / str(batch)).write_text(OFFSETS.format(*ends))
        (tmp_path / "offsets" / f".{batch}.crc").write_text("x")
    for batch in range(2):
        (tmp_path / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return tmp_path


def test_batches_are_cut_by_the_offset_log(place: Path) -> None:
    assert checkpoint.batches(place) == {
        0: {0: (0, 10), 1: (0, 20)},
        1: {0: (10, 15), 1: (20, 40)},
        2: {0: (15, 16), 1: (40, 41)},
    }


def test_the_watermark_of_a_batch_is_that_of_its_offsets(place: Path) -> None:
    text = (place / "offsets" / "2").read_text()
    (place / "offsets" / "2").write_text(text.replace('"batchWatermarkMs":0', '"batchWatermarkMs":1767225600000'))
    (place / "offsets" / "1").write_text(text.replace('"batchWatermarkMs":0', '"batchTimestampMs":5'))
    assert checkpoint.watermarks(place) == {0: 0, 1: 0, 2: 1_767_225_600_000}


def test_planned_and_committed_batches_differ_by_what_was_not_finished(place: Path) -> None:
    assert (checkpoint.planned(place), checkpoint.committed(place)) == ([0, 1, 2], [0, 1])


def test_the_digest_tells_a_changed_offsets_file(place: Path) -> None:
    before = checkpoint.offsets_digest(place, 1)
    (place / "offsets" / "1").write_text(OFFSETS.format(15, 41))
    assert before != checkpoint.offsets_digest(place, 1)
    assert checkpoint.offsets_digest(place, 99) is None


def test_a_copy_keeps_the_logs_and_nothing_else(place: Path, tmp_path: Path) -> None:
    checkpoint.copy(place, tmp_path / "copy")
    assert sorted(path.name for path in (tmp_path / "copy" / "offsets").iterdir()) == ["0", "1", "2"]
    assert checkpoint.batches(tmp_path / "copy") == checkpoint.batches(place)


def test_an_absent_checkpoint_has_no_batches(tmp_path: Path) -> None:
    assert checkpoint.batches(tmp_path / "absent") == {}
    assert checkpoint.committed(tmp_path / "absent") == []
