import io
import time

import pytest

from prune4rel import progress
from prune4rel.progress import PlainProgress, Progress, patience


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_silence_is_the_default(capsys):
    listener = Progress()
    listener.say("hello")
    with listener.task("work", total=3) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


def test_lines_say_how_far_and_how_long(clock):
    stream = io.StringIO()
    with PlainProgress(stream).task("neighbours", total=100) as advance:
        for _ in range(4):
            clock[0] += 3
            advance(10)
    lines = stream.getvalue().splitlines()
    assert lines == [
        "neighbours: 20%, about 24 s left",
        "neighbours: 40%, about 18 s left",
        "neighbours: done in 12.0 s",
    ]


def test_short_tasks_leave_no_line(clock):
    stream = io.StringIO()
    with PlainProgress(stream).task("neighbours", total=2) as advance:
        clock[0] += 1
        advance(2)
    assert not stream.getvalue()


def test_more_than_the_total_is_all_of_it(clock):
    stream = io.StringIO()
    with PlainProgress(stream, every=0).task("work", total=2) as advance:
        clock[0] += 1
        advance(5)
    assert stream.getvalue() == "work: 100%, about 0 s left\n"


def test_task_of_nothing_is_no_division_by_zero(clock):
    stream = io.StringIO()
    with PlainProgress(stream, every=0).task("work", total=0) as advance:
        clock[0] += 1
        advance(0)
    assert not stream.getvalue()


def test_lines_go_to_standard_error(capsys):
    PlainProgress().say("here")
    assert capsys.readouterr() == ("", "here\n")


def test_failure_inside_a_task_gets_through(clock):
    stream = io.StringIO()

    def fail():
        with PlainProgress(stream).task("work", total=2):
            clock[0] += 10
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not stream.getvalue()


class Ear(Progress):
    def __init__(self):
        self.heard = []

    def say(self, message):
        self.heard.append(message)


def test_patience_speaks_only_where_it_is_needed():
    ear = Ear()
    with patience(ear, "quick", after=5):
        pass
    with patience(ear, "slow", after=0.01):
        time.sleep(0.3)
    assert ear.heard == ["slow"]
