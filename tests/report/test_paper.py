import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tests.report.stories import bare_story, digits_story, hostile_story

from prune4rel import InputError
from prune4rel.report import paper, scene, write_figures
from prune4rel.report.page import SECTIONS
from prune4rel.report.words import SERIES, SHADES


def test_writes_every_figure_in_the_pages_colours(tmp_path):
    folder = tmp_path / "figures" / "here"
    written = write_figures([digits_story()], folder)
    assert {path.stem for path in written} == {section.key for section in SECTIONS} | {"map", "gallery"}
    assert sorted(folder.iterdir()) == sorted(written)
    for path in written:
        pixels = np.asarray(Image.open(path).convert("RGB"))
        assert min(pixels.shape[:2]) > 150, path
        assert pixels.std() > 5, path
    pixels = np.asarray(Image.open(folder / "accuracy.png").convert("RGB")).reshape(-1, 3)
    blue = [int(SERIES["light"][0][place : place + 2], 16) for place in (1, 3, 5)]
    assert (pixels == blue).all(axis=1).sum() > 100


BLUE = tuple(int(SERIES["light"][0][place : place + 2], 16) for place in (1, 3, 5))
CENTRE = np.array([[50.0, 40.0]])
AREAS = {
    "path": scene.Path([(42, 32), (58, 32), (58, 48), (42, 48)], "mark c0", closed=True),
    "line": scene.Path([(40, 40), (60, 40)], "line c0"),
    "disc": scene.Disc(50, 40, 8, "mark c0"),
    "box": scene.Box(42, 32, 16, 16, "bar c0", corner=1.0),
    "shade": scene.Box(42, 32, 16, 16, f"shade s{SHADES}"),
    "cloud": scene.Cloud(CENTRE, 8, "dot c0"),
    "picture": scene.Picture(42, 32, 16, np.full((4, 4, 3), BLUE, dtype=np.uint8)),
}


@pytest.mark.parametrize("mark", AREAS.values(), ids=AREAS)
def test_marks_are_painted_where_the_page_has_them(mark, tmp_path):
    paper.paint([("", scene.Scene([mark], 100, 80))], tmp_path / "mark.png")
    pixels = np.asarray(Image.open(tmp_path / "mark.png").convert("RGB"))
    down, across = np.nonzero((pixels == BLUE).all(axis=2))
    scale = pixels.shape[1] / (100 + 2 * paper.EDGE)
    assert across.mean() / scale - paper.EDGE == pytest.approx(50, abs=1)
    assert down.mean() / scale - paper.EDGE == pytest.approx(40, abs=1)
    assert np.ptp(across) / scale == pytest.approx(20 if mark is AREAS["line"] else 16, abs=3)


def test_later_marks_lie_on_earlier_ones(tmp_path):
    behind = [scene.Path([(0, 40), (100, 40)], "line c1"), scene.Text(50, 44, "HHH", "name c1", anchor="middle")]
    marks = [*behind, scene.Box(0, 0, 100, 80, "shade s20")]
    paper.paint([("", scene.Scene(marks, 100, 80))], tmp_path / "mark.png")
    pixels = np.asarray(Image.open(tmp_path / "mark.png").convert("RGB"))
    assert {tuple(pixel) for pixel in pixels[60:80, 40:180].reshape(-1, 3).tolist()} == {BLUE}


def test_words_stand_where_the_page_has_them(tmp_path):
    words = scene.Text(60, 40, "HHH", "name c0", anchor="end")
    paper.paint([("", scene.Scene([words], 100, 80))], tmp_path / "words.png")
    pixels = np.asarray(Image.open(tmp_path / "words.png").convert("RGB"))
    down, across = np.nonzero((pixels == BLUE).all(axis=2))
    scale = pixels.shape[1] / (100 + 2 * paper.EDGE)
    assert across.max() / scale - paper.EDGE == pytest.approx(60, abs=3)
    assert down.max() / scale - paper.EDGE == pytest.approx(40, abs=1.5)


def test_pdf_has_the_same_figures_and_the_same_bytes(tmp_path):
    story = bare_story(map_xy=np.eye(4)[:, :2])
    first = write_figures([story], tmp_path / "one", kind="pdf")
    second = write_figures([story], tmp_path / "two", kind="pdf")
    assert [path.name for path in first] == ["map.pdf"]
    assert first[0].read_bytes() == second[0].read_bytes()
    assert first[0].read_bytes().startswith(b"%PDF")


def test_nothing_is_replaced_unless_told(tmp_path):
    story = bare_story(map_xy=np.eye(4)[:, :2])
    assert [path.name for path in write_figures([story, story], tmp_path)] == ["map-1.png", "map-2.png"]
    with pytest.raises(InputError, match="exists already"):
        write_figures([story, story], tmp_path)
    write_figures([story, story], tmp_path, force=True)


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")
def test_names_are_never_read_as_formulas(tmp_path, monkeypatch):
    monkeypatch.setattr(paper, "DPI", 50)
    story = hostile_story()
    names = ("$\\frac{", "a_b^c", *story.class_names[2:])
    assert write_figures([replace(story, class_names=names)], tmp_path)


def test_needs_a_run_and_matplotlib(monkeypatch, tmp_path):
    with pytest.raises(InputError, match="at least one run"):
        write_figures([], tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"prune4rel\[report\]"):
        write_figures([bare_story()], tmp_path)
