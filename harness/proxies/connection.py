"""One connection through a proxy: requests are passed on one by one, and stopped before they go out and once they are
answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from ...faults.protocols import Answered, Conversation, Instead, Request, Sent
from .peers import Peer, has_ended, readable

QUEUED = 4 * 1024 * 1024
"""Bytes of a client's that wait to be sent, beyond which nothing more is read from it."""


@dataclass(frozen=True)
class Refused:
    """The client gets this answer: what the service answered does not pass, and a request that is stopped before it
    goes out never does."""

    answer: bytes


Order = Literal["pass", "pass late", "end"] | Refused | Instead
"""``pass late``: what was on its way for long arrives, even if nobody waits for it any more. ``end``: nothing more may
pass. Another question goes out instead of one that is stopped: it has the answer of that one, which is no point."""

Stop = Callable[[Literal["before", "after"], Request], Order]
"""Reports a request and waits."""

PassOn = Callable[[Peer, bytes], None]
"""Sends data to one of the two sides, when and as far as it may pass; raises OSError where the connection has ended."""

PassEnd = Callable[[Peer], None]
"""Tells one of the two sides, when it may know, that the other one sends nothing more."""


class Connection:
    """Passes on what ``client`` and ``server`` send to each other, until one of them has ended or ``stop`` says so. A
    client that sends nothing more still gets its answers; where it is not known what these are, until the server ends.

    ``gone``: whether the client's process is dead, not only its end of the connection closed. While a request, or its
    answer, is stopped, nothing passes in either direction. A request whose process has died meanwhile is discarded; one
    that a living process has given up is on its way all the same.
    """

    def __init__(
        self,
        client: Peer,
        server: Peer,
        conversation: Conversation,
        stop: Stop,
        gone: Callable[[], bool] = lambda: True,
        pass_on: PassOn = Peer.send,
        pass_end: PassEnd = Peer.end,
    ) -> None:
        self._client = client
        self._server = server
        self._conversation = conversation
        self._stop = stop
        self._gone = gone
        self._pass_on = pass_on
        self._pass_end = pass_end
        self._waiting: deque[Sent] = deque()
        self._queued = 0
        self._pending: deque[Request] = deque()
        self._answer = bytearray()
        self._back = bytearray()
        self._open_ended = False
        self._given_up = False
        self._unanswered = False
        self._end_passed = False

    def serve(self) -> None:
        """Until the end; the sockets are the caller's to close. Raises ValueError for what is not of the protocol."""
        with suppress(OSError):
            while self._pass_some():
                pass

    def _pass_some(self) -> bool:
        full = self._queued > QUEUED
        found = readable([self._server] if full or self._given_up else [self._client, self._server])
        if self._client in found:
            data = self._client.receive()
            self._given_up = not data
            self._queue(self._conversation.sent(data) if data else ())
            if not self._send():  # before what the service says is read: it may be the answer
                return False
        if self._server in found:
            data = self._server.receive()
            if not data:
                self._end_of_answer()
                return False
            if not all(self._answered(piece) for piece in self._conversation.answered(data)):
                return False
            self._flush(self._client, self._back)
        return self._send() and self._goes_on()

    def _goes_on(self) -> bool:
        """Whether there is something to come, though the client sends nothing more: an answer; or what the server has
        to say until it ends, where it is not known what answers a request."""
        if not self._given_up or self._pending:
            return True
        if self._unanswered and not self._end_passed:
            self._end_passed = True
            self._pass_end(self._server)
        return self._unanswered

    def _queue(self, pieces: Iterable[Sent]) -> None:
        for piece in pieces:
            self._waiting.append(piece)
            self._queued += len(piece.data)

    def _send(self) -> bool:
        """Pass on what waits, up to the next request that has to wait for an answer: all at once, but that nothing goes
        out while a request is stopped that comes behind it."""
        out = bytearray()
        while self._waiting and self._may_go(self._waiting[0].request):
            piece = self._waiting.popleft()
            self._queued -= len(piece.data)
            if piece.reply:
                self._pass_on(self._client, piece.reply)
            if piece.request is not None and piece.request.stops:
                self._flush(self._server, out)
                order = self._order("before", piece.request)
                if isinstance(order, Refused):
                    self._refuse(order)
                    continue
                if order == "end":
                    return False
                if isinstance(order, Instead):
                    piece = replace(piece, data=order.data, request=replace(piece.request, changes=False))
            if piece.request is not None and piece.answered:
                self._pending.append(piece.request)
            self._unanswered |= not piece.answered
            out += piece.data
        self._flush(self._server, out)
        return True

    @property
    def _oldest(self) -> Request | None:
        """Of those that wait for an answer."""
        return self._pending[0] if self._pending else None

    def _may_go(self, request: Request | None) -> bool:
        """One that may be stopped waits until all before it have been answered, and lets nothing pass by until it is
        answered itself."""
        return request is None or not self._pending or not (request.stops or self._pending[0].stops)

    def _flush(self, receiver: Peer, out: bytearray) -> None:
        if out:
            self._pass_on(receiver, bytes(out))
            out.clear()

    def _refuse(self, order: Refused) -> None:
        """Answer in the service's place: the conversation takes it for the service's answer."""
        for piece in self._conversation.answered(order.answer):
            self._pass_on(self._client, piece.data)

    def _answered(self, piece: Answered) -> bool:
        request = self._oldest
        if request is None or not request.changes:
            self._back += piece.data
        else:
            self._answer += piece.data
            self._open_ended = piece.open_ended
        if piece.whole and request is not None:
            if request.changes and not self._answer_passes(request):
                return False
            self._pending.popleft()
            self._leave_out(piece.unread)
        return True

    def _leave_out(self, unread: int) -> None:
        """So many requests get no answer. Those that have not gone out are none any more; those that have change
        nothing, or they would not have gone out."""
        for _ in range(min(unread, len(self._pending))):
            self._pending.popleft()
            unread -= 1
        for number, piece in enumerate(list(self._waiting) if unread else ()):
            if unread and piece.request is not None:
                self._waiting[number] = replace(piece, request=None)
                unread -= 1

    def _answer_passes(self, request: Request) -> bool:
        """Stop before the answer passes: it does, another one in its place, or none."""
        self._flush(self._client, self._back)
        order = self._order("after", request)
        if order == "end":
            return False
        self._back += order.answer if isinstance(order, Refused) else self._answer
        self._answer.clear()
        return True

    def _end_of_answer(self) -> None:
        """Of an answer that the connection's end ends, what has come is all of it. Of any other one the client gets
        what there is, such as why the server ends: that is no answer, and not told as one."""
        request = self._oldest
        if self._open_ended and request is not None and not self._answer_passes(request):
            return
        self._flush(self._client, self._back + self._answer)

    def _order(self, edge: Literal["before", "after"], request: Request) -> Order:
        """Nothing passes once the client's process has died, which is not told as a point either; but for what is
        late."""
        order = "end" if self._is_dead() else self._stop(edge, request)
        return "end" if order != "pass late" and self._is_dead() else order

    def _is_dead(self) -> bool:
        return has_ended(self._client) and self._gone()
