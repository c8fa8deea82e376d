"""A trial's own source topic, targets, checkpoint and directory."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...assertions import Open
from ..environments.base import Environment, Side
from ..errors import ObservationError
from ..jobs import Job
from ..kafka_topics import create_topics, delete_topics
from ..proxies.services import DIRECT, NONE, Proxies
from ..sinks import Sink
from ..targets import SIDES, Location, targets
from .checkpoint import Place
from .targets import Targets


@dataclass(frozen=True)
class Resources:
    """``kafka`` are the bootstrap servers of the source topic ``source`` for the harness. ``shared`` is the trial's
    directory, and ``place`` says where in it the checkpoint is. ``fields`` are those of the ``target`` that the sink's
    functions get, rendered for each side."""

    name: str
    source: str
    kafka: str
    shared: Path
    place: Place
    targets: Targets
    fields: Mapping[Side, Mapping[str, Any]]

    @property
    def checkpoint(self) -> Path:
        return self.place.directory

    def namespace(self, side: Side) -> dict[str, Any]:
        """The ``target``, as it is just now."""
        return {**self.fields[side], "checkpoint": str(self.checkpoint)}

    def open_in_kafka(self) -> list[Open]:
        """The transactions of the sink's producers that are open. Raises ObservationError."""
        return [one for one in self.targets.open(False) if one.kind == "kafka"]

    def drop_source(self) -> None:
        """Remove the source topic. Raises ObservationError."""
        delete_topics(self.kafka, [self.source])


def arrange(
    sink: Sink,
    job: Job,
    partitions: int,
    environment: Environment,
    proxies: Proxies = DIRECT,
    own_services: Mapping[str, str] = NONE,
    copies: int | None = None,
) -> Resources:
    """Make what the trial needs, empty; :meth:`Targets.drop` removes a target, :meth:`Resources.drop_source` the source
    topic. ``copies``: of each topic; None for as many as there are brokers. The job speaks to its targets, and to
    the user's own services, by ``proxies``. Raises ObservationError."""
    name = new_name()
    source, kafka = f"{name}_in", str(environment.addresses("harness").kafka)
    create_topics(kafka, {source: partitions}, copies)
    try:
        return with_targets(name, source, sink, job, partitions, environment, proxies, own_services, copies)
    except BaseException:
        with suppress(ObservationError):  # the error that is on its way says more
            delete_topics(kafka, [source])
        raise


def new_name() -> str:
    """Of a query, its topics, databases and directory: unique, and no other one begins with it."""
    return f"t{secrets.token_hex(5)}"


def names_a_query(text: str) -> bool:
    """Whether such a name is in it."""
    return re.search("t[0-9a-f]{10}", text) is not None


def with_targets(
    name: str,
    source: str,
    sink: Sink,
    job: Job,
    partitions: int,
    environment: Environment,
    proxies: Proxies = DIRECT,
    own_services: Mapping[str, str] = NONE,
    copies: int | None = None,
) -> Resources:
    """Make what a query from ``source`` needs besides, empty. Raises ObservationError."""
    shared = environment.shared_directory(name)
    addresses = {side: environment.addresses(side) for side in SIDES}
    addresses["job"] = proxies.in_front_of(addresses["job"])
    location = Location(name, partitions, shared, addresses, copies)
    made = Targets(location, {name: kind for name, kind in targets().items() if name in sink.services})
    own: dict[Side, Mapping[str, str]] = {"harness": own_services, "job": proxies.in_front_of_own(own_services)}
    fields = made.create()
    return Resources(
        name=name,
        source=source,
        kafka=location.address("kafka"),
        shared=shared,
        place=Place(shared / "checkpoint"),
        targets=made,
        fields={side: {"name": name, **fields[side], "proxy": dict(own[side]), **_rows_of(job)} for side in SIDES},
    )


def _rows_of(job: Job) -> dict[str, Any]:
    """What the sink's ``target`` says of the rows that it gets: ``columns`` with their types, and the job's ``key``."""
    return {"columns": job.columns(), "key": list(job.key)}
