import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tests.cli.here import call

import prune4rel as p4r
from prune4rel import Labels, Selection, Signals
from prune4rel.data import load_dataset


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PRUNE4REL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def prune4rel(monkeypatch, capsys, tmp_path):
    """Call a command in an own folder; returns its exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code, out, err = call(monkeypatch, capsys, *words)
        return SimpleNamespace(returncode=code, stdout=out, stderr=err)

    return run


@pytest.fixture
def news(tmp_path):
    rows = "".join(
        f"the {word} of number {k},{label}\n" for k in range(8) for word, label in (("sea", "b"), ("hen", "a"))
    )
    (tmp_path / "news.csv").write_text(f"title,label\n{rows}")
    return tmp_path / "news.csv"


def test_texts_become_signals_that_are_a_source_again(prune4rel, news, tmp_path):
    done = prune4rel("embed", news, "--encoder", "tfidf", "--encoder-option", "dim=3", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "labels from column 'label', texts from column 'title'" in done.stderr
    assert "16 texts, 2 classes" in done.stdout
    signals = Signals.load(tmp_path / "out")
    assert signals.embeddings.shape == (16, 3)
    assert signals.class_names == ("a", "b")
    data = load_dataset("embeddings", tmp_path / "out")
    assert (data.kind, len(data.train), data.n_classes) == ("features", 16, 2)
    again = prune4rel("embed", news, "--encoder", "tfidf", "--encoder-option", "dim=3", "-o", tmp_path / "out")
    assert again.returncode == 0, again.stderr
    other = prune4rel("embed", news, "--encoder", "tfidf", "-o", tmp_path / "out")
    assert (other.returncode, "another encoder" in other.stderr) == (2, True)
    assert prune4rel("embed", news, "--encoder", "tfidf", "-o", tmp_path / "out", "--force", "-q").returncode == 0


def test_images_both_splits_and_what_is_left_out(prune4rel, tmp_path):
    (tmp_path / "own.py").write_text("import numpy as np\ndef mean(images):\n    return np.mean(images, axis=(1, 2))\n")
    for k, (split, label) in enumerate((s, c) for s in ("train", "test") for c in "ab" for _ in range(2)):
        folder = tmp_path / "photos" / split / label
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (9, 7), (10 * k, 0, 0)).save(folder / f"{k}.png")
    (tmp_path / "photos" / "train" / "b" / "broken.png").write_bytes(b"no image")
    words = ("embed", "photos", "--encoder", "own:mean", "--size", "4", "-o", "out")
    refused = prune4rel(*words)
    assert refused.returncode == 2
    assert "broken.png: not an image" in refused.stderr
    done = prune4rel(*words, "--skip-broken")
    assert done.returncode == 0, done.stderr
    assert "left out: " in done.stderr
    data = load_dataset("embeddings", tmp_path / "out")
    assert len(data.train) == 4
    assert len(data.test) == 4
    assert np.allclose(data.train.features[:, 0], [0, 10, 20, 30])


def test_an_estimate_comes_first_where_it_is_asked_for(prune4rel, news, tmp_path):
    done = prune4rel("embed", news, "--encoder", "tfidf", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "of vectors, 9 numbers each" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["news.csv"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "say what to embed"),
        (("news.csv",), "say where the embeddings should go"),
        (("absent", "-o", "out"), "absent: no such file or folder"),
        (("news.csv", "-o", "out", "--encoder", "tfdif"), "did you mean 'tfidf'"),
        (("news.csv", "-o", "out", "--label-column", "lable"), "did you mean 'label'"),
        (("news.csv", "-o", "out", "--encoder", "tfidf", "--size", "3"), "size is for images"),
        (("news.csv", "-o", "out", "--option", "x=3"), "has no option 'x'"),
    ],
)
def test_what_is_missing_is_said(prune4rel, news, words, error):
    done = prune4rel("embed", *words)
    assert done.returncode == 2
    assert error in done.stderr
    assert not (news.parent / "out").exists()


def test_the_encoders_are_listed_and_forget(prune4rel, tmp_path):
    listed = prune4rel("encoders")
    assert "tfidf" in listed.stdout
    assert "Unless told:" in listed.stdout
    entries = json.loads(prune4rel("encoders", "--json").stdout)
    assert {"name", "kind", "extra", "summary"} == set(entries[0])
    assert "options: dim=200" in prune4rel("encoders", "tfidf").stdout
    (tmp_path / "cache" / "embeddings" / "x").mkdir(parents=True)
    np.save(tmp_path / "cache" / "embeddings" / "x" / "a.keys.npy", np.zeros(1000))
    assert "7.9 KiB of embeddings are forgotten" in prune4rel("encoders", "--clear-cache").stdout
    assert not (tmp_path / "cache" / "embeddings").exists()


@pytest.mark.parametrize("verb", ["methods", "learners", "datasets"])
def test_lists_for_programs(prune4rel, verb):
    if verb == "learners":
        pytest.importorskip("torch")
    entries = json.loads(prune4rel(verb, "--json").stdout)
    assert len(entries) > 3
    assert all(entry["name"] and entry["summary"] for entry in entries)


def test_clean_begins_with_texts(prune4rel, news, tmp_path):
    done = prune4rel("clean", news, "--encoder", "tfidf", "-o", tmp_path / "cleaned")
    assert done.returncode == 0, done.stderr
    assert "texts from column 'title'" in done.stderr
    source = json.loads((tmp_path / "cleaned" / "source.json").read_text())
    assert (source["dataset"], source["options"]) == ("table", {"label": "label", "text": "title"})
    labels = Labels.load(tmp_path / "cleaned" / "labels.parquet")
    assert labels.class_names == ("a", "b")
    assert len(set(labels.content.tolist())) == 16
    estimate = prune4rel("clean", news, "--encoder", "tfidf", "--dry-run")
    assert "16 examples: " in estimate.stdout


def test_clean_takes_no_encoder_for_vectors(prune4rel, tmp_path):
    np.savez(tmp_path / "a.npz", labels=np.arange(8) % 2, features=np.eye(8))
    done = prune4rel("clean", tmp_path / "a.npz", "--encoder", "tfidf", "-o", tmp_path / "cleaned")
    assert (done.returncode, "for images and texts; leave them out" in done.stderr) == (2, True)


def test_select_begins_with_texts_and_names_its_picks(prune4rel, news, tmp_path):
    words = ("select", news, "--encoder", "tfidf", "--size", 4, "--balanced", "--seed", 0)
    for form in ("parquet", "csv", "txt"):
        done = prune4rel(*words, "-o", tmp_path / f"picks.{form}")
        assert done.returncode == 0, done.stderr
    chosen = Selection.load(tmp_path / "picks.parquet")
    assert sorted(chosen.labels.tolist()) == [0, 0, 1, 1]
    assert (tmp_path / "picks.txt").read_text().split() == [str(row) for row in chosen.indices]
    assert "16 examples: " in prune4rel(*words, "--dry-run").stdout
    assert prune4rel("embed", news, "--encoder", "tfidf", "-o", "vectors", "-q").returncode == 0
    done = prune4rel("select", "vectors", "--size", 4, "--balanced", "-o", "again.npy")
    assert done.returncode == 0, done.stderr
    assert np.load("again.npy").tolist() == chosen.indices.tolist()
    assert prune4rel("clean", "vectors", "-o", "cleaned", "-q").returncode == 0
    done = prune4rel("select", "cleaned", "--size", 4, "--balanced", "-o", "third.npy")
    assert np.load("third.npy").tolist() == chosen.indices.tolist()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("news.csv", "--labels", "y.npy"), "a SOURCE stands alone; leave it or labels out"),
        (("--encoder", "tfidf"), "columns and encoders are for a SOURCE; name one"),
        ((), "name a SOURCE, or pass --labels FILE"),
        (("news.csv", "--encoder", "tfdif"), "did you mean 'tfidf'"),
    ],
)
def test_select_says_what_does_not_go_together(prune4rel, news, words, error):
    done = prune4rel("select", *words, "--ratio", "0.5", "-o", "picks.csv")
    assert done.returncode == 2
    assert error in done.stderr
    assert not (news.parent / "picks.csv").exists()


def test_python_takes_texts_and_frames_too(news):
    dataset = load_dataset("table", news)
    found = p4r.clean(news, encoder="tfidf")
    assert found.labels.class_names == ("a", "b")
    same = p4r.clean(dataset, encoder=p4r.open_encoder("tfidf"))
    assert np.array_equal(found.label_score, same.label_score)
    frame = pd.DataFrame({"words": dataset.train.texts, "kind": dataset.train.labels, "other": 1})
    again = p4r.clean(frame, encoder="tfidf", labels="kind")
    assert np.array_equal(found.label_score, again.label_score)
    with pytest.raises(p4r.InputError, match="say what makes vectors of them: encoder=NAME"):
        p4r.clean(dataset)
    with pytest.raises(p4r.InputError, match="pass a path, a table or a Dataset"):
        p4r.clean(encoder="tfidf", labels=[0, 1])


@pytest.fixture
def photos(tmp_path):
    """Dark and bright pictures with two wrong labels, a train and a test split, and an encoder of one's own."""
    (tmp_path / "own.py").write_text("import numpy as np\ndef mean(images):\n    return np.mean(images, axis=(1, 2))\n")
    rng = np.random.default_rng(0)
    for k in range(40):
        bright, split = k % 2, "test" if k >= 32 else "train"
        label = ("dark", "light")[bright if k not in (4, 9) else 1 - bright]
        place = tmp_path / "photos" / split / label
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(100 * bright, 100 * bright + 100, (6, 6, 3), dtype=np.uint8)).save(
            place / f"{k:02}.png"
        )
    return tmp_path / "photos"


RUN = (
    "--encoder",
    "own:mean",
    "--size",
    4,
    "--methods",
    "uniform",
    "--ratios",
    "0.5",
    "--epochs",
    2,
    "--device",
    "cpu",
)


def test_run_trains_heads_on_vectors_and_shows_pictures(prune4rel, photos, tmp_path):
    pytest.importorskip("torch")
    (photos / "train" / "dark" / "zz.png").write_bytes(b"no image")
    assert "zz.png: not an image" in prune4rel("run", photos, *RUN, "-o", "run").stderr
    done = prune4rel("run", photos, *RUN, "--skip-broken", "-o", "run")
    assert done.returncode == 0, done.stderr
    assert "left out: " in done.stderr
    data = load_dataset("embeddings", tmp_path / "run" / "embeddings")
    assert (len(data.train), len(data.test), data.train.features.shape[1]) == (32, 8, 3)
    assert "data:image/" in (tmp_path / "run" / "report.html").read_text()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.parquet")}
    again = prune4rel("run", photos, *RUN, "--skip-broken", "-o", "run", "-q")
    assert again.returncode == 0, again.stderr
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.parquet")} == before
    assert prune4rel("report", "run", "-o", "page.html").returncode == 0
    other = prune4rel("run", photos, *RUN, "--skip-broken", "--size", 5, "-o", "run")
    assert other.returncode == 0, other.stderr
    assert "embeddings of another encoder; making them anew" in other.stderr
    assert "doing it again" in other.stderr


def test_run_says_what_it_would_do(prune4rel, photos, tmp_path):
    pytest.importorskip("torch")
    done = prune4rel("run", photos, *RUN, "-o", "run", "--dry-run")
    assert done.returncode == 0, done.stderr
    for words in ("32 examples, 2 classes", "own:mean, about ", "trainings", "time"):
        assert words in done.stdout
    assert not (tmp_path / "run").exists()


def test_run_goes_on_from_clean_and_from_embed(prune4rel, photos):
    pytest.importorskip("torch")
    assert prune4rel("embed", photos, *RUN[:4], "-o", "vectors", "-q").returncode == 0
    assert prune4rel("clean", "vectors", "-o", "cleaned", "-q").returncode == 0
    for source in ("vectors", "cleaned"):
        done = prune4rel("run", source, *RUN[4:], "-o", f"run-{source}", "-q")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("run",), "say what to work with: name a SOURCE"),
        (("train",), "say what to work with: --dataset NAME"),
        (("warmup",), "say what to work with: --dataset NAME"),
        (("run", "photos", "--data", "photos"), "a SOURCE and --data are two data sets"),
        (("run", "--label-column", "y"), "columns are for a SOURCE"),
        (("run", "absent"), "absent: no such file or folder"),
        (("run", "photos", "--network", "mlp", "--size", 8), "encoder: name one (--encoder)"),
        (("run", "--dataset", "digits", "--encoder", "tfidf"), "encodes texts, but these examples are images"),
    ],
)
@pytest.mark.usefixtures("photos")
def test_run_needs_a_source(prune4rel, tmp_path, words, error):
    pytest.importorskip("torch")
    done = prune4rel(*words, "-o", "out")
    assert done.returncode == 2
    assert error in done.stderr
    assert not (tmp_path / "out" / "config.yaml").exists()
