"""SVG as text, in which every name and number is escaped."""

from collections.abc import Iterable
from html import escape
from typing import Self

from prune4rel.report.words import plain


class Markup(str):
    """Text that is markup already; templates and `element` take it as it is."""

    __slots__ = ()

    def __html__(self) -> Self:
        return self


def element(tag: str, *children: str, **attributes: str | float | None) -> Markup:
    """Make an element. Plain text is escaped, `Markup` is not; ``_`` in attribute names stands for ``-``.

    >>> element("text", "a < b", x=1.5, text_anchor="end", class_="tick")
    '<text x="1.5" text-anchor="end" class="tick">a &lt; b</text>'
    """
    told = "".join(
        f' {name.strip("_").replace("_", "-")}="{escape(_written(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Markup) else escape(plain(child)) for child in children)
    return Markup(f"<{tag}{told}>{inside}</{tag}>" if inside else f"<{tag}{told}/>")


def group(*children: str, **attributes: str | float | None) -> Markup:
    """Put elements together."""
    return element("g", *children, **attributes)


def drawing(children: Iterable[str], width: float, height: float, about: str) -> Markup:
    """Make a whole picture that scales, with a text for those who cannot see it."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {_written(width)} {_written(height)}",
        role="img",
        aria_label=about,
        width=width,
        height=height,
    )


def _written(value: str | float) -> str:
    if isinstance(value, str):
        return plain(value)
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
