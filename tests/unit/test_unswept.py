"""The certificate names the code that neither a batch nor a start of the job ran."""

from __future__ import annotations

from pathlib import Path

from onceproof.harness.certification.trace import Line
from onceproof.harness.certification.unswept import unswept

SINK = """\
import helper

def write_batch(df, batch_id, target):
    def retry():
        return 1
    try:
        df.collect()
    except ValueError:
        on_error()

def on_error():
    raise SystemExit

class Writer:
    async def write(self):
        pass

def read(target):
    return []
"""


def test_functions_and_modules_without_an_executed_line_are_named(tmp_path: Path) -> None:
    sink = tmp_path / "sink.py"
    sink.write_text(SINK)
    (tmp_path / "helper.py").write_text("def clean():\n    pass\n")
    (tmp_path / "stranger.py").write_text("")
    executed = [Line("sink.py", number) for number in (4, 6, 7)]
    assert unswept(sink, executed) == [
        "helper.py",
        "sink.py: Writer.write",
        "sink.py: on_error",
        "sink.py: write_batch.retry",
    ]
    assert (
        unswept(sink, [*executed, Line("sink.py", 5), Line("sink.py", 12), Line("sink.py", 16), Line("helper.py", 2)])
        == []
    )
