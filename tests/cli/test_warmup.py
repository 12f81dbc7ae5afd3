import numpy as np
import pytest
from typer.testing import CliRunner

from prune4rel import InputError, Signals
from prune4rel.cli import app, warmup  # noqa: F401 - the second adds its verb to the app

SHORT = [
    "--network",
    "mlp",
    "--network-option",
    "width=8",
    "--warmup-epochs",
    1,
    "--set",
    "batch=64",
    "--device",
    "cpu",
]


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """Sixty examples of two features in three classes."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    np.savez(tmp_path / "data.npz", labels=labels, features=rng.normal(size=(60, 2)) + labels[:, None])
    return tmp_path


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def run(folder, *arguments):
    command = ["warmup", "--dataset", "arrays", "--data", folder / "data.npz", *SHORT, *arguments]
    done = CliRunner().invoke(app, list(map(str, command)))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_signals_are_written_and_can_be_selected_from(folder):
    said = run(folder, "-o", folder / "signals", "--extra", "el2n", "--extra", "grad-norms", "--views", 2).output
    assert "signals of 60 examples (labels, probabilities, embeddings, losses, grad_norms, el2n" in said
    signals = Signals.load(folder / "signals")
    assert signals.probabilities.shape == (60, 3)
    assert signals.el2n.shape == signals.grad_norms.shape == (60,)
    assert names_in(folder) == ["data.npz", "signals"]


def test_quiet_says_nothing_and_files_are_fine(folder):
    assert run(folder, "-o", folder / "s.npz", "-q", "--view", "none").output == ""
    assert len(Signals.load(folder / "s.npz")) == 60


def test_what_exists_is_replaced_only_with_force(folder):
    (folder / "s.npz").write_text("mine")
    with pytest.raises(InputError, match="--force"):
        run(folder, "-o", folder / "s.npz")
    assert (folder / "s.npz").read_text() == "mine"
    run(folder, "-o", folder / "s.npz", "--force")
    assert len(Signals.load(folder / "s.npz")) == 60


def test_an_interrupted_warm_up_of_other_settings_is_named_and_can_be_dropped(folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Signals, "save", lambda *_a, **_k: (_ for _ in ()).throw(KeyError("killed")))
        with pytest.raises(KeyError, match="killed"):
            run(folder, "-o", folder / "s.npz")
    with pytest.raises(InputError, match=r"begun with training\.lr = 0\.02, not 0\.5.*--restart"):
        run(folder, "-o", folder / "s.npz", "--set", "lr=0.5")
    run(folder, "-o", folder / "s.npz", "--set", "lr=0.5", "--restart")
    assert names_in(folder) == ["data.npz", "s.npz"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--output FOLDER"),
        (["-o", "s.npz", "--extra", "forgeting"], "did you mean 'forgetting'"),
        (["-o", "s.npz", "--view", "storng"], "did you mean 'strong'"),
        (["-o", "s.npz", "--learner", "sopp"], "did you mean 'sop'"),
        (["-o", "s.npz", "--network", "mpl"], "did you mean 'mlp'"),
        (["-o", "s.npz", "--set", "lr"], "--set takes NAME=VALUE"),
        (["-o", "s.npz", "--set", "learning_rate=1"], "training has no option 'learning_rate'"),
        (["-o", "s.npz", "--set", "warmup_epochs=2"], "no option 'warmup_epochs'; commands.*flag.*--warmup-epochs"),
        (["-o", "s.npz", "--set", "seed=2"], "flag for it: --seed"),
        (["-o", "s.npz", "--set", "look=2"], "training has no option 'look'"),
        (["-o", "s.npz", "--set", "self=2"], "training has no option 'self'"),
        (["-o", "s.npz", "--option", "labels=y.npy"], "no option 'labels'; commands.*flag for it: --labels"),
        (["-o", "s.npz", "--option", "root=y.npy"], "data set 'arrays' has no option 'root'"),
        (["-o", "s.npz", "--set", "clip=five"], "clip must be above 0, not 'five'"),
        (["-o", "s.npz", "--learner-option", "rate=1"], "has no option 'rate'"),
        (["-o", "s.npz", "--learner-option", "rate_u=fast"], "rate_u must be"),
        (["-o", "s.npz", "--network-option", "width=-1"], "width"),
        (["-o", "s.npz", "--warmup-epochs", 0], "warmup_epochs: must be"),
        (["-o", "s.npz", "--seed", -1], "seed: must be"),
        (["-o", "no/s.npz"], "does not exist"),
    ],
)
def test_bad_arguments_write_nothing(folder, arguments, message, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=message):
        run(folder, *arguments)
    assert names_in(folder) == ["data.npz"]


def test_shards_hold_what_one_file_would(folder):
    run(folder, "-o", folder / "whole")
    done = run(folder, "-o", folder / "parts", "--shard-rows", 10)
    assert "written to" in done.output
    assert names_in(folder / "parts") == ["_signals.json", "part-00000.parquet"]
    whole, parts = Signals.load(folder / "whole"), Signals.load(folder / "parts")
    assert whole.class_names == parts.class_names
    np.testing.assert_array_equal(whole.embeddings, parts.embeddings)
    with pytest.raises(InputError, match="--shard-rows takes a number of at least 1, and an --output without suffix"):
        run(folder, "-o", folder / "parts.npz", "--shard-rows", 10)
