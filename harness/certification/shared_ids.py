"""Transactional ids that a sink uses in each of its trials: side by side, their producers fence each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..trial.arrange import names_a_query
from .trace import Event


def of_no_query(trace: Iterable[Event]) -> set[str]:
    """The ids in which neither the target's name is nor the query's: they may be the same in each trial."""
    found = {str(event["transaction"]): event for event in trace if "transaction" in event}
    return {one for one, event in found.items() if not (names_a_query(one) or str(event.get("query")) in one)}


def shared(trace: Iterable[Event], another: Iterable[Event]) -> list[str]:
    """Those of two trials."""
    return sorted(of_no_query(trace) & of_no_query(another))


def note_of(ids: Sequence[str]) -> list[str]:
    """What should be known of them."""
    if not ids:
        return []
    named = f"{ids[0]} and {len(ids) - 1} more" if len(ids) > 1 else ids[0]
    return [
        f"two queries that write by this sink fence each other: each trial uses the same transactional ids ({named});"
        " so trials ran one after the other. Begin them with target.name"
    ]
