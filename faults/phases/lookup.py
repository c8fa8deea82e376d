"""What the job looks up at a service of the user's own, where a client has to look at the status of the answer."""

from __future__ import annotations

from ..declarations import Parameter, Phase
from ..protocols import OWN
from ._selectors import ATTEMPT, BATCH, OF_A_QUERY, PARTITION, STAGE, WHEN

SERVICE = Parameter("service", "text", "what --proxy calls it")
KIND = Parameter("kind", "text", f"the method: {', '.join(OWN.lookups)}", sample=OWN.lookups[0])

PHASES = (
    Phase(
        name="lookup",
        edges=("before",),
        selectors=(SERVICE, KIND, BATCH, WHEN, STAGE, PARTITION, ATTEMPT, *OF_A_QUERY),
        where="connection",
        sinks="own services",
        meaning="the job asks a service of your own by HTTP for what is there, before that is passed on",
        two_phase="a look at what was written before",
        source="a proxy between the job and the service",
        step=112,
    ),
)
