"""What has come of a connection and is not whole yet."""

from __future__ import annotations

import struct


def taken(buffer: bytearray, size: int | None) -> bytes | None:
    """The first ``size`` bytes, which leave the buffer; None where that is not known, or not all of them are there."""
    if size is None or len(buffer) < size:
        return None
    data = bytes(buffer[:size])
    del buffer[:size]
    return data


def length_at(buffer: bytes | bytearray, start: int, protocol: str) -> int | None:
    """The four bytes at ``start`` as the length of a message, None where they have not come yet. Raises ValueError for
    one that no message of the ``protocol`` has."""
    if len(buffer) < start + 4:
        return None
    (length,) = struct.unpack_from("!i", buffer, start)
    if length < 4:
        raise ValueError(f"a message of {protocol} protocol cannot be {length} bytes long")
    return int(length)
