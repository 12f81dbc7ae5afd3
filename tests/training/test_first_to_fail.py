import os
import signal
import threading

import pytest
from torch.distributed import HashStore

from prune4rel.training import distributed
from prune4rel.training.distributed import FirstToFail, report_when_stopped


class Deaf:
    """A store that nobody runs any more."""

    def compare_set(self, *_):
        raise RuntimeError("Connection reset by peer")


class Exits:
    def __init__(self):
        self.code, self.happened = None, threading.Event()

    def __call__(self, code):
        self.code = code
        self.happened.set()


@pytest.fixture
def exits(monkeypatch):
    found, before = Exits(), signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(distributed.os, "_exit", found)
    yield found
    signal.signal(signal.SIGTERM, before)


def test_without_anybody_to_ask_one_speaks():
    words = FirstToFail(Deaf(), 3)
    assert words.claim()
    assert not words.claim()


def test_told_to_stop_the_first_says_so_and_ends(exits, capsys):
    with report_when_stopped(FirstToFail(HashStore(), 0)):
        os.kill(os.getpid(), signal.SIGTERM)
        assert exits.happened.wait(10)
    assert exits.code == 2
    assert capsys.readouterr().err.count("run the same command again") == 1


def test_told_to_stop_the_others_end_quietly(exits, capsys):
    store = HashStore()
    FirstToFail(store, 1).claim()
    with report_when_stopped(FirstToFail(store, 0)):
        os.kill(os.getpid(), signal.SIGTERM)
        assert exits.happened.wait(10)
    assert exits.code == 2
    assert capsys.readouterr().err == ""


def test_who_is_about_to_speak_may(exits, monkeypatch):
    monkeypatch.setattr(distributed, "GRACE", 0.3)
    words = FirstToFail(HashStore(), 0)
    with report_when_stopped(words):
        words.claim()
        os.kill(os.getpid(), signal.SIGTERM)
        assert not exits.happened.wait(0.2)
    os.kill(os.getpid(), signal.SIGTERM)
    assert not exits.happened.is_set()
    assert exits.happened.wait(10)
    assert exits.code == 2


def test_other_signals_are_none_of_its_business(exits):
    told_to_stop = signal.getsignal(signal.SIGTERM)
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    with report_when_stopped(FirstToFail(HashStore(), 0)):
        os.kill(os.getpid(), signal.SIGUSR1)
        assert not exits.happened.wait(0.2)
    signal.signal(signal.SIGUSR1, before)
    assert signal.getsignal(signal.SIGTERM) is told_to_stop


def test_outside_the_main_thread_nothing_is_done():
    handlers = []

    def work():
        with report_when_stopped(FirstToFail(HashStore(), 0)):
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGTERM)]
