"""The job's connections to the services of its targets: what a plan impairs, and what restores them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...faults.capabilities import Impairment
from ...plans import ActionReference
from ..environments.base import EffectError
from ..proxies.links import InForce
from ..proxies.proxy import Proxy
from ..proxies.services import Proxies
from ..runtime.waiting import WaitTimeout, wait_for
from .endings import Endings

OPENED_SECONDS = 2.0
"""How long a connection that is to be reset may take to be there."""

Record = Callable[[str, Mapping[str, Any]], None]


@dataclass
class Connections:
    """Those through a trial's proxies."""

    proxies: Proxies
    record: Record
    _endings: Endings = field(default_factory=Endings)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def impair(self, service: str | None, impairment: Impairment, seconds: float, by: ActionReference) -> str:
        """Returns once it is in force; ended after ``seconds``. Raises EffectError."""
        with self._lock:
            found = self._found(service)
            begun = [(proxy, proxy.links.impair(impairment)) for proxy in found.values()]
            fields = by.as_fields() | {"services": list(found)}
            self.record("network.impaired", fields)
            name = f"impairment of {' and '.join(found)}"
            self._endings.after(seconds, partial(self._end, begun, fields), name)
        return f"the connections to {' and '.join(found)} are impaired for {seconds:g} s"

    def reset(self, service: str | None) -> str:
        """Returns how many connections got a reset. Raises EffectError where there is none, and none comes: a pool may
        be opening one."""
        found = self._found(service)

        def counted() -> dict[str, int] | None:
            counts = {name: proxy.links.reset() for name, proxy in found.items()}
            return counts if any(counts.values()) else None

        try:
            counts = wait_for(counted, OPENED_SECONDS, "a connection")
        except WaitTimeout as error:
            names = " or ".join(found)
            raise EffectError(f"no connection to {names} is open: there is nothing to reset") from error
        return ", ".join(f"{count} of {name}" for name, count in counts.items()) + " reset"

    def settle(self, deadline: float) -> list[str]:
        """Restore at once what is still impaired; nothing is impaired any more. Returns what has not ended."""
        with self._lock:  # what is being impaired just now is restored, too
            self._endings.close()
        return self._endings.join(deadline)

    def _found(self, service: str | None) -> dict[str, Proxy]:
        if self._endings.over:
            raise EffectError("no connection is impaired any more: the job has ended")
        found = self.proxies.of(service)
        if not found:
            raise EffectError(f"no connection to {service or 'a service'} passes a proxy")
        return found

    def _end(self, begun: list[tuple[Proxy, InForce]], fields: Mapping[str, Any]) -> None:
        for proxy, impairment in begun:
            proxy.links.restore(impairment)
        affected = sum(impairment.affected for _, impairment in begun)
        self.record("network.restored", {**fields, "affected": affected})
