"""What actions on the job's connections share: which connections, for how long, and how they are impaired."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...plans import Action, Value
from ...requirements import Requirement
from ..capabilities import Impairment, Scene
from ..declarations import ActionSpec, Parameter

SERVICE = Parameter(
    "service",
    "text",
    "whose connections (default those to the service of the stopped request, else to all)",
)
FOR = Parameter("for", "duration", "how long it lasts", required=True)


def service_of(action: Action, where: Mapping[str, Value]) -> str | None:
    """The service that is meant, at a point that has this ``where``, or that was reported so; None for all."""
    service = action.arguments.get("service", where.get("service"))
    return None if service is None else str(service)


def impairing(
    name: str,
    *,
    meaning: str,
    example: str,
    impairment: Callable[[Action], Impairment],
    arguments: tuple[Parameter, ...],
    positional: str | None = None,
) -> ActionSpec:
    """The action that impairs connections so, for as long as it says."""

    def act(action: Action, scene: Scene) -> str:
        service, seconds = service_of(action, scene.point), float(action.arguments["for"])
        return scene.network.impair(service, impairment(action), seconds, by=scene.reference)

    return ActionSpec(
        name=name,
        meaning=meaning,
        example=example,
        act=act,
        requires=(Requirement("impaired"),),
        arguments=(*arguments, FOR, SERVICE),
        positional=positional,
        through_proxy=True,
        self_inflicted=(None,),
    )
