import csv
import io
import json
import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.report.stories import bare_story, digits_story, hostile_story

from prune4rel import InputError
from prune4rel.report import Cell, Story, render, write_report
from prune4rel.report.page import SECTIONS


class Outline(HTMLParser):
    """Tags in order, and whether they close in order."""

    EMPTY = frozenset({"meta", "link", "img", "br", "input", "line", "circle", "path", "rect"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def page():
    return render([digits_story()])


def test_is_well_formed_with_unique_ids_and_live_anchors(page):
    outline = Outline(page)
    assert outline.open == []
    assert len(set(outline.ids)) == len(outline.ids)
    anchors = {attrs["href"][1:] for attrs in outline.all("a") if attrs["href"].startswith("#")}
    assert anchors <= set(outline.ids)
    assert {section.key for section in SECTIONS} | {"map", "gallery", "results", "configuration"} <= set(outline.ids)


def test_refers_to_nothing_outside(page):
    for tag, attrs in Outline(page).tags:
        for name in ("src", "href", "srcset", "action"):
            if attrs.get(name):
                assert attrs[name].startswith(("#", "data:")), (tag, attrs)
    assert "url(" not in page
    assert "@import" not in page


def test_same_story_same_bytes(page):
    assert render([digits_story()]) == page


def test_every_section_offers_its_numbers(page):
    links = {attrs["download"]: attrs["href"] for attrs in Outline(page).all("a") if "download" in attrs}
    wanted = {f"{section.key}.csv" for section in SECTIONS} | {"results.csv", "gallery.csv"}
    assert set(links) == wanted
    for href in links.values():
        rows = list(csv.reader(io.StringIO(b64decode(href.split(",", 1)[1]).decode())))
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}


def test_downloaded_results_are_the_runs_numbers(page):
    link = next(attrs["href"] for attrs in Outline(page).all("a") if attrs.get("download") == "results.csv")
    rows = list(csv.DictReader(io.StringIO(b64decode(link.split(",", 1)[1]).decode())))
    for row, cell in zip(rows, digits_story().cells, strict=False):
        assert float(row["test_accuracy"]) == cell.test_accuracy
        assert (row["label"], float(row["ratio"]), int(row["seed"])) == (cell.label, cell.ratio, cell.seed)


def test_hostile_words_stay_words():
    text = render([hostile_story()])
    outline = Outline(text)
    assert outline.open == []
    assert len(outline.all("script")) == 2
    assert all(set(attrs) <= {"src", "alt", "title"} for attrs in outline.all("img"))
    assert not [attrs for _, attrs in outline.tags if any(name.startswith("on") for name in attrs)]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "49 &amp;" not in text


def test_map_data_is_json_that_cannot_end_its_script():
    text = render([hostile_story()])
    data = re.search(r'<script type="application/json" id="map-0">(.*?)</script>', text, re.DOTALL)[1]
    assert "<" not in data
    assert json.loads(data)["classes"][0] == "<script>alert(1)</script>"


def test_a_bare_run_says_what_is_left_out():
    text = render([bare_story()])
    outline = Outline(text)
    assert "left-out" in outline.ids
    assert "accuracy" not in outline.ids
    assert "No model was tested in this run." in text
    assert "No embeddings were kept" in text


PARTS = (
    "clean_labels",
    "spotlight",
    "corrected",
    "confidence",
    "neighbourhood",
    "map_xy",
    "thumbnails",
    "full_training",
)


@pytest.mark.parametrize("part", PARTS)
def test_any_part_may_be_missing(part):
    assert Outline(render([replace(digits_story(), **{part: None})])).open == []


def test_an_empty_run_can_be_told():
    nothing = np.array([], dtype=int)
    empty = Story(title="", dataset="", n=0, class_names=(), labels=nothing, class_counts=(), cells=())
    assert Outline(render([empty])).open == []
    one = Cell(
        method="m", label="m", learner="l", ratio=1.0, seed=0, size=0, indices=nothing, test_accuracy=float("nan")
    )
    full = replace(
        empty, cells=(one,), spotlight=one, corrected=nothing, confidence=nothing * 1.0, neighbourhood=nothing * 1.0,
        clean_labels=nothing, map_xy=np.zeros((0, 2)),
    )  # fmt: skip
    assert Outline(render([full])).open == []


def test_several_runs_stand_side_by_side():
    story = digits_story()
    outline = Outline(render([story, replace(story, clean_labels=None), bare_story()]))
    assert outline.open == []
    assert [attrs["data-map"] for attrs in outline.all("div") if "data-map" in attrs] == ["map-0", "map-1"]
    names = {attrs["download"] for attrs in outline.all("a") if "download" in attrs}
    assert {"results-1.csv", "results-2.csv", "results-3.csv", "accuracy-1.csv"} <= names


def test_fifty_thousand_examples_stay_small(rng):
    n, classes = 50_000, 100
    labels = rng.integers(0, classes, n)
    picks = rng.permutation(n)[:10_000]
    cells = tuple(
        Cell(
            method="prune4rel", label=f"method {method}", learner="sop+", ratio=ratio, seed=seed, size=len(picks),
            indices=picks, class_counts=tuple(np.bincount(labels[picks], minlength=classes)), test_accuracy=0.8,
            gains=np.linspace(5, 0.1, len(picks)), objective=25_500.0,
            curve=tuple({"epoch": epoch, "test_accuracy": rng.random()} for epoch in range(300)),
        )
        for method in range(8) for ratio in (0.2, 0.4) for seed in range(3)
    )  # fmt: skip
    story = Story(
        title="large", dataset="cifar100n", n=n, class_names=tuple(map(str, range(classes))), labels=labels,
        class_counts=tuple(np.bincount(labels)), clean_labels=rng.integers(0, classes, n), cells=cells,
        spotlight=cells[0], corrected=rng.integers(0, classes, n), confidence=rng.random(n),
        neighbourhood=rng.random(n), map_xy=rng.normal(size=(n, 2)), ids=np.array([f"{i:015d}.png" for i in range(n)]),
        thumbnails=lambda indices: rng.integers(0, 256, (len(indices), 64, 64, 3), dtype=np.uint8),
    )  # fmt: skip
    assert len(render([story]).encode()) < 8_000_000


def test_writes_whole_files_and_replaces_only_when_told(tmp_path):
    path = tmp_path / "report.html"
    write_report([bare_story()], path)
    assert path.read_text(encoding="utf-8") == render([bare_story()])
    with pytest.raises(InputError, match="exists already"):
        write_report([bare_story()], path)
    write_report([bare_story(title="new")], path, force=True)
    assert "new" in path.read_text(encoding="utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_needs_a_run():
    with pytest.raises(InputError, match="at least one run"):
        render([])
