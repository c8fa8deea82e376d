"""What became of an order to the thread that was parked: a line is to raise, a connection to be cut or answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..capabilities import InjectionError

Fields = Mapping[str, Any]


def _raised(fields: Fields, point: Fields) -> str:
    """An exception at a line, or an error of a change of a file, is confirmed by the probe that raised it."""
    outside = ", outside of the try around it" if fields.get("outside") else ""
    return f"{_place(point)} raised {fields.get('error')}{outside}"


def _not_raised(fields: Fields, point: Fields) -> str:
    raise InjectionError(f"{_place(point)} raised {fields.get('error')} itself: it has not been executed")


def _dropped(fields: Fields, point: Fields) -> str:
    """A connection that was cut is confirmed by the proxy that has closed it."""
    what = "request" if fields.get("edge") == "before" else "answer to"
    return f"the {what} {fields.get('kind')} was dropped, and its connection to {fields['service']} cut"


def _answered(fields: Fields, point: Fields) -> str:
    """A made-up answer is confirmed by the proxy that gives it."""
    what = "instead of being passed on" if fields.get("edge") == "before" else "though it was done"
    return f"{fields.get('kind')} was answered with {fields.get('error')} {what}"


def _not_answered(fields: Fields, point: Fields) -> str:
    kind, error = fields.get("kind"), fields.get("error")
    if fields.get("given_up"):
        raise InjectionError(f"{kind} was not answered with {error}: its client had given it up, and sees none")
    raise InjectionError(f"{kind} cannot be answered with {error}: it was passed on")


def _place(point: Fields) -> str:
    if point.get("phase") == "file":
        return f"{point.get('op')} of {point.get('path')}, {point.get('edge')} it was done,"
    if point.get("phase") == "call":
        return f"the call of {point.get('function')}"
    return f"line {point.get('file')}:{point.get('line')}"


OUTCOMES: Mapping[str, Callable[[Fields, Fields], str]] = {
    "probe.raised": _raised,
    "probe.not_raised": _not_raised,
    "probe.dropped": _dropped,
    "probe.answered": _answered,
    "probe.not_answered": _not_answered,
}
"""By the event that tells it, and the point of the thread: the detail that confirms the action. Those that say that it
could not be done raise InjectionError."""
