"""What is begun in a trial and ends after a time: at the latest when the job has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Endings:
    """Each is brought about by a thread of its own."""

    _threads: list[threading.Thread] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def over(self) -> bool:
        """Whether the job has ended: nothing is begun any more."""
        return self._over.is_set()

    def after(self, seconds: float, end: Callable[[], None], name: str) -> None:
        """``end`` is called after so many seconds, or once :meth:`close` is."""

        def wait() -> None:
            self._over.wait(seconds)
            end()

        thread = threading.Thread(target=wait, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """End at once what has not ended."""
        self._over.set()

    def join(self, deadline: float) -> list[str]:
        """Returns what has not ended within ``deadline`` seconds, by its name."""
        for thread in self._threads:
            thread.join(deadline)
        return [f"{thread.name} has not ended" for thread in self._threads if thread.is_alive()]
