"""What the job asks of its targets' services. The first and the last of each kind in a batch are lost, on their
way out and on their way back: the connection is cut, or the service says that it could not do it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...faults import Action, Value
from ...faults.protocols import OWN, PROTOCOLS, protocol_of
from .effects import Effect, Family, Loss, Place, numbers, steady, task_process_dies, thread_of
from .names import pattern_of
from .points import DROP, Question
from .shapes import shapes_of_kinds
from .trace import Event

PHASE = "request"
Address = tuple[tuple[str, Value], ...]
ANSWER = "answer"
COMMITS = ("COMMIT", "COMMIT PREPARED", "EXEC", "EndTxn")


def _read(reported: Sequence[Event]) -> list[Effect]:
    topics = {event["topic"] for event in reported if "topic" in event}
    addresses = [_address(event, several=len(topics) > 1) for event in reported]
    texts = shapes_of_kinds(addresses, [event.get("text", "") for event in reported])
    return [_effect(*one) for one in zip(reported, addresses, numbers(addresses), texts, strict=True)]


def _address(event: Event, *, several: bool) -> Address:
    """A batch that has records for several topics asks for that by each of them: a client may look at what became of
    those for one only."""
    asked = (("service", event["service"]), ("kind", event["kind"]))
    return (*asked, ("topic", pattern_of(event["topic"]))) if several and "topic" in event else asked


def _effect(event: Event, address: Address, nth: int, shape: str) -> Effect:
    """Two requests of one signature differ in the values of their texts only."""
    service, kind = event["service"], event["kind"]
    where = dict(address)
    about = f" for {where['topic']}" if "topic" in where else ""
    return Effect(
        phase=event["phase"],
        where=where,
        nth=nth,
        signature=(*map(str, where.values()), shape),
        shown=f"{kind} {nth}{about} to {service}",
        process=event.get("process", ""),
        thread=thread_of(event),
        steady=kind not in protocol_of(service).unsteady,
        answered=kind not in protocol_of(service).unanswered,
    )


def _dropped(effect: Effect, edge: str) -> Action | None:
    return DROP


def _refused(number: int, effect: Effect, edge: str) -> Action | None:
    """The service says that it has not done it, or that it may not have, by an error of those that it has for that: not
    every client raises that, and some sinks look for some errors only."""
    errors = protocol_of(str(effect.where["service"])).refusals_of(str(effect.where["kind"]), edge)
    return refusal(errors[number]) if number < len(errors) else None


def refusal(error: str) -> Action:
    return Action(ANSWER, None, {"error": error})


MOST = max(len(errors) for one in (*PROTOCOLS.values(), OWN) for errors in one.refusals.values())
LOSSES: Sequence[Loss] = (_dropped, *(partial(_refused, number) for number in range(MOST)), task_process_dies)

REQUESTS = Family(PHASE, _read, lambda question: LOSSES, "asked no service for a change")
LOOKUPS = Family("lookup", _read, lambda question: (), "looked nothing up at a service of the user's own")


def first_of_each_kind(question: Question) -> list[list[Place]]:
    """The first request of each kind to each service that every run of a batch has, with the role of its batch: a list
    for each kind, in the order in which the kinds come. A service of the user's own is asked for all by a few methods:
    there each path is a kind."""
    found: dict[tuple[object, ...], dict[str, Effect]] = {}
    for role, batch in question.roles.items():
        for one in steady(question, REQUESTS, batch):
            own = protocol_of(str(one.where["service"])) is OWN
            found.setdefault(one.signature if own else one.selectors, {}).setdefault(role, one)
    return [list(of_roles.items()) for of_roles in found.values()]


def endings(found: Sequence[Effect]) -> list[Effect]:
    """Requests that end something: the last of a connection, and those that commit."""
    last = {effect.thread: effect.address for effect in found}
    return [one for one in found if one.where["kind"] in COMMITS or last[one.thread] == one.address]
