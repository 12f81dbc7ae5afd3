import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel.report.words import isolate, listed, nice_step, plain, shorten, text_width


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
