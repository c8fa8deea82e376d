"""What a reader may rely on, from the anomalies that were seen; and what of it satisfies a claim."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Guarantee

MILD = {
    frozenset[str](): Guarantee.EXACTLY_ONCE,
    frozenset({"duplicated"}): Guarantee.AT_LEAST_ONCE,
    frozenset({"lost"}): Guarantee.AT_MOST_ONCE,
}
"""Sets of anomalies that leave a guarantee; every other leaves none."""


def guarantee_of(kinds: Iterable[str]) -> Guarantee:
    """The guarantee that anomalies of these kinds leave to a reader.

    >>> guarantee_of(["duplicated"]).value, guarantee_of(["duplicated", "lost"]).value
    ('at-least-once', 'none')
    """
    return MILD.get(frozenset(kinds), Guarantee.NONE)


def satisfies(guarantee: Guarantee, claim: Guarantee) -> bool:
    """Exactly-once satisfies every claim; at-least-once and at-most-once satisfy only themselves, and ``none``."""
    return guarantee in (Guarantee.EXACTLY_ONCE, claim) or claim is Guarantee.NONE


def weakest(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of several trials together: what all of them leave. No trial at all leaves exactly-once.

    >>> weakest([Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE]).value
    'at-least-once'
    >>> weakest([Guarantee.AT_MOST_ONCE, Guarantee.AT_LEAST_ONCE]).value
    'none'
    """
    weaker = set(guarantees) - {Guarantee.EXACTLY_ONCE}
    if not weaker:
        return Guarantee.EXACTLY_ONCE
    return weaker.pop() if len(weaker) == 1 else Guarantee.NONE
