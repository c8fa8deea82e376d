"""What actions on the job's connections share: which connections, for how long, and how they are impaired."""

from __future__ import annotations

from ...plans import Action
from ..capabilities import Impairment, Scene
from ..declarations import ActionSpec, Parameter

SERVICE = Parameter(
    "service",
    "text",
    "whose connections (default those to the service of the stopped request, else to all)",
)
FOR = Parameter("for", "duration", "how long it lasts", required=True)


def service_of(action: Action, scene: Scene) -> str | None:
    """The service that is meant; None for all."""
    service = action.arguments.get("service", scene.point.get("service"))
    return None if service is None else str(service)


def impair(spec: ActionSpec, action: Action, scene: Scene, impairment: Impairment) -> str:
    """Impair the connections that ``action`` means, for as long as it says."""
    service, seconds = service_of(action, scene), spec.seconds(action, "for")
    return scene.network.impair(service, impairment, seconds, by=scene.reference)
