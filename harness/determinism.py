"""Whether a job gives the same rows when a batch is run again: what exactly-once by overwriting rests on.

The rows are those that jobs/recorder.py has kept: a file for each attempt at a batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
from pydantic import BaseModel, Field

from ..documents import CLOSED


class Repeated(BaseModel):
    """A batch that was run several times."""

    model_config = CLOSED

    batch: int = Field(ge=0)
    digests: list[str] = Field(description="SHA-256 of the rows of each attempt, whatever their order")
    columns: list[str] = Field(description="columns whose values are not the same in all attempts")

    @property
    def same(self) -> bool:
        return len(set(self.digests)) == 1


class Determinism(BaseModel):
    """The batches that a job ran several times, with the digests of their rows."""

    model_config = CLOSED

    batches: list[Repeated]

    @property
    def deterministic(self) -> bool:
        return all(batch.same for batch in self.batches)

    @property
    def sentence(self) -> str:
        """For people: what is wrong with the job, or that nothing is."""
        differ = [batch for batch in self.batches if not batch.same]
        if not differ:
            return f"the job is deterministic: run again, {_batches(self.batches)} gave the same rows"
        columns = list(dict.fromkeys(column for batch in differ for column in batch.columns))
        where = f" in {', '.join(columns)}" if columns else ""
        return (
            f"the job itself is not deterministic: run again, {_batches(differ)} gave other rows{where}; a sink that "
            "overwrites rows by key cannot make up for that"
        )


def compared(directory: Path) -> Determinism | None:
    """What the files ``BATCH-NUMBER.parquet`` of a directory say; None if no batch has several.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     for number, value in enumerate((0.25, 0.5)):
    ...         table = pa.table({"id": [1], "score": [value]})
    ...         parquet.write_table(table, Path(name) / f"3-{number}.parquet")
    ...     compared(Path(name)).batches[0].columns
    ['score']
    """
    attempts: dict[int, list[pa.Table]] = {}
    for file in sorted(directory.glob("*.parquet"), key=lambda file: [int(part) for part in file.stem.split("-")]):
        attempts.setdefault(int(file.stem.split("-")[0]), []).append(parquet.read_table(file))
    repeated = [_repeated(batch, tables) for batch, tables in attempts.items() if len(tables) > 1]
    return Determinism(batches=repeated) if repeated else None


def _repeated(batch: int, tables: Sequence[pa.Table]) -> Repeated:
    columns = list(dict.fromkeys(name for table in tables for name in table.column_names))
    values = [{name: _column(table, name) for name in columns} for table in tables]
    return Repeated(
        batch=batch,
        digests=[_digest(one, columns) for one in values],
        columns=[name for name in columns if len({tuple(sorted(one[name])) for one in values}) > 1],
    )


def _column(table: pa.Table, name: str) -> list[str]:
    if name not in table.column_names:
        return []
    return [repr(value) for value in table.column(name).to_pylist()]


def _digest(values: Mapping[str, Sequence[str]], columns: Sequence[str]) -> str:
    rows = sorted(zip(*(values[name] for name in columns), strict=False))
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _batches(batches: Iterable[Repeated]) -> str:
    numbers = [str(batch.batch) for batch in batches]
    return f"batch{'es' if len(numbers) > 1 else ''} {', '.join(numbers)}"
