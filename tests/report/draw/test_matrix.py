from tests.report.draw.samples import CHARTS

from prune4rel.report.draw import draw


def test_strong_fields_are_dark_and_the_diagonal_has_no_colour():
    drawn = draw(CHARTS["matrix"], 480, "")
    assert drawn.count('class="same"') == 2
    assert 'class="shade s20"' in drawn
    assert 'class="shade s4"' in drawn
    assert ">10</text>" in drawn
