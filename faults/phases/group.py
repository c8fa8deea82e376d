"""Offsets of a consumer group, at the broker that coordinates it: those that a sink commits, by itself or within a
transaction."""

from __future__ import annotations

from ..declarations import Parameter, Phase
from ..probes.rule import Rule, Spot

GROUP = Parameter("group", "text", "the group's id")

PHASES = (
    Phase(
        name="group.commit",
        edges=("before", "after"),
        selectors=(GROUP,),
        where="broker",
        sinks="kafka",
        meaning="a consumer group's offsets are committed: after that they are durable (in a transaction: with it), "
        "and the client has no answer",
        two_phase="any write of the sink's own protocol",
        source="GroupCoordinatorService.commitOffsets, commitTransactionalOffsets; RequestHandlerHelper",
        step=82,
    ),
)

_COORDINATOR = "org.apache.kafka.coordinator.group.GroupCoordinatorService"
_REQUESTS = "org.apache.kafka.common.requests"


def _before(method: str, variant: str = "") -> Rule:
    return Rule(
        phase="group.commit",
        edge="before",
        side="broker",
        spot=Spot(_COORDINATOR, method, "ENTRY"),
        fields={"group": "$2.groupId()"},
        variant=variant,
    )


def _after(api: str, request: str, variant: str = "") -> Rule:
    """By the answer, if any of its partitions has no error."""
    return Rule(
        phase="group.commit",
        edge="after",
        side="broker",
        spot=Spot("kafka.server.RequestHandlerHelper", "sendMaybeThrottle", "ENTRY"),
        bind=(
            f'here:boolean = $1.header().apiKey().name().equals("{api}")',
            f"q:{_REQUESTS}.{request} = (here ? $1.loggableRequest() : null)",
        ),
        when="here && $2.errorCounts().containsKey(org.apache.kafka.common.protocol.Errors.NONE)",
        fields={"group": "q.data().groupId()"},
        variant=variant,
    )


RULES = (
    _before("commitOffsets"),
    _before("commitTransactionalOffsets", "in a transaction"),
    _after("OFFSET_COMMIT", "OffsetCommitRequest"),
    _after("TXN_OFFSET_COMMIT", "TxnOffsetCommitRequest", "in a transaction"),
)
