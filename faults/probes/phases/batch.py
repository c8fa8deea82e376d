"""batch.offsets and batch.commit: the engine's two logs in the checkpoint, both written by HDFSMetadataLog.add.

``add`` also writes sources/0 and _spark_metadata, so the log's class is compared. A batch that is replayed after a
restart has its offsets already: batch.offsets is reported once for each batch. ``add`` returns false for a batch that
another run has written already: then nothing was written, and there is no :after. The logs of asynchronous progress
tracking have other classes and are not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..rule import Rule, Spot


def _rules(phase: str, log: str) -> Iterator[Rule]:
    for edge, at, written in (("before", "ENTRY", ""), ("after", "EXIT", " && $!")):
        yield Rule(
            phase=phase,
            edge=edge,  # type: ignore[arg-type]
            side="driver",
            spot=Spot("{checkpointing}.HDFSMetadataLog", "add(long,java.lang.Object)", at),  # type: ignore[arg-type]
            when=f'$0.getClass().getSimpleName().equals("{log}"){written}',
            fields={"batch": "$1"},
        )


RULES = (*_rules("batch.offsets", "OffsetSeqLog"), *_rules("batch.commit", "CommitLog"))
