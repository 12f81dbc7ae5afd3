from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from prune4rel.report.scene import Markup, Scene, element, svg
from prune4rel.report.words import plain

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cn"], exclude_characters="\ufffe\uffff"))


@given(TEXT, TEXT)
def test_any_text_comes_back_as_text(inside, attribute):
    node = ET.fromstring(element("text", inside, aria_label=attribute))  # noqa: S314 - our own
    assert node.text == (plain(inside) or None)
    assert node.get("aria-label") == " ".join(plain(attribute).split("\n"))
    assert not list(node)


def test_markup_is_not_escaped_twice():
    inner = element("title", "a & b")
    assert element("g", inner) == "<g><title>a &amp; b</title></g>"
    assert isinstance(element("g"), Markup)
    assert inner.__html__() is inner


def test_attributes_that_are_none_are_left_out_and_numbers_are_short():
    assert element("line", x1=1.0, x2=2.345678, class_=None) == '<line x1="1" x2="2.35"/>'


def test_a_drawing_tells_what_it_is():
    node = ET.fromstring(svg(Scene([], 100, 50), 'about "this"'))  # noqa: S314 - our own
    assert (node.get("role"), node.get("aria-label"), node.get("viewBox")) == ("img", 'about "this"', "0 0 100 50")
