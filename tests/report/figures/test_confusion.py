import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.report.stories import bare_story, column, digits_story, looks

from prune4rel.report.figures.confusion import confusion, pairs_of


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_pairs_are_counted_one_by_one(pairs):
    counts = np.zeros((4, 4), dtype=int)
    for one, other in pairs:
        counts[one, other] += 1
    given_labels, corrected = np.array(pairs, dtype=int).reshape(-1, 2).T
    np.testing.assert_array_equal(pairs_of(given_labels, corrected, 4), counts)


def test_confusion_lists_every_pair_and_colours_the_moves():
    story = digits_story()
    figure = confusion(story, looks())
    assert sum(column(figure, "examples")) == story.n
    squares = figure.panels[0].chart.squares
    assert all(
        (square.strength is None) == (row == place)
        for row, line in enumerate(squares)
        for place, square in enumerate(line)
    )
    assert max(square.strength or 0 for line in squares for square in line) == 1


def test_confusion_of_many_classes_draws_the_busiest():
    n = 60
    labels = np.arange(n)
    corrected = np.where(labels < 5, (labels + 1) % 5, labels)
    names = tuple(f"c{place}" for place in labels)
    story = bare_story(n=n, labels=labels, corrected=corrected, class_names=names, class_counts=(1,) * n, cells=())
    figure = confusion(story, {})
    assert set(names[:5]) <= set(figure.panels[0].chart.names)
    assert len(figure.panels[0].chart.names) == 24
    assert len(figure.table.rows) == n
