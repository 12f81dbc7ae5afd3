from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel.report.words import (
    INK,
    MUTED,
    PAPER,
    SERIES,
    WASH,
    contrast,
    isolate,
    listed,
    nice_step,
    plain,
    shade,
    shorten,
    symbols_of,
    text_width,
    variables,
)


@given(st.text(), st.floats(5, 300), st.floats(5, 20))
def test_shortened_text_fits(text, width, size):
    short = shorten(text, width, size)
    assert text_width(short, size) <= max(width, text_width("…", size)) + 1e-9
    assert short == plain(text) or short.endswith("…")


@given(st.text())
def test_plain_text_has_no_control_characters_and_keeps_the_rest(text):
    clean = plain(text)
    assert len(clean) == len(text)
    assert all(letter >= " " and not 0x7F <= ord(letter) < 0xA0 for letter in clean)
    assert all(now == was for now, was in zip(clean, text, strict=True) if was.isprintable())


def test_isolated_text_cannot_turn_what_follows():
    assert isolate("كلب") == "\u2068كلب\u2069"


@given(st.floats(1e-6, 1e9), st.integers(1, 10))
def test_steps_are_the_smallest_nice_ones(span, most):
    step = nice_step(span, most)
    assert span / step <= most * (1 + 1e-6)
    assert span / (step / 2.6) > most


@pytest.mark.parametrize(("words", "text"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")])
def test_lists_read_well(words, text):
    assert listed(words) == text


MODES = ("light", "dark")


@pytest.mark.parametrize("mode", MODES)
def test_every_colour_can_be_read_on_its_paper(mode):
    for colour in (*SERIES[mode], INK[mode], MUTED[mode]):
        assert contrast(colour, PAPER[mode]) >= 4.5, colour
        assert contrast(colour, WASH[mode]) >= 4.5, colour


def test_both_modes_have_the_same_colours():
    assert [name for name, _ in variables("light")] == [name for name, _ in variables("dark")]
    assert len(SERIES["light"]) == len(SERIES["dark"])


def test_a_dozen_methods_can_be_told_apart_without_colour_and_marker_repeating():
    symbols = symbols_of([*(f"method {number}" for number in range(20)), "prune4rel (x)", "prune4rel (y)", "uniform"])
    assert len(set(symbols.values())) == len(symbols)
    assert symbols["prune4rel (x)"][0] == 0


def test_neighbours_in_the_palette_have_different_markers():
    symbols = list(symbols_of([f"method {number}" for number in range(7)]).values())
    assert len({colour for colour, _ in symbols}) == 7
    assert all(one[1] != other[1] for one, other in pairwise(symbols))


@pytest.mark.parametrize("mode", MODES)
def test_shades_grow_steadily_from_the_paper(mode):
    steps = [contrast(shade(step / 10, mode), PAPER[mode]) for step in range(11)]
    assert all(one < other for one, other in pairwise(steps))


def deuteranope(colour):
    """What is left of a colour without the green cones (Viénot, Brettel and Mollon 1999), linear RGB."""
    red, green, blue = (((int(colour[place : place + 2], 16) / 255 + 0.055) / 1.055) ** 2.4 for place in (1, 3, 5))
    return (0.29275 * red + 0.70725 * green, 0.29275 * red + 0.70725 * green, -0.02234 * red + 0.02234 * green + blue)


@pytest.mark.parametrize("mode", MODES)
def test_the_maps_three_layers_stay_apart_for_colour_blind_eyes(mode):
    for one, other in combinations(SERIES[mode][:3], 2):
        far = sum((a - b) ** 2 for a, b in zip(deuteranope(one), deuteranope(other), strict=True)) ** 0.5
        assert far > 0.1, (one, other)
