import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tests.report.stories import bare_story, digits_story, hostile_story

from prune4rel import InputError
from prune4rel.report import png, write_figures
from prune4rel.report.figures import SECTIONS
from prune4rel.report.palette import SERIES


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


def test_nothing_is_replaced_unless_told(tmp_path):
    story = bare_story(map_xy=np.eye(4)[:, :2])
    assert [path.name for path in write_figures([story, story], tmp_path)] == ["map-1.png", "map-2.png"]
    with pytest.raises(InputError, match="exists already"):
        write_figures([story, story], tmp_path)
    write_figures([story, story], tmp_path, force=True)


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")
def test_names_are_never_read_as_formulas(tmp_path, monkeypatch):
    monkeypatch.setattr(png, "DPI", 50)
    story = hostile_story()
    names = ("$\\frac{", "a_b^c", *story.class_names[2:])
    assert write_figures([replace(story, class_names=names)], tmp_path)


def test_needs_a_run_and_matplotlib(monkeypatch, tmp_path):
    with pytest.raises(InputError, match="at least one run"):
        write_figures([], tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"prune4rel\[report\]"):
        write_figures([bare_story()], tmp_path)
