"""A second query ran beside the trial's: it handed a batch of its own over."""

from __future__ import annotations

from ..traces import Found, Struck


def check(struck: Struck) -> Found:
    """The journal has, between the action and its confirmation, that a second query has committed a batch, or has ended
    in one, as it does if the first one's sink gets in its way."""
    required, instead = "a second query commits a batch, or ends in one", "none was started"
    for event in struck.journal[struck.fired_at : struck.confirmed_at + 1]:
        if event["event"] == "query.ran":
            numbers = f"planned {event['planned']} batches, committed {event['committed']}"
            ended = event.get("code") is not None
            if event["committed"] or (event["planned"] and ended):
                return Found(required, f"{event.get('process')} {numbers}")
            instead = f"{event.get('process')} {numbers}, and {'ended' if ended else 'was not waited for any longer'}"
    return Found(required, None, instead)
