"""Whether a Ray cluster answers at an address, within seconds.

Ray tries for minutes to reach what does not answer, or is something else. So gRPC's health check is put to it first,
in the few bytes of HTTP/2 that it takes.
"""

import os
import socket
import threading
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import BinaryIO

PATIENCE = 8.0
"""Seconds within which an address has to have answered, looking its name up included."""

PRINTED = "; is it the address `ray start` printed?"

DATA, HEADERS, SETTINGS = 0, 1, 4
END_OF_STREAM, END_OF_HEADERS = 1, 4
ASKED = (
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/grpc.health.v1.Health/Check"),
    (":authority", "ray"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
)
EMPTY = bytes(5)
"""A message of gRPC without contents: whether the whole server serves."""

SERVING = b"\0\0\0\0\x02\x08\x01"
"""The answer: a message of two bytes, its first field is 1."""


def check_answers(address: str) -> str:
    """Return the address of a cluster, found where it is ``"auto"``; raise `ConnectionError` unless Ray answers soon.

    What is no address at all is left to Ray to refuse, and what speaks TLS to be asked by it.
    """
    answers: SimpleQueue[str | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(_answering(address))
        except Exception as error:  # noqa: BLE001 - raised again below
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()  # looking up a name cannot be interrupted
    try:
        answer = answers.get(timeout=PATIENCE)
    except Empty:
        answer = ConnectionError(f"nobody answers there within {PATIENCE:g} s{PRINTED}")
    if isinstance(answer, Exception):
        raise answer
    return answer


def _answering(address: str) -> str:
    if address == "auto":
        from ray._private.services import canonicalize_bootstrap_address  # noqa: PLC0415 - an extra

        address = canonicalize_bootstrap_address(address) or address
    client = address.startswith("ray://")
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal() or os.environ.get("RAY_USE_TLS", "0") != "0":
        return address
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE) as line:
            line.sendall(_question())
            serves = any(
                body == SERVING if kind == DATA else client and kind == HEADERS
                for kind, body in _frames(line.makefile("rb"))
            )
    except (OSError, OverflowError) as error:
        raise ConnectionError(f"nobody answers there: {error}{PRINTED}") from None
    if not serves:
        raise ConnectionError(f"who answers there is not Ray{PRINTED}")
    return address


def _question() -> bytes:
    """Return how HTTP/2 begins, and one request."""
    fields = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in ASKED
    )
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(SETTINGS, 0, 0, b"")
        + _frame(HEADERS, END_OF_HEADERS, 1, fields)
        + _frame(DATA, END_OF_STREAM, 1, EMPTY)
    )


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def _frames(line: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield kinds and bodies of frames, until the answer is complete or what comes is none."""
    while len(head := line.read(9)) == 9 and (size := int.from_bytes(head[:3], "big")) <= 2**14:
        yield head[3], line.read(size)
        if head[3] in (DATA, HEADERS) and head[4] & END_OF_STREAM:
            return
