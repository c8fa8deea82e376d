"""What a point costs in a run that it shares, and in one of its own: ``make bench-packing``.

Each sink is certified twice in one warm environment, packed and with ``--pack 1``, one trial at a time. Compared are
the points that shared a run, by seconds a point, and what all points came to, which has to be the same.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from onceproof.harness.certification.certificate import Certificate
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.sinks import reference_sinks
from rich.console import Console
from rich.table import Table
from sweeps import check_names, ended

POINTS = "sink.write,batch.commit:before"


@dataclass(frozen=True)
class Compared:
    """One sink both ways."""

    sink: str
    packed: Certificate
    alone: Certificate

    @property
    def seconds(self) -> tuple[float, float]:
        """A point's seconds packed and alone: the mean over those that shared a run with others."""
        shared = {point.plan: point.seconds for point in self.packed.points if point.packed > 1}
        apart = [point.seconds for point in self.alone.points if point.plan in shared]
        return sum(shared.values()) / len(shared), sum(apart) / len(apart)

    @property
    def equal(self) -> bool:
        return _outcomes(self.packed) == _outcomes(self.alone)

    def cells(self) -> list[str]:
        shared = sum(point.packed > 1 for point in self.packed.points)
        packed, alone = self.seconds
        same = "the same" if self.equal else "NOT the same"
        count = f"{shared} of {len(self.packed.points)}"
        return [self.sink, count, f"{packed:.1f}", f"{alone:.1f}", f"{alone / packed:.2f}", same]


def _outcomes(certificate: Certificate) -> dict[str, tuple[str, str | None]]:
    return {point.plan: (point.verdict, point.guarantee) for point in certificate.points if point.batch is not None}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", default=POINTS)
    parser.add_argument("sinks", nargs="*", help="names; all by default")
    arguments = parser.parse_args()
    check_names(arguments.sinks)
    found = []
    with tempfile.TemporaryDirectory() as place, Session(EnvironmentOptions(runs=Path(place) / "runs")) as session:
        for path in reference_sinks():
            if arguments.sinks and path.stem not in arguments.sinks:
                continue
            both = [
                certify(
                    session,
                    Request(str(path)),
                    Path(place) / f"{path.stem}-{pack}",
                    Wanted(points=arguments.points, parallel=1, pack=pack),
                )
                for pack in (8, 1)
            ]
            found.append(Compared(path.stem, *both))
            print(*found[-1].cells(), file=sys.stderr, flush=True)
    table = Table("sink", "points that shared a run", "s a point, packed", "s a point, alone", "ratio", "verdicts")
    for one in found:
        table.add_row(*one.cells())
    Console(width=120).print(table)
    return 0 if all(one.equal for one in found) else 1


if __name__ == "__main__":
    ended("bench-packing", main)
