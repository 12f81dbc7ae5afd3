from tests.report.stories import column, digits_story, looks

from prune4rel.report.figures.noise import subset_noise


def test_noise_is_counted_from_the_picks():
    story = digits_story()
    wrong = story.labels != story.clean_labels
    assert column(subset_noise(story, looks()), "subset_noise") == [wrong[cell.indices].mean() for cell in story.cells]
