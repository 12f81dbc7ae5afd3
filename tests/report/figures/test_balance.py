from dataclasses import replace

import numpy as np
from tests.report.stories import bare_story, column, digits_story, looks

from prune4rel.report.charts import Lines
from prune4rel.report.figures.balance import class_balance


def test_balance_holds_shares_before_and_after():
    story = digits_story()
    figure = class_balance(story, looks())
    np.testing.assert_allclose(column(figure, "share_of_training_set"), np.bincount(story.labels) / story.n)
    picked = np.bincount(story.labels[story.spotlight.indices], minlength=10)
    assert column(figure, "picked") == picked.tolist()


def test_many_classes_are_drawn_as_curves():
    n = 100
    cell = replace(bare_story().cells[0], indices=np.arange(n), size=n, class_counts=(1,) * n)
    names = tuple(map(str, range(n)))
    story = bare_story(
        n=n, labels=np.arange(n), class_names=names, class_counts=(1,) * n, cells=(cell,), spotlight=cell
    )
    chart = class_balance(story, {}).panels[0].chart
    assert isinstance(chart, Lines)
    assert len(chart.series[0].points) == n
