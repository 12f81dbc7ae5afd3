"""Labels judged by a training of a network on them."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score
from tests.cli.here import call
from tests.training.small import digits, write_images

import prune4rel as p4r
from prune4rel.cleaning.by_training import clean_by_training, remember
from prune4rel.training.loop import Training


@pytest.fixture(scope="module")
def noisy():
    return p4r.load_dataset("digits", noise=0.3, noise_kind="symmetric")


@pytest.fixture(scope="module")
def found(noisy):
    return clean_by_training(noisy, epochs=8, device="cpu")


def test_wrong_labels_are_found(noisy, found):
    wrong = noisy.train.labels != noisy.train.clean_labels
    assert average_precision_score(wrong, -found.label_score) > 0.97
    assert (found.corrected_label == noisy.train.clean_labels).mean() > 0.95
    assert found.noise_rate == pytest.approx(0.3, abs=0.05)
    assert set(found.labels.source) == {"training"}
    assert not any("fitted" in note for note in found.notes)
    assert found.seconds["training"] > 0


def test_signals_are_selected_from(noisy, found):
    assert found.signals.embeddings.shape[0] == len(noisy.train)
    wrong = noisy.train.labels != noisy.train.clean_labels
    assert wrong[p4r.select("prune4rel", found.signals, ratio=0.2, balanced=True).indices].mean() < 0.1


def test_an_interrupted_training_goes_on(tmp_path, monkeypatch):
    whole = remember(digits(), epochs=3, device="cpu")
    real = Training.run_epoch

    def fail(self, after_step):
        if self.epoch == 2:
            raise KeyboardInterrupt
        return real(self, after_step)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "run_epoch", fail)
        patch.setattr("prune4rel.cleaning.by_training.SAVE_EVERY", 0.0)
        with pytest.raises(KeyboardInterrupt):
            remember(digits(), folder=tmp_path / "states", epochs=3, device="cpu")
    counted = []
    monkeypatch.setattr(Training, "run_epoch", lambda self, step: counted.append(self.epoch) or real(self, step))
    again = remember(digits(), folder=tmp_path / "states", epochs=3, device="cpu")
    assert counted == [2]
    np.testing.assert_array_equal(again.probabilities, whole.probabilities)
    np.testing.assert_array_equal(again.embeddings, whole.embeddings)


def test_what_cannot_be_read_is_judged_by_nobody(tmp_path):
    data = write_images(tmp_path, n=24, broken=(0, 5))
    found = clean_by_training(data, epochs=4, device="cpu", skip_broken=True, settings={"network": "mlp"})
    assert np.flatnonzero(found.labels.source == "nobody").tolist() == [0, 5]
    assert not found.is_label_issue[[0, 5]].any()
    assert np.flatnonzero(~found.signals.known).tolist() == [0, 5]


def test_decisions_are_learnt_and_count(tmp_path, noisy):
    wrong = np.flatnonzero(noisy.train.labels != noisy.train.clean_labels)[:5]
    lines = [f"{row},{noisy.class_names[noisy.train.clean_labels[row]]}" for row in wrong]
    (tmp_path / "decisions.csv").write_text("index,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    found = clean_by_training(noisy, epochs=2, device="cpu", decisions=tmp_path / "decisions.csv")
    assert set(found.labels.source[wrong]) == {"person"}
    assert found.corrected_label[wrong].tolist() == noisy.train.clean_labels[wrong].tolist()


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda *words: call(monkeypatch, capsys, "clean", *words)


def test_the_command(command, tmp_path):
    asked = ("--dataset", "digits", "--option", "noise=0.3", "--by", "training", "--epochs", "2")
    code, _, err = command(*asked, "--dry-run")
    assert (code, "1,348 examples, 2 epochs, 42 steps: about" in err + _) == (0, True)
    code, out, err = command(*asked, "-o", "cleaned")
    assert code == 0, err
    assert "prune4rel review cleaned" in out
    assert [path.name for path in tmp_path.iterdir()] == ["cleaned"]
    assert set(p4r.Labels.load("cleaned/labels.parquet").source) == {"training"}
    assert p4r.Signals.load("cleaned/signals").embeddings is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--by", "trainig"), "--by: unknown 'trainig'; did you mean 'training'?"),
        (("--epochs", "3"), "--epochs is for --by training"),
        (("--by", "training", "--encoder", "colours"), "not for --by training"),
        (("--by", "training", "--labels", "y.npy"), "and nothing else"),
    ],
)
def test_what_does_not_go_together_is_refused(command, tmp_path, words, said):
    np.save("y.npy", np.zeros(3, dtype=np.int64))
    code, _, err = command("--dataset", "digits", *words, "-o", "cleaned")
    assert (code, said in " ".join(err.split())) == (2, True), err
    assert not (tmp_path / "cleaned").exists()
