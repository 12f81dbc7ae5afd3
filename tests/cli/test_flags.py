"""Flags are made from options as they are declared."""

from dataclasses import dataclass
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from prune4rel import InputError
from prune4rel.cli.flags import flag_of, read_pairs, read_value, takes
from prune4rel.steps import KINDS, StepOptions
from prune4rel.steps.options import Options, declared, option


def test_pairs_and_values():
    assert read_pairs(None, "--option") == {}
    assert read_pairs(["a-b=c=d"], "--option") == {"a_b": "c=d"}
    assert [read_value(text) for text in ("3", "1.5", "true", "null", "worst")] == [3, 1.5, True, None, "worst"]


@pytest.mark.parametrize("item", ["a", "=b", "a="])
def test_what_is_no_pair(item):
    with pytest.raises(InputError, match="--option takes NAME=VALUE"):
        read_pairs([item], "--option")


@dataclass(frozen=True)
class Oven(Options):
    heat: int = option(180, "Degrees.", least=20)
    lit: bool = option(True, "Is it on?", flag="--lit/--unlit")
    racks: tuple[str, ...] = option(("top",), "Which racks.")
    minutes: tuple[float, ...] = option((), "For how long.")
    extras: dict[str, Any] = option({}, "More.", flag="--extra")
    note: str | None = option(None, "A note.", metavar="TEXT")


def call(*words, **which):
    seen = []
    app = typer.Typer()

    @app.command()
    @takes(Oven, **which)
    def bake(cake: str, *, given: dict[str, Any], slices: int = 8):
        seen.append((cake, given, slices))

    done = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(done.exception, InputError):
        raise done.exception
    return (*seen, done.output)[0]


def test_a_command_gets_what_was_given_and_nothing_else():
    assert call("plum") == ("plum", {}, 8)
    told = ("--heat", 200, "--unlit", "--racks", "top, low", "--minutes", "5,2.5", "--extra", "a=1", "--extra", "b=x")
    given = {
        "heat": 200,
        "lit": False,
        "racks": ["top", "low"],
        "minutes": [5.0, 2.5],
        "extras": {"a": 1, "b": "x"},
    }
    assert call("plum", *told, "--slices", 3) == ("plum", given, 3)


def test_values_that_are_no_values():
    with pytest.raises(InputError, match="--minutes takes numbers with commas between, not 'long'"):
        call("plum", "--minutes", "long")
    with pytest.raises(InputError, match="--extra takes NAME=VALUE"):
        call("plum", "--extra", "a")


def test_some_of_the_options():
    assert call("plum", "--heat", 90, only=("heat",)) == ("plum", {"heat": 90}, 8)
    for which in ({"only": ("heat",)}, {"without": ("note",)}):
        assert "No such option" in call("plum", "--note", "x", **which)


def test_help_says_what_was_declared():
    shown = call("--help")
    for words in ("Degrees.", "[default: 180]", "--lit", "--unlit", "[default: top]", "TEXT", "--slices"):
        assert words in shown


def test_no_two_options_share_a_flag():
    flags = [flag_of(each) for each in declared(StepOptions)]
    assert len(set(flags)) == len(flags)
    assert len({kind.place for kind in KINDS}) == len({kind.title for kind in KINDS}) == len(KINDS)
