"""Any protocol over TCP: what a client has sent is stopped as it comes, in chunks.

Which of them belong together, and what answers them, is not known: a chunk has no answer, and it may change something.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._declaration import Answered, Request, Sent

KIND = "chunk"


class Chunks:
    def sent(self, data: bytes) -> Iterator[Sent]:
        yield Sent(data, Request(KIND, f"{len(data)} bytes"), answered=False)

    def answered(self, data: bytes) -> Iterator[Answered]:
        yield Answered(data)
