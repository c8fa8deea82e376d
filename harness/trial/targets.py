"""The targets of one trial: what its sink asked for, and the questions that all of them are asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...assertions import Open
from ..environments.base import Side
from ..errors import ObservationError, one_line
from ..targets import SIDES, Site, Target, targets


@dataclass(frozen=True)
class Targets:
    """Kinds by name, at the trial's site. Every method raises ObservationError where a target does not answer."""

    site: Site
    kinds: Mapping[str, Target]

    def create(self) -> dict[Side, dict[str, Any]]:
        """Make all of them, or none. Returns the fields of every kind there is: None where it was not asked for."""
        none = {name: None for kind in targets().values() for name in kind.fields}
        found: dict[Side, dict[str, Any]] = {side: dict(none) for side in SIDES}
        with ExitStack() as undo:
            for name, kind in self.kinds.items():
                with _answers(kind):
                    made = kind.create(self.site)
                undo.callback(self.drop, name)
                for side in SIDES:
                    found[side] |= made[side]
            undo.pop_all()
        return found

    def drop(self, name: str) -> None:
        """Remove what the kind of this name has made."""
        kind = self.kinds[name]
        if kind.drop:
            with _answers(kind):
                kind.drop(self.site)

    def read(self, schema: pa.Schema, seconds: float) -> pa.Table:
        """What a reader sees, of a sink that leaves reading to its target. Raises RowError, too."""
        kind, read = next((kind, kind.read) for kind in self.kinds.values() if kind.read)
        with _answers(kind):
            return read(self.site, schema, seconds)

    def raw(self, column: str, read_by_sink: bool) -> dict[str, int]:
        """Rows (those with the key's first ``column``) as they lie there; not where the target itself reads them."""
        found: dict[str, int] = {}
        for kind in self.kinds.values():
            if kind.raw and (read_by_sink or not kind.read):
                with _answers(kind):
                    found |= kind.raw(self.site, column)
        return found

    def unsettled(self) -> list[str]:
        """Why readers do not get all that was written."""
        return [sentence for kind in self.kinds.values() for sentence in self._unsettled(kind)]

    def sessions(self) -> list[str]:
        """Clients that are still connected."""
        found: list[str] = []
        for kind in self.kinds.values():
            if kind.sessions:
                with _answers(kind):
                    found += kind.sessions(self.site)
        return found

    def unrest(self) -> tuple[list[str], list[Open]]:
        """What is unsettled for another reason than that a transaction is open, and the transactions that are."""
        sentences, opened = list[str](), list[Open]()
        for kind in self.kinds.values():
            found = self._open(kind)
            sentences += [] if found else self._unsettled(kind)
            opened += found
        return sentences, opened

    def open(self, settled: bool) -> list[Open]:
        """Open transactions. ``settled``: nothing was unsettled, so kinds that would have said so are not asked."""
        asked = [kind for kind in self.kinds.values() if not (settled and kind.unsettled)]
        return [one for kind in asked for one in self._open(kind)]

    def abort(self, transaction: Open) -> None:
        kind = self.kinds[transaction.kind]
        assert kind.abort is not None
        with _answers(kind):
            kind.abort(self.site, transaction)

    def _unsettled(self, kind: Target) -> list[str]:
        if kind.unsettled is None:
            return []
        with _answers(kind):
            return kind.unsettled(self.site)

    def _open(self, kind: Target) -> list[Open]:
        if kind.open is None:
            return []
        with _answers(kind):
            return kind.open(self.site)


@contextmanager
def _answers(kind: Target) -> Iterator[None]:
    """An error of its client's means that the target did not answer."""
    try:
        yield
    except kind.errors as error:
        raise ObservationError(one_line(error)) from error
