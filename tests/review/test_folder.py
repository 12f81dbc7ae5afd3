"""What a folder says of its labels."""

import numpy as np
from tests.review.folders import DIGITS, digits_folder, pictures_folder, write_labels

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


def test_files_outside_of_the_folder_of_their_table_are_said(tmp_path, rng):
    _, files = pictures_folder(tmp_path, rng)
    (tmp_path / "sent").mkdir()
    for place, outside in (("sent/t.csv", True), ("t.csv", False)):
        lines = [f'"{file}",{number % 2}' for number, file in enumerate(files)]
        (tmp_path / place).write_text("\n".join(["path,label", *lines]))
        cleaned = write_labels(tmp_path / f"judged-{outside}", "table", tmp_path / place, rng)
        told = ReviewFolder(cleaned).outside
        assert ("lists files outside of its folder" in told and str(files[0]) in told) == outside
