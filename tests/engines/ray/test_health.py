import socket
import threading
import time
from contextlib import contextmanager

import pytest

from prune4rel.engines.ray import health
from prune4rel.engines.ray.health import HEADERS, SETTINGS, check_answers

# a socket that both sides gave up is told late, and by chance
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

HELLO = health._frame(SETTINGS, 0, 0, b"")
NOT_FOUND = health._frame(HEADERS, health.END_OF_STREAM, 1, b"\x8d")


@contextmanager
def somebody(*words, pause=0.0):
    """An address at which somebody says these words, whatever is asked, and then no more."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            line, _ = server.accept()
            with line:
                line.recv(1024)
                for word in words:
                    if over.wait(pause):
                        return
                    line.sendall(word)
                over.wait(60)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        over.set()
        thread.join()


@pytest.mark.parametrize(
    ("words", "pause", "said"),
    [
        ((), 0, "nobody answers there"),
        ((HELLO,), 0, "nobody answers there"),
        ((bytes(1),) * 100, 0.05, "nobody answers there within"),
        ((b"HTTP/1.1 400 Bad Request\r\n",), 0, "not Ray"),
        ((HELLO, NOT_FOUND), 0, "not Ray"),
    ],
    ids=["silent", "greets", "drips", "other words", "knows nothing of it"],
)
def test_who_does_not_answer_as_ray_does_is_an_error_soon(monkeypatch, words, pause, said):
    monkeypatch.setattr(health, "PATIENCE", 0.5)
    with somebody(*words, pause=pause) as address:
        begin = time.monotonic()
        with pytest.raises(ConnectionError, match=said):
            check_answers(address)
        assert time.monotonic() - begin < 5


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:99999999"])
def test_nobody_is_there(address):
    with pytest.raises(ConnectionError, match=r"nobody answers there: .*is it the address `ray start` printed"):
        check_answers(address)


def test_a_name_that_takes_long_to_look_up(monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(health, "PATIENCE", 0.2)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(60))
    with pytest.raises(ConnectionError, match=r"nobody answers there within 0.2 s"):
        check_answers("far.example:6379")
    over.set()


def test_words_that_are_no_address_are_left_to_ray():
    assert check_answers("foo") == "foo"


def test_who_serves_clients_need_not_know_of_health():
    with somebody(HELLO, NOT_FOUND) as address:
        assert check_answers(f"ray://{address}") == f"ray://{address}"


def test_ray_answers(here, monkeypatch):
    from ray._private import services

    address = here.get_runtime_context().gcs_address
    assert check_answers(address) == address
    monkeypatch.setattr(services, "canonicalize_bootstrap_address", lambda _: address)
    assert check_answers("auto") == address
