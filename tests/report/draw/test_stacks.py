import pytest
from tests.report.draw.samples import CHARTS, parsed


def test_bars_are_as_long_as_their_values():
    bars = list(parsed(CHARTS["stacks"], 760).iter("rect"))
    wide = [float(bar.get("width")) for bar in bars]
    assert wide[1] / wide[0] == pytest.approx(2, rel=0.01)
    assert float(bars[1].get("x")) == pytest.approx(float(bars[0].get("x")) + wide[0], abs=0.02)
    assert len(bars) == 3
