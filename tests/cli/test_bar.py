"""The bar on a terminal."""

import sys
from io import StringIO

import pytest
from rich.console import Console

from prune4rel.cli import bar
from prune4rel.cli.bar import BarProgress, best_progress
from prune4rel.progress import PlainProgress


@pytest.fixture
def shown(monkeypatch):
    """Return a bar, and a function that tells which bars it shows now."""
    wide = Console(file=StringIO(), force_terminal=True, width=200)
    monkeypatch.setattr(bar, "Console", lambda **_: wide)
    progress = BarProgress()
    return progress, lambda: [(task.description, task.completed) for task in progress._bars.tasks]


def test_a_task_is_shown_while_it_lasts(shown):
    progress, now = shown
    with progress.task("training", total=4) as advance:
        advance(1)
        advance(0.5)
        assert now() == [("training", 1.5)]
        progress.status("epoch 1/4")
        assert now() == [("epoch 1/4", 1.5)]
    assert now() == []
    assert "training" in progress.console.file.getvalue()


def test_after_a_task_within_a_task_the_outer_one_tells_how_it_stands(shown):
    progress, now = shown
    with progress.task("training", total=4):
        progress.status("epoch 1/4")
        with progress.task("testing", total=2) as advance:
            advance(1)
            assert now() == [("epoch 1/4", 0), ("testing", 1)]
        progress.status("epoch 2/4")
        assert now() == [("epoch 2/4", 0)]
    assert now() == []


def test_where_there_is_little_room_words_are_broken_and_nothing_is_lost(monkeypatch):
    narrow = Console(file=StringIO(), force_terminal=True, width=60)
    monkeypatch.setattr(bar, "Console", lambda **_: narrow)
    progress = BarProgress()
    with progress.task("training", total=4) as advance:
        advance(1)
        progress.status("epoch 1/4, loss 0.631, agrees with 59.0% of [given] labels, 7,569 examples/s")
        with narrow.capture() as seen:
            narrow.print(progress._bars.get_renderable())
    for word in ("epoch", "59.0%", "[given]", "examples/s", "25%"):
        assert word in seen.get()


def test_bars_go_away_when_a_task_fails_and_come_back_with_the_next(shown):
    progress, now = shown

    def fail():
        with progress.task("training", total=4), progress.task("testing", total=2):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert now() == []
    assert not progress._bars.live.is_started
    with progress.task("again", total=1):
        assert now() == [("again", 0)]
        assert progress._bars.live.is_started


def test_what_is_said_is_no_markup_and_a_status_of_nothing_is_not_shown(shown):
    progress, now = shown
    progress.status("epoch 1/4")
    progress.say("class [bold] is small")
    assert now() == []
    assert "class [bold] is small" in progress.console.file.getvalue()
    assert "epoch" not in progress.console.file.getvalue()


@pytest.mark.parametrize(("terminal", "kind"), [(True, BarProgress), (False, PlainProgress)])
def test_logs_get_lines(monkeypatch, terminal, kind):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert type(best_progress()) is kind
