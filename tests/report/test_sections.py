import pytest
from tests.report.stories import bare_story, digits_story, symbols

from prune4rel.report.charts import Figure, Missing
from prune4rel.report.page import SECTIONS
from prune4rel.report.story import label_symbols


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.key)
def test_every_figure_can_be_drawn_from_digits_and_is_missing_with_a_reason_from_nothing(section):
    made = section.make(digits_story(), symbols())
    assert isinstance(made, Figure)
    assert made.caption.endswith(".")
    assert made.table.rows
    assert all(len(row) == len(made.table.columns) for row in made.table.rows)
    missing = section.make(bare_story(), label_symbols([bare_story()]))
    assert isinstance(missing, Missing)
    assert missing.reason.endswith(".")
