"""The certificate names the code that neither a batch nor a start of the job ran."""

from __future__ import annotations

from pathlib import Path

from onceproof.faults.modules import from_elsewhere
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
    'Of a table.'

    async def write(self):
        pass

    def flush(self, rows, table):
        'Many rows in parts.'
        global LAST
        if len(rows) > 5000:
            for part in rows:
                table.append(part)
        elif rows:
            table.extend(
                rows
            )
        else:
            "nothing to do"
        try:
            table.commit()
        except KeyError:
            table.rollback()
            raise
        except (ValueError, OSError):
            pass
        match rows:
            case [row]:
                table.note(row)

def read(target):
    return []
"""


def lines(*numbers: int) -> list[Line]:
    return [Line("sink.py", number) for number in numbers]


def test_functions_and_modules_without_an_executed_line_are_named(tmp_path: Path) -> None:
    sink = tmp_path / "sink.py"
    sink.write_text(SINK)
    (tmp_path / "helper.py").write_text("def clean():\n    pass\n")
    (tmp_path / "stranger.py").write_text("")
    assert unswept(sink, lines(6, 7, 9)) == [
        "sink.py: write_batch.retry",
        "sink.py: on_error",
        "sink.py: Writer.write",
        "sink.py: Writer.flush",
        "helper.py",
    ]


def test_branches_without_an_executed_line_are_named(tmp_path: Path) -> None:
    """An if with its body, of try each handler, of match each case; what has no code is not missed."""
    sink = tmp_path / "sink.py"
    sink.write_text(SINK)
    others = lines(5, 6, 7, 12, 18)
    assert unswept(sink, [*others, *lines(23, 26, 32, 33, 39, 40)]) == [
        "sink.py: write_batch, line 9",
        "sink.py: Writer.flush, lines 24-25",
        "sink.py: Writer.flush, lines 27-29",
        "sink.py: Writer.flush, lines 35-36",
        "sink.py: Writer.flush, line 38",
        "sink.py: Writer.flush, line 41",
    ]
    assert unswept(sink, [*others, *lines(9, 23, 24, 25, 28, 33, 36, 38, 39, 41)]) == []


def test_packages_from_elsewhere_are_named_but_for_those_that_every_job_has(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "writer.py").write_text("from acme.tables import EVENTS\nfrom . import names\n")
    sink = tmp_path / "mine.py"
    sink.write_text(
        "import json\nimport psycopg\nimport requests.adapters\nimport team.writer\nfrom pyspark.sql import DataFrame\n"
        "if TYPE_CHECKING:\n    import boto3\n"
    )
    assert from_elsewhere(sink) == ["acme", "requests"]
