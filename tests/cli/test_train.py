import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from prune4rel import InputError, Selection, select
from prune4rel.cli import app, train  # noqa: F401 - the second adds its verb to the app
from prune4rel.training import load_model

SHORT = ["--network", "mlp", "--network-option", "width=8", "--epochs", 2, "--set", "batch=16", "--device", "cpu"]
SAME = ("metrics.jsonl", "model.safetensors", "corrected_labels.parquet")


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """Sixty examples of two features in three classes, some labels of which are wrong."""
    rng = np.random.default_rng(0)
    clean = np.arange(60) % 3
    given = np.where(rng.random(60) < 0.2, (clean + 1) % 3, clean)
    values = rng.normal(size=(60, 2)) + 3 * clean[:, None]
    np.savez(tmp_path / "data.npz", labels=given, clean_labels=clean, features=values)
    return tmp_path


def command(folder, *arguments):
    words = ["train", "--dataset", "arrays", "--data", folder / "data.npz", "--option", "test_share=0.2", *SHORT]
    return list(map(str, [*words, *arguments]))


def run(folder, *arguments):
    done = CliRunner().invoke(app, command(folder, *arguments), env={"COLUMNS": "120"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_a_model_and_corrected_labels_come_out(folder):
    said = run(folder, "-o", folder / "run")
    for words in (
        "trained on",
        "48 examples, 2 epochs",
        "test accuracy, last epoch",
        "(best epoch, chosen by the test split)",
        "training set relabelled right",
        "labels corrected",
        "written to",
    ):
        assert words in said
    assert all((folder / "run" / name).exists() for name in SAME)
    assert load_model(folder / "run").predict(np.zeros((1, 2))).shape == (1,)
    assert "finished before" in run(folder, "-o", folder / "run")


def test_trust_may_go_by_a_method(folder):
    run(folder, "--learner", "trust", "--trust-by", "prune4rel", "-o", folder / "run")
    asked = json.loads((folder / "run" / "training.json").read_text())
    assert asked["learner_options"]["trust_by"] == "prune4rel"
    for words, said in (
        (("--learner", "sop+", "--trust-by", "prune4rel"), "--trust-by is for --learner trust, not sop+"),
        (("--learner", "trust", "--trust-by", "prune5rel"), "unknown trust_by 'prune5rel'"),
    ):
        with pytest.raises(InputError, match=re.escape(said)):
            run(folder, *words, "-o", folder / "other")


def test_it_trains_on_a_saved_selection_or_indices(folder):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 48)
    chosen = select("uniform", labels=labels, size=20, seed=0)
    chosen.save(folder / "subset.parquet")
    np.save(folder / "subset.npy", chosen.indices)
    for suffix in ("parquet", "npy"):
        said = run(folder, "-o", folder / suffix, "--subset", folder / f"subset.{suffix}")
        assert "20 examples, 2 epochs" in said
    assert (folder / "npy" / SAME[1]).read_bytes() == (folder / "parquet" / SAME[1]).read_bytes()
    assert Selection.load(folder / "subset.parquet").n == 48


def test_notes_are_shown_and_quiet_is_quiet(folder):
    np.save(folder / "subset.npy", np.arange(9))
    said = run(folder, "-o", folder / "run", "--subset", folder / "subset.npy")
    assert "note: a batch of 16 is more than the 9 examples" in said
    assert run(folder, "-o", folder / "quiet", "-q") == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--output FOLDER"),
        (["-o", "run", "--learner", "sopp"], "unknown learner 'sopp'; did you mean 'sop'"),
        (["-o", "run", "--network", "mpl"], "unknown network 'mpl'; did you mean 'mlp'"),
        (["-o", "run", "--epochs", 0], "epochs: must be a whole number of at least 1"),
        (["-o", "run", "--set", "batch=none"], "batch must be a whole number"),
        (["-o", "run", "--set", "scheme=cosin"], "did you mean 'cosine'"),
        (["-o", "run", "--set", "milestones=3,6"], "milestones must be"),
        (["-o", "run", "--subset", "none.npy"], "no such file"),
        (["-o", "run", "--subset", "other.parquet"], "was chosen from 7 examples, but the data set has 48"),
        (["-o", "run", "--subset", "floats.npy"], "expected .m,. numbers of examples"),
        (["-o", "run", "--subset", "far.npy"], "holds 99, but the split has examples 0 to 47"),
        (["-o", "run", "--set", "lr=1e30", "--set", "weight_decay=0.1"], "NaN or infinite in step"),
        (["-o", "run", "--track", "tensorbord"], "did you mean 'tensorboard'"),
        (["-o", "run", "--evaluate-every", 0], "evaluate_every must be"),
        (["-o", "run", "--device", "gpu"], "device must be"),
        (["-o", "no/run"], "does not exist"),
        (["-o", "data.npz"], "is a file"),
    ],
)
def test_bad_arguments_are_named(folder, arguments, message, monkeypatch):
    monkeypatch.chdir(folder)
    select("uniform", labels=np.zeros(7, dtype=int), size=3, seed=0).save("other.parquet")
    np.save("floats.npy", np.ones(3))
    np.save("far.npy", np.array([99]))
    with pytest.raises(InputError, match=message):
        run(folder, *arguments)


@pytest.mark.parametrize("wrong", [["--network-option", "width=-1"], ["--learner-option", "rate_u=fast"]])
def test_what_never_began_leaves_nothing_behind(folder, wrong):
    with pytest.raises(InputError):
        run(folder, "-o", folder / "run", *wrong)
    assert [path.name for path in folder.iterdir()] == ["data.npz"]
    assert "test accuracy" in run(folder, "-o", folder / "run")


def process(folder, *arguments):
    words = [sys.executable, "-m", "prune4rel", *command(folder, *arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_command_ends_in_one_line_and_exit_code_2(folder):
    ended = process(folder, "-o", folder / "run", "--set", "lr=1e30", "--set", "weight_decay=0.1")
    _, said = ended.communicate()
    assert ended.returncode == 2
    assert "Traceback" not in said
    assert said.strip().splitlines()[-1].startswith("error: the loss became NaN or infinite in step")


def killed_at_random(folder, rng):
    """Start a training, wait until it has saved something, kill it a moment later; whether it was still running."""
    running = process(folder, "-o", folder / "torn", "--save-every", 0, "--epochs", 40, "-q")
    states, before = folder / "torn" / "checkpoints", time.monotonic()
    known = set(states.iterdir()) if states.exists() else set()
    while running.poll() is None and time.monotonic() - before < 60:
        if states.exists() and set(states.iterdir()) - known:
            time.sleep(float(rng.uniform(0, 0.15)))
            break
        time.sleep(0.002)
    alive = running.poll() is None
    running.send_signal(signal.SIGKILL)
    running.communicate()
    return alive


def test_killed_at_any_moment_and_run_again_it_leaves_the_same_bytes(folder):
    whole = process(folder, "-o", folder / "whole", "--epochs", 40, "-q")
    rng = np.random.default_rng(0)
    kills = sum(killed_at_random(folder, rng) for _ in range(2))
    assert kills >= 1
    last = process(folder, "-o", folder / "torn", "--save-every", 0, "--epochs", 40, "-q")
    for each in (whole, last):
        _, said = each.communicate()
        assert each.returncode == 0, said
    for name in SAME:
        assert (folder / "torn" / name).read_bytes() == (folder / "whole" / name).read_bytes(), name
    names = [path.name for path in (folder / "torn").iterdir()]
    assert not [name for name in names if name.startswith(".") or name == "checkpoints"]


def test_who_is_trained_unless_told(folder):
    np.save(folder / "some.npy", np.arange(20))
    for name, more in (("trust", ()), ("sop+", ("--subset", folder / "some.npy"))):
        run(folder, *more, "-o", folder / name)
        assert json.loads((folder / name / "training.json").read_text())["learner"] == name
