"""What a folder says of its labels."""

import numpy as np
from tests.review.folders import DIGITS, digits_folder

from prune4rel.labels import Labels
from prune4rel.review import ReviewFolder


def test_a_person_is_asked_about_what_is_likelier_though_nothing_was_changed_unseen(tmp_path):
    folder = digits_folder(tmp_path / "cleaned")
    judged = Labels.load(folder / "labels.parquet")
    shown = ReviewFolder(folder)
    assert shown.suggested[0].tolist() == judged.predicted_label.tolist()
    assert shown.suggested[1].tolist() == judged.confidence.tolist()
    Labels(
        given_label=judged.given_label,
        predicted_label=judged.given_label,
        label_score=judged.label_score,
        is_label_issue=judged.is_label_issue,
        confidence=judged.label_score,
        class_names=DIGITS,
    ).save(folder / "labels.parquet", force=True)
    shown = ReviewFolder(folder)
    there = np.take_along_axis(np.asarray(shown.probabilities), judged.given_label[:, None], axis=1)[:, 0]
    likelier = np.asarray(shown.probabilities).max(axis=1) > there + 1e-6
    assert likelier.sum() > 100
    assert (shown.suggested[0][likelier] == judged.predicted_label[likelier]).all()
    assert (shown.suggested[0][~likelier] == judged.given_label[~likelier]).all()
    np.testing.assert_allclose(shown.suggested[1][likelier], judged.confidence[likelier], rtol=1e-6)
