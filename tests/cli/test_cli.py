"""The command line as its user meets it: real processes, real files."""

import json
import os
import platform
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
import typer
from tests.cli.here import call

from prune4rel import Selection, cli


def run(*arguments, cwd, **options):
    command = [sys.executable, "-m", "prune4rel", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("arrays")
    rng = np.random.default_rng(0)
    np.save(path / "E.npy", rng.normal(size=(60, 8)).astype(np.float32))
    np.save(path / "P.npy", rng.dirichlet(np.ones(3), size=60).astype(np.float32))
    np.save(path / "y.npy", np.arange(60) % 3)
    return path


@pytest.fixture
def told(folder, monkeypatch, capsys):
    """Return the exit code, output and complaints of a command: one of the many that need no process of their own."""
    monkeypatch.chdir(folder)
    return partial(call, monkeypatch, capsys)


ARRAYS = ("--embeddings", "E.npy", "--probabilities", "P.npy", "--labels", "y.npy")


def test_select_writes_the_subset_the_library_gives(folder, tmp_path):
    out = tmp_path / "subset.parquet"
    done = run("select", *ARRAYS, "--ratio", 0.2, "--balanced", "-o", out, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "12 of 60" in done.stdout
    chosen = Selection.load(out)
    assert np.bincount(chosen.labels).tolist() == [4, 4, 4]
    assert json.loads(out.with_suffix(".json").read_text())["options"]["preset"] == "label-aware"
    import prune4rel as p4r

    arrays = {name: np.load(folder / file) for name, file in (("embeddings", "E.npy"), ("probabilities", "P.npy"))}
    direct = p4r.select(**arrays, labels=np.load(folder / "y.npy"), ratio=0.2, balanced=True)
    assert direct.indices.tolist() == chosen.indices.tolist()


def test_npy_output_and_quiet(folder, tmp_path):
    done = run("select", *ARRAYS, "--size", 5, "-o", tmp_path / "i.npy", "--quiet", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert np.load(tmp_path / "i.npy").shape == (5,)


def test_dry_run_estimates_and_writes_nothing(folder, told):
    before = sorted(folder.iterdir())
    code, out, _ = told("select", *ARRAYS, "--ratio", 0.2, "--dry-run")
    assert code == 0
    assert "neighbours each" in out
    assert "fits the memory" in out
    assert sorted(folder.iterdir()) == before


def test_existing_output_is_only_replaced_with_force(told, tmp_path):
    out = tmp_path / "subset.parquet"
    out.write_text("mine")
    code, _, err = told("select", *ARRAYS, "--size", 5, "-o", out)
    assert code == 2
    assert "--force" in err
    assert out.read_text() == "mine"
    assert told("select", *ARRAYS, "--size", 5, "-o", out, "--force")[0] == 0
    assert len(Selection.load(out)) == 5


def test_what_is_read_is_never_written(folder, told):
    before = (folder / "E.npy").read_bytes()
    code, _, err = told("select", *ARRAYS, "--size", 5, "-o", "E.npy", "--force")
    assert code == 2
    assert "E.npy: is read here" in err
    assert (folder / "E.npy").read_bytes() == before


def test_going_on_from_a_saved_selection(told, tmp_path):
    assert told("select", *ARRAYS, "--size", 5, "-o", tmp_path / "a.parquet")[0] == 0
    both = ("--size", 10, "-o")
    told("select", *ARRAYS, *both, tmp_path / "b.parquet", "--initial", tmp_path / "a.parquet")
    told("select", *ARRAYS, *both, tmp_path / "c.parquet")
    grown, whole = (Selection.load(tmp_path / name).indices.tolist() for name in ("b.parquet", "c.parquet"))
    assert grown == whole


def nan_in_row_seven(path):
    array = np.ones((60, 4), dtype=np.float32)
    array[7, 2] = np.nan
    np.save(path, array)


def logits(path):
    np.save(path, np.random.default_rng(0).normal(size=(60, 3)) * 5)


def truncated(path):
    np.save(path, np.ones((60, 8)))
    path.write_bytes(path.read_bytes()[:-100])


def pickled(path):
    np.save(path, np.array([{"a": 1}] * 60, dtype=object), allow_pickle=True)


def zero_rows(path):
    array = np.ones((60, 4), dtype=np.float32)
    array[[3, 9]] = 0
    np.save(path, array)


BAD_FILES = [
    ("--embeddings", nan_in_row_seven, ["bad.npy", "embeddings", "row 7"]),
    ("--probabilities", logits, ["bad.npy", "probabilities", "row 0", "softmax"]),
    ("--embeddings", truncated, ["bad.npy", "truncated"]),
    ("--labels", pickled, ["bad.npy", "refused"]),
    ("--embeddings", zero_rows, ["bad.npy", "row 3", "--allow-zero"]),
    ("--embeddings", lambda path: np.save(path, np.ones((59, 4))), ["bad.npy", "59 rows", "60"]),
    ("--labels", lambda path: np.save(path, np.full(60, 0.5)), ["bad.npy", "floats", "int64"]),
    ("--labels", lambda path: np.save(path, np.full(60, 9)), ["bad.npy", "row 0 is 9", "0 to 2"]),
    ("--embeddings", lambda path: path.write_bytes(b""), ["bad.npy", "empty"]),
]


@pytest.mark.parametrize(("flag", "spoil", "words"), BAD_FILES)
def test_a_bad_file_is_named_with_the_row_and_the_remedy(told, tmp_path, flag, spoil, words):
    bad = tmp_path / "bad.npy"
    spoil(bad)
    arguments = list(ARRAYS)
    arguments[arguments.index(flag) + 1] = str(bad)
    code, _, err = told("select", *arguments, "--size", 5, "-o", tmp_path / "out.parquet")
    assert code == 2
    assert "Traceback" not in err
    assert err.count("error:") == 1
    for word in words:
        assert word in err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.npy"]


BAD_ARGUMENTS = [
    (["--ratio", "1.5"], "ratio"),
    (["--ratio", "0.2", "--size", "3"], "only one"),
    ([], "--ratio or --size"),
    (["--size", "61"], "61"),
    (["--size", "5", "--tau", "2"], "tau"),
    (["--size", "5", "--tau", "high"], "--tau"),
    (["--size", "5", "--preset", "label-awre"], "did you mean 'label-aware'"),
    (["--size", "5", "--method", "prune4real"], "did you mean 'prune4rel'"),
    (["--size", "5", "--device", "tpu"], "device"),
    (["--size", "5", "--memory", "lots"], "memory"),
    (["--size", "5", "--memory", "1KB"], "max_degree"),
    (["--size", "5", "--signal", "losses"], "NAME=VALUE"),
    (["--size", "5", "--no-such-flag"], "no-such-flag"),
    (["--size", "5", "--option", "seed=3"], "method 'prune4rel' has no option 'seed'; commands that take it"),
    (["--size", "5", "--option", "method=uniform"], "flag for it: --method"),
    (["--size", "5", "--option", "signals=3"], "flag for it: --signals"),
    (["--size", "5", "--option", "device=cpu", "--dry-run"], "flag for it: --device"),
    (["--size", "5", "--option", "progress=1"], "has no option 'progress'"),
    (["--size", "5", "--method", "uniform", "--option", "power=1"], "has no option 'power'; there are none"),
    (["--size", "5", "--class-names", "E.npy"], "E.npy: not a readable text file"),
]


@pytest.mark.parametrize(("arguments", "word"), BAD_ARGUMENTS)
def test_bad_arguments_end_in_exit_code_two(told, tmp_path, arguments, word):
    code, _, err = told("select", *ARRAYS, *arguments, "-o", tmp_path / "out.parquet")
    assert code == 2
    assert "Traceback" not in err
    assert word in err
    assert not list(tmp_path.iterdir())


def test_missing_output_folder_is_refused_before_the_work(folder, tmp_path):
    done = run("select", *ARRAYS, "--size", 5, "-o", tmp_path / "no" / "out.parquet", cwd=folder)
    assert done.returncode == 2
    assert "does not exist" in done.stderr


def test_full_disk_leaves_nothing_behind(folder, tmp_path):
    script = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)); import signal;"
    script += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); from prune4rel.cli import main; main()"
    command = [sys.executable, "-c", script, "select", *ARRAYS, "--size", "50", "-o", str(tmp_path / "out.parquet")]
    run("select", *ARRAYS, "--size", 50, "--dry-run", cwd=folder)  # compiled code is cached before files may not grow
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stderr
    assert "writing failed" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="signals work differently on Windows")
def test_interrupting_leaves_nothing_behind(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "E.npy", rng.normal(size=(30_000, 512)).astype(np.float32))
    np.save(tmp_path / "P.npy", np.full((30_000, 2), 0.5, dtype=np.float32))
    np.save(tmp_path / "y.npy", np.zeros(30_000, dtype=np.int64))
    command = [
        sys.executable,
        "-m",
        "prune4rel",
        "select",
        *ARRAYS,
        "--ratio",
        "0.5",
        "--tau",
        "0.5",
        "-o",
        "s.parquet",
    ]
    process = subprocess.Popen(
        [*command, "--screening", "none", "--gain", "paper", "--memory", "1MB"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - ignored where CI runs in the background
    )
    said = next(line for line in process.stderr if "neighbours each" in line)  # compiled, estimated, at work now
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted" in errors
    assert "Traceback" not in said + errors
    assert sorted(file.name for file in tmp_path.iterdir()) == ["E.npy", "P.npy", "y.npy"]


def test_help_needs_no_heavy_import(tmp_path):
    script = (
        "import sys; sys.argv = ['prune4rel', 'select', '--help']\ntry:\n    from prune4rel.cli import main; main()\n"
    )
    script += "except SystemExit as end: code = end.code\n"
    script += "print(sorted({'numpy', 'torch', 'numba', 'pyarrow', 'sklearn'} & set(sys.modules)), code)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[] 0")


def test_methods_lists_and_explains(told):
    assert "small-loss" in told("methods")[1]
    shown = told("methods", "prune4rel")[1]
    assert "NeurIPS 2023" in shown
    assert "preset" in shown
    assert told("methods", "nope")[0] == 2


def test_doctor_names_versions_speed_and_extras(tmp_path):
    shown = run("doctor", cwd=tmp_path)
    assert shown.returncode == 0
    for word in ("numpy", "threads", "GFLOP/s", "extra report"):
        assert word in shown.stdout


def test_a_report_of_a_bug_names_nobody(tmp_path):
    home = tmp_path / "juno-secret"
    home.mkdir()
    person = {"HOME": str(home), "USER": "juno", "LOGNAME": "juno", "PRUNE4REL_THREADS": "2", "PRUNE4REL_X": str(home)}
    others = {name: value for name, value in os.environ.items() if not name.startswith("PRUNE4REL_")}
    shown = run("doctor", "--json", cwd=home, env=others | person)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found["versions"]["prune4rel"]
    assert found["threads"] == 2
    assert found["settings"] == ["PRUNE4REL_THREADS", "PRUNE4REL_X"]
    assert found["extras"]["train"]["torch"] == found["versions"]["torch"]
    for name in ("juno", platform.node(), sys.prefix, os.sep + "home"):
        assert name not in shown.stdout


def test_version(tmp_path):
    from prune4rel import __version__

    assert run("--version", cwd=tmp_path).stdout.strip() == __version__


def test_what_a_library_passes_over_still_ends_the_command(monkeypatch):
    """Importing some libraries swallows whatever is raised; then the next look ends it."""

    def deaf(*_):
        with suppress(BaseException):
            signal.raise_signal(signal.SIGTERM)

    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    monkeypatch.setattr(cli, "load_verbs", deaf)
    monkeypatch.setattr(sys, "argv", ["prune4rel", "doctor"])
    try:
        with pytest.raises(SystemExit) as end:
            cli.main()
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGHUP, signal.SIGINT), before, strict=True):
            signal.signal(number, handler)
    assert end.value.code == 128 + signal.SIGTERM
    assert cli.was_told()


def test_the_first_page_says_of_every_verb_what_its_own_help_says():
    cli.load_verbs()
    verbs = typer.main.get_command(cli.app).commands
    assert {name: each.help.strip().split("\n\n")[0].replace("\n", " ") for name, each in verbs.items()} == cli.VERBS


def test_a_verb_imports_no_other(tmp_path):
    script = "import sys; from prune4rel import cli; sys.argv = ['prune4rel', 'noise', '--help']\n"
    script += "try:\n    cli.main()\nexcept SystemExit:\n    "
    script += "print({verb for verb in cli.VERBS if f'prune4rel.cli.{verb}' in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("{'noise'}")


@pytest.mark.skipif(os.name == "nt", reason="signals work differently on Windows")
@pytest.mark.parametrize(("number", "told"), [("SIGINT", "interrupted"), ("SIGTERM", "ended by SIGTERM")])
def test_told_to_end_before_anything_is_imported(number, told):
    script = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\nclass Told:\n"
    script += f"    def find_spec(self, *_): signal.raise_signal(signal.{number})\n"
    script += "import prune4rel.__main__ as start; sys.meta_path.insert(0, Told()); start.main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 128 + signal.Signals[number]
    assert done.stderr == f"error: {told}; nothing half-written was left behind\n"


def test_shells_complete_options_of_a_verb(tmp_path):
    words = {"_PRUNE4REL_COMPLETE": "complete_bash", "COMP_WORDS": "prune4rel select --bal", "COMP_CWORD": "2"}
    script = "import sys; sys.argv = ['prune4rel']; from prune4rel.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=os.environ | words,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["--balanced"]


@pytest.mark.skipif(os.name == "nt", reason="descriptors work differently on Windows")
def test_what_is_printed_to_is_closed_and_the_folder_has_gone(tmp_path):
    (tmp_path / "gone").mkdir()
    line = f"cd gone && rmdir ../gone && {sys.executable} -m prune4rel noise --nope 2>&-"
    done = subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "")
