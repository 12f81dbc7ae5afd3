import numpy as np
import pytest
from typer.testing import CliRunner

from prune4rel import InputError
from prune4rel.cli import app, noise  # noqa: F401 - the second adds its verb to the app
from prune4rel.data import load_dataset
from prune4rel.noise import KINDS, symmetric

CLEAN = np.repeat(np.arange(10), 20)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "y.npy", CLEAN)
    np.save(tmp_path / "names.npy", np.array(["cat", "dog"])[CLEAN % 2])
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(200, 5)))
    return tmp_path


def run(folder, *arguments, labels="y.npy", output="noisy.npy"):
    command = ["noise", "--labels", folder / labels, "-o", folder / output, *arguments]
    done = CliRunner().invoke(app, list(map(str, command)))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_it_writes_what_the_library_makes(folder):
    said = run(folder, "--kind", "symmetric", "--rate", 0.4, "--seed", 3)
    assert "80 of 200 labels are wrong now (40.00%)" in said
    assert (np.load(folder / "noisy.npy") == symmetric(CLEAN, 0.4, seed=3)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(folder, kind):
    features = ["--features", folder / "x.npy"] if kind == "instance" else []
    classes = ["--classes", 100] if kind == "asymmetric-cifar100" else []
    run(folder, "--kind", kind, "--rate", 0.5, *features, *classes)
    assert (np.load(folder / "noisy.npy") != CLEAN).any()


def test_names_stay_names_and_both_are_kept(folder):
    run(folder, "--rate", 0.5, "--overall", labels="names.npy", output="noisy.npz")
    with np.load(folder / "noisy.npz") as written:
        assert (written["clean_labels"] == np.load(folder / "names.npy")).all()
        assert set(written["labels"]) == {"cat", "dog"}
        assert (written["labels"] != written["clean_labels"]).sum() == 100


def test_the_result_can_be_used_as_labels_of_a_data_set(folder):
    np.savez(folder / "data.npz", features=np.load(folder / "x.npy"), labels=CLEAN)
    run(folder, "--rate", 0.25, output="noisy.parquet")
    data = load_dataset("arrays", folder / "data.npz", labels=folder / "noisy.parquet")
    assert data.train.noise_rate == 0.25


def test_what_exists_is_replaced_only_with_force(folder):
    (folder / "noisy.npy").write_text("mine")
    with pytest.raises(InputError, match="--force"):
        run(folder, "--rate", 0.5)
    assert (folder / "noisy.npy").read_text() == "mine"
    run(folder, "--rate", 0.5, "--force")
    assert np.load(folder / "noisy.npy").shape == (200,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", 2], "between 0 and 1"),
        (["--rate", 0.5, "--kind", "symetric"], "did you mean 'symmetric'"),
        (["--rate", 0.5, "--kind", "instance"], "needs features"),
        (["--rate", 0.5, "--classes", 5], "has 10 classes"),
        (["--rate", 0.5, "--seed", -1], "seed must be"),
    ],
)
def test_bad_arguments_write_nothing(folder, arguments, message):
    with pytest.raises(InputError, match=message):
        run(folder, *arguments)
    assert not (folder / "noisy.npy").exists()


def test_labels_are_not_replaced_by_their_noise(folder):
    np.save(folder / "noisy.npy", np.arange(9) % 3)
    with pytest.raises(InputError, match="is read here"):
        run(folder, "--rate", 0.5, "--force", labels="noisy.npy")


def test_bad_files_are_named(folder):
    np.save(folder / "bad.npy", np.full((200, 5), np.nan))
    with pytest.raises(InputError, match=r"bad.npy: features: row \d+ holds NaN"):
        run(folder, "--rate", 0.5, "--kind", "instance", "--features", folder / "bad.npy")
    with pytest.raises(InputError, match="only 2 classes have a name"):
        run(folder, "--rate", 0.5, "--classes", 3, labels="names.npy")
    np.save(folder / "float.npy", np.ones(3))
    with pytest.raises(InputError, match=r"float.npy: labels: have shape .* expected"):
        run(folder, "--rate", 0.5, labels="float.npy")
    with pytest.raises(InputError, match="no such file"):
        run(folder, "--rate", 0.5, labels="none.npy")
    with pytest.raises(InputError, match="unknown format"):
        run(folder, "--rate", 0.5, output="noisy.txt")
