"""The page as people see it: in a real browser, with real clicks and keys."""

import csv
import json
import time
from dataclasses import replace
from statistics import fmean

import pytest
from tests.report.chromium import PATIENCE, Chromium, needs_chromium
from tests.report.stories import HOSTILE, bare_story, digits_story, hostile_story

from prune4rel.report import write_report

pytestmark = needs_chromium

SEEN = "[...document.querySelectorAll('.cards li')].filter((card) => !card.hidden)"
INK = """(() => {
  const canvas = document.querySelector('canvas');
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 100 && Math.abs(data[i] - data[i + 2]) > 60) sum += 1;
  return sum;
})()"""
TOO_WIDE = """[...document.body.querySelectorAll('*')].filter((node) => {
  const box = node.getBoundingClientRect();
  return box.width && !node.closest('.scroll, .hidden, .skip') && (box.right > innerWidth + 1 || box.left < -1);
}).map((node) => `${node.tagName}.${node.getAttribute('class')} ${node.textContent.slice(0, 40)}`)"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    browser = Chromium(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    story = digits_story()
    stories = {
        "digits": [story],
        "hostile": [hostile_story()],
        "bare": [bare_story()],
        "two": [story, replace(story, title="the same again", thumbnails=None)],
    }
    for name, told in stories.items():
        write_report(told, folder / f"{name}.html")
    return folder


@pytest.fixture
def visit(chromium, files):
    pages = []

    def visit(name="digits", **look):
        pages.append(chromium.open(files / f"{name}.html", **look))
        return pages[-1]

    yield visit
    for page in pages:
        page.close()


@pytest.mark.parametrize("name", ["digits", "hostile", "bare", "two"])
@pytest.mark.parametrize("dark", [False, True])
def test_loads_without_a_complaint_or_a_request(visit, name, dark):
    page = visit(name, dark=dark)
    assert page.complaints() == []
    assert page.requests() == []


@pytest.mark.parametrize("name", ["digits", "hostile", "bare", "two"])
@pytest.mark.parametrize("width", [320, 390, 800])
def test_nothing_sticks_out_at_any_width(visit, name, width):
    page = visit(name, width=width, mobile=width < 500)
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run(TOO_WIDE) == []


def test_the_table_shows_the_runs_numbers(visit):
    story = digits_story()
    rows = visit().run(
        "[...document.querySelectorAll('#results tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    heads = ["label", "ratio", "test_accuracy", "best_accuracy", "relabel_accuracy"]
    for row in rows[:-1]:
        shown = dict(zip(heads, row, strict=False))
        mine = [cell for cell in story.cells if (cell.label, f"{cell.ratio:.0%}") == (shown["label"], shown["ratio"])]
        assert len(mine) == 3
        for name in heads[2:]:
            assert shown[name].split()[0] == f"{100 * fmean(getattr(cell, name) for cell in mine):.1f}"
    assert len(rows) == 7


def test_the_table_sorts_by_click_and_by_key(visit):
    page = visit()
    first = "document.querySelector('#results tbody tr').cells[2].dataset.value"
    values = sorted(
        float(value)
        for value in page.run(
            "[...document.querySelectorAll('#results tbody tr')].map((row) => row.cells[2].dataset.value)"
        )
    )
    page.click("#results thead th:nth-child(3) button")
    assert float(page.run(first)) == values[-1]
    page.run("document.querySelector('#results thead th:nth-child(3) button').focus()")
    page.press("Enter", "\r")
    assert float(page.run(first)) == values[0]
    assert page.run("document.querySelector('#results thead th:nth-child(3)').ariaSort") == "ascending"


def test_layers_of_the_map_switch_on_and_off(visit):
    page = visit()
    everything = page.run(INK)
    page.click("[data-layer=picked]")
    without = page.run(INK)
    assert without < everything
    page.run("document.querySelector('[data-layer=noisy]').focus()")
    page.press(" ", " ")
    assert page.run(INK) == 0
    page.click("[data-layer=corrected]")
    assert page.run(INK) > 0


def test_the_map_can_be_narrowed_to_a_class(visit):
    page = visit()
    before = page.run(INK)
    choose(page, "[data-class]", 3)
    page.settle()
    assert 0 < page.run(INK) < 0.4 * before


def test_pointing_at_an_example_tells_what_it_is(visit):
    story = digits_story()
    page = visit()
    page.run("document.querySelector('canvas').scrollIntoView({block: 'center', behavior: 'instant'})")
    box = json.loads(page.run("JSON.stringify(document.querySelector('canvas').getBoundingClientRect())"))
    places = story.map_xy - (story.map_xy.min(axis=0) + story.map_xy.max(axis=0)) / 2
    alone = places[:, 0].argmax()
    scale = 0.92 * min(box["width"], box["height"]) / (story.map_xy.max(axis=0) - story.map_xy.min(axis=0)).max()
    x = box["x"] + box["width"] / 2 + places[alone, 0] * scale
    y = box["y"] + box["height"] / 2 - places[alone, 1] * scale
    page.mouse("mouseMoved", float(x), float(y))
    told = page.run("document.querySelector('.tip').innerText")
    assert told.startswith(f"#{alone}\n")
    assert f"given {story.class_names[story.labels[alone]]}" in told
    assert f"true {story.class_names[story.clean_labels[alone]]}" in told
    assert f"model {story.class_names[story.corrected[alone]]}" in told.replace("\u2068", "").replace("\u2069", "")
    page.mouse("mouseMoved", box["x"] + 3, box["y"] + 3)
    assert page.run("document.querySelector('.tip').hidden")


def test_the_map_can_be_used_by_keys_alone(visit):
    page = visit()
    page.run("document.querySelector('canvas').focus()")
    page.press("+", "+")
    page.press("ArrowLeft")
    spoken = page.run("document.querySelector('.stage [aria-live]').textContent")
    assert spoken.startswith("#")
    assert "given" in spoken
    page.press("Escape")
    assert page.run("document.querySelector('.tip').hidden")


def test_dragging_and_zooming_move_the_map(visit):
    page = visit()
    before = page.run("document.querySelector('canvas').toDataURL()")
    page.click("[data-zoom=in]")
    zoomed = page.run("document.querySelector('canvas').toDataURL()")
    assert zoomed != before
    page.run("document.querySelector('canvas').scrollIntoView({block: 'center', behavior: 'instant'})")
    page.mouse("mousePressed", 500, 450, button="left", buttons=1, clickCount=1)
    page.mouse("mouseMoved", 620, 450, button="left", buttons=1)
    page.mouse("mouseReleased", 620, 450, button="left", clickCount=1)
    assert page.run("document.querySelector('canvas').toDataURL()") != zoomed
    page.mouse("mouseMoved", 5, 5)
    page.click("[data-zoom=all]")
    page.mouse("mouseMoved", 5, 5)
    assert page.run("document.querySelector('canvas').toDataURL()") == before


def choose(page, selector, value):
    page.run(
        f"(() => {{ const s = document.querySelector('{selector}'); s.value = '{value}';"
        " s.dispatchEvent(new Event('change')); })()"
    )


def test_the_gallery_filters_by_class(visit):
    page = visit()
    assert page.run(f"{SEEN}.length") == 48
    page.click("[data-more]")
    assert page.run(f"{SEEN}.length") == 192
    choose(page, "[data-filter=given]", 3)
    cards = page.run(f"{SEEN}.map((card) => card.innerText)")
    assert cards
    assert all(card.startswith("three") for card in cards)
    choose(page, "[data-filter=corrected]", 5)
    cards = page.run(f"{SEEN}.map((card) => card.innerText)")
    assert all("five" in card for card in cards)
    assert page.run("document.querySelector('.found').textContent") == f"{len(cards)} shown"
    choose(page, "[data-filter=given]", "")
    choose(page, "[data-filter=corrected]", "")
    choose(page, "[data-filter=right]", "no")
    assert all("✗" in card for card in page.run(f"{SEEN}.map((card) => card.innerText)"))


def test_pictures_are_decoded(visit):
    assert visit().run("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")


def test_colours_follow_the_system_and_the_button(visit):
    page = visit(dark=True)
    colour = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.run(colour)
    page.click("#theme")
    light = page.run(colour)
    assert (dark, light) == ("rgb(21, 23, 27)", "rgb(253, 252, 250)")
    page.features(dark=True, media="print")
    assert page.run(colour) == "rgb(255, 255, 255)"


def test_hostile_words_are_shown_as_words(visit):
    page = visit("hostile")
    shown = page.run("document.body.innerText")
    for word in HOSTILE:
        assert word in shown
    assert page.run("document.querySelector('h1').textContent") == "<h1>&amp; </title><script>alert(3)</script> 🐈 قطة"
    assert "</pre><script>alert(5)</script>" in page.run("document.querySelector('pre').textContent")
    page.run("document.querySelector('canvas').focus()")
    page.press("+", "+")
    assert page.run("document.querySelector('.tip b').textContent").startswith("images/<b>")
    assert page.complaints() == []


def test_numbers_can_be_downloaded(visit, tmp_path):
    page = visit()
    page.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click("[data-csv]")
    page.click("#accuracy a.csv")
    until = time.monotonic() + PATIENCE
    while {file.name for file in tmp_path.iterdir()} != {"map.csv", "accuracy.csv"} and time.monotonic() < until:
        time.sleep(0.05)
    story = digits_story()
    rows = list(csv.DictReader((tmp_path / "map.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["given"] for row in rows] == [story.class_names[label] for label in story.labels]
    assert [int(row["is_picked"]) for row in rows] == story.picked.astype(int).tolist()
    assert page.requests() == []


def test_every_control_has_a_name_and_can_be_reached(visit):
    page = visit()
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    controls = {"button", "checkbox", "combobox", "link", "image", "region", "img", "slider"}
    nameless = [
        node["role"]["value"]
        for node in tree
        if not node.get("ignored") and node.get("role", {}).get("value") in controls and not node["name"].get("value")
    ]
    assert nameless == []
    levels = page.run("[...document.querySelectorAll('h1,h2,h3,h4')].map((head) => Number(head.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1


def test_prints_to_pages(visit, tmp_path):
    page = visit(dark=True)
    page.pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 20_000
    assert page.complaints() == []
