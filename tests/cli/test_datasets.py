import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from prune4rel import InputError
from prune4rel.cli import app, datasets  # noqa: F401 - the second adds its verb to the app

START = "from prune4rel.cli import datasets, main; main()"


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["datasets", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def arrays(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 6, 6, 3), dtype=np.uint8)
    clean = np.arange(60) % 40
    np.savez(tmp_path / "data.npz", images=images, labels=(clean + (np.arange(60) < 6)) % 40, clean_labels=clean)
    return tmp_path / "data.npz"


def test_the_list_names_every_data_set():
    shown = run()
    for name in ("digits", "cifar10n", "cifar100n", "webvision", "clothing1m", "imagenet-n", "folder", "arrays", "hf"):
        assert name in shown


def test_one_in_full_says_what_it_looks_for():
    shown = run("cifar10n")
    for word in ("cifar-10-batches-py", "CIFAR-10_human.pt", "40.21", "noise='worst'", "ICLR 2022", "CC BY-NC"):
        assert word in shown


def test_the_embedded_set_is_checked_at_once():
    shown = run("digits", "--option", "noise=0.2")
    for word in ("1,348 images of 8 x 8", "20.0", "449", "wrong"):
        assert word in shown


def test_a_folder_is_checked_and_many_classes_are_summed_up(arrays, tmp_path):
    shown = run("arrays", "--data", arrays, "--option", "test-share=0.5", "--option", "seed=1")
    for word in ("40", "30 images of 6 x 6", "wrong labels", "(20 more)"):
        assert word in shown
    np.save(tmp_path / "y.npy", np.zeros(60, dtype=int))
    assert "96.67%" in run("arrays", "--data", arrays, "--labels", tmp_path / "y.npy")


def test_features_need_no_images(tmp_path):
    np.savez(tmp_path / "x.npz", features=np.eye(4), labels=[0, 1, 1, 0])
    shown = run("arrays", "--data", tmp_path / "x.npz")
    assert "vectors of 4 features" in shown
    assert "not known" in shown
    assert "none" in shown


def test_the_picture(arrays, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    out = tmp_path / "sheet.png"
    assert "samples written to" in run("arrays", "--data", arrays, "--picture", out)
    with Image.open(out) as sheet:
        assert sheet.format == "PNG"
    with pytest.raises(InputError, match="--force"):
        run("arrays", "--data", arrays, "--picture", out)
    run("arrays", "--data", arrays, "--picture", out, "--force")


def test_the_picture_without_pillow(arrays, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"pip install 'prune4rel\[vision\]'"):
        run("arrays", "--data", arrays, "--picture", tmp_path / "sheet.png")
    assert not (tmp_path / "sheet.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cifar10"], "did you mean 'cifar10n'"),
        (["--data", "."], "which data set"),
        (["cifar10n", "--data", "nowhere"], "no such file or folder"),
        (["digits", "--option", "noise"], "NAME=VALUE"),
        (["digits", "--option", "noize=1"], "did you mean 'noise'"),
        (["digits", "--option", "noise=lots"], "takes a number"),
        (["digits", "--option", "labels=y.npy"], "flag for it: --labels"),
        (["digits", "--option", "name=y"], "has no option 'name'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        run(*arguments)


def test_errors_are_one_line_and_exit_code_two(tmp_path):
    command = [sys.executable, "-c", START, "datasets", "cifar10n", "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "cifar-10-batches-py: not found" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_needs_no_heavy_import():
    script = "import sys; from prune4rel.cli import app, datasets, noise\n"
    script += "for verb in ('datasets', 'noise'):\n"
    script += "    try: app([verb, '--help'])\n    except SystemExit as end: assert not end.code\n"
    script += "print(sorted({'numpy', 'torch', 'pyarrow', 'sklearn', 'PIL'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")
