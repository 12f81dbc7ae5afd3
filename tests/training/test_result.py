import json
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.metrics import average_precision_score
from tests.training.small import features, nothing, trainer_of

from prune4rel import InputError, Labels
from prune4rel.reading import seal
from prune4rel.training import Result
from prune4rel.training.result import (
    MLFLOW_RUN,
    WANDB_RUN,
    Trackers,
    accuracy,
    average_precision,
    labels_of,
    self_correction,
    write_corrected,
)

RESULT = Result(
    test_accuracy=0.5,
    best_accuracy=0.75,
    relabel_accuracy=None,
    self_correction=None,
    subset_noise=0.1,
    labels_changed=3,
    size=9,
    epochs=2,
    seconds={"training": 0.5},
    history=({"epoch": 0, "loss": 1.5}, {"epoch": 1, "loss": 1.0}),
    notes=("a note with ü",),
    wrong_label_ap=0.75,
)
P = np.array([[0.9, 0.1], [0.2, 0.8], [np.nan, np.nan], [0.5, 0.5]], dtype=np.float32)
GIVEN = np.array([1, 1, 1, 0])


def test_saved_and_loaded_it_is_the_same(tmp_path):
    RESULT.save(tmp_path)
    assert Result.load(tmp_path) == RESULT
    assert RESULT.accuracies() == {
        "test_accuracy": 0.5,
        "relabel_accuracy": None,
        "self_correction": None,
        "wrong_label_ap": 0.75,
    }


@pytest.mark.parametrize("text", ["[]", "3", "{", '{"size": 3}', "null"])
def test_what_is_no_result_is_refused(tmp_path, text):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(InputError, match=r"result\.json: "):
        Result.load(tmp_path)


def test_a_training_that_is_not_finished_has_none(tmp_path):
    with pytest.raises(InputError, match="is the training finished"):
        Result.load(tmp_path)


def test_fields_of_later_versions_are_passed_over(tmp_path):
    RESULT.save(tmp_path)
    found = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    (tmp_path / "result.json").write_text(json.dumps(seal(found | {"unheard_of": 1})), encoding="utf-8")
    assert Result.load(tmp_path) == RESULT


def test_a_number_that_changed_is_noticed(tmp_path):
    RESULT.save(tmp_path)
    text = (tmp_path / "result.json").read_text(encoding="utf-8")
    (tmp_path / "result.json").write_text(text.replace("0.5", "0.6", 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"result\.json: changed since it was written"):
        Result.load(tmp_path)


def table(**more):
    columns = {"given_label": GIVEN, "predicted_label": [0, 1, 1, 0], "label_score": [0.1, 0.9, 1, 0.5]}
    flags = {"is_label_issue": [True, False, False, False], "confidence": [0.9, 0.8, 0, 0.5]}
    return Labels(**columns, **flags, **{"class_names": ("cat", "dog"), **more})


def test_corrected_labels_are_labels_and_say_what_changed(tmp_path):
    write_corrected(table(), tmp_path / "c.parquet")
    columns = pq.read_table(tmp_path / "c.parquet").to_pydict()
    assert columns["corrected_label"] == [0, 1, 1, 0]
    assert columns["corrected_name"] == ["cat", "dog", "dog", "cat"]
    assert columns["changed"] == [True, False, False, False]
    assert Labels.load(tmp_path / "c.parquet").label_score.tolist() == [0.1, 0.9, 1, 0.5]


@pytest.mark.parametrize(
    "ids",
    [
        np.array(["a/b.png", "ünï", "", "new\nline, 'quoted' \"twice\""]),
        np.array([2**63, 1, 2, 3], dtype=np.uint64),
        np.array([-1, 0, 1, 2], dtype=np.int32),
    ],
)
def test_ids_of_all_kinds_come_back(tmp_path, ids):
    write_corrected(table(ids=ids), tmp_path / "c.parquet")
    assert pq.read_table(tmp_path / "c.parquet")["id"].to_pylist() == ids.tolist()


def test_names_that_are_no_text_are_escaped_rather_than_lost_after_hours(tmp_path):
    data = features()
    odd = replace(data.train, ids=np.array(["caf\udce9.png", *map(str, range(1, len(data.train)))]))
    names = ("ca\udcfft", *data.class_names[1:])
    trainer = trainer_of(replace(data, train=odd, class_names=names))
    trainer.training.run_epoch(nothing)
    write_corrected(labels_of(trainer, trainer.predict(odd)), tmp_path / "c.parquet")
    again = Labels.load(tmp_path / "c.parquet")
    assert (again.ids[0], again.class_names[0]) == ("caf\\udce9.png", "ca\\udcfft")


@pytest.mark.parametrize("seed", range(10))
def test_average_precision_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    scores, wrong = rng.integers(0, 8, 40) / 8, rng.random(40) < 0.3
    assert average_precision(scores, wrong) == pytest.approx(average_precision_score(wrong, -scores))
    assert average_precision(scores, np.zeros(40, dtype=bool)) is None


NAN = [np.nan, np.nan]


def test_accuracy_by_hand():
    logits = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0], NAN])
    assert accuracy(logits, np.array([0, 1, 1, 0])) == 2 / 3
    assert accuracy(torch.tensor([NAN]), np.array([0])) is None


def test_self_correction_by_hand():
    logits = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0], NAN])
    given, clean = np.array([1, 0, 0, 1]), np.array([0, 1, 1, 0])
    assert self_correction(logits, given, clean) == 2 / 3
    assert self_correction(logits, clean, clean) is None
    assert self_correction(logits[3:], given[3:], clean[3:]) is None


CONFIG = {"learner": "sop", "training": {"lr": 0.5}}


class Fake:
    """Stands for MLflow and Weights & Biases, and writes down what it is told."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*args, **kwargs):
            self.calls.append((name, args, kwargs))
            return SimpleNamespace(
                info=SimpleNamespace(run_id="run-7"),
                log=lambda *a, **k: self.calls.append(("log", a, k)),
                finish=lambda: self.calls.append(("finish", (), {})),
            )

        return call

    def named(self, name):
        return [(args, kwargs) for called, args, kwargs in self.calls if called == name]


def test_none_is_fine(tmp_path):
    with Trackers((), tmp_path, CONFIG) as trackers:
        trackers.log({"epoch": 0, "loss": 1.0}, 0)


def test_mlflow_gets_the_numbers_and_the_same_run_again(tmp_path, monkeypatch):
    fake = Fake()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    with Trackers(("mlflow",), tmp_path, CONFIG) as trackers:
        trackers.log({"epoch": 3, "loss": 1.0, "unknown": None}, 3)
    assert fake.named("start_run") == [((), {"run_name": tmp_path.name})]
    assert fake.named("log_params") == [(({"learner": "sop", "training": "{'lr': 0.5}"},), {})]
    assert fake.named("log_metrics") == [(({"loss": 1.0},), {"step": 3})]
    assert fake.calls[-1][0] == "end_run"
    assert (tmp_path / MLFLOW_RUN).read_text() == "run-7\n"
    with Trackers(("mlflow",), tmp_path, CONFIG):
        assert fake.named("start_run")[1] == ((), {"run_id": "run-7"})
    assert len(fake.named("log_params")) == 1


def test_wandb_gets_the_numbers_and_the_same_run_again(tmp_path, monkeypatch):
    fake = Fake()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    for _ in range(2):
        with Trackers(("wandb",), tmp_path, CONFIG) as trackers:
            trackers.log({"epoch": 3, "loss": 1.0}, 3)
    (_, first), (_, second) = fake.named("init")
    assert first == second
    assert (first["name"], first["config"], first["resume"]) == (tmp_path.name, CONFIG, "allow")
    assert (tmp_path / WANDB_RUN).read_text().strip() == first["id"]
    assert fake.named("log")[0] == (({"loss": 1.0},), {"step": 3})
    assert len(fake.named("finish")) == 2


def test_unknown_trackers_are_refused_before_any_is_opened(tmp_path, monkeypatch):
    fake = Fake()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    with pytest.raises(InputError, match="unknown tracker 'wandbe'; did you mean 'wandb'"):
        Trackers(("mlflow", "wandbe"), tmp_path, CONFIG)
    assert not fake.calls


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_package_that_is_not_there_is_named_with_how_to_get_it(tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard" if name == "tensorboard" else name, None)
    with pytest.raises(InputError, match=f"tracking with {name} needs the package.*pip install {name}"):
        Trackers((name,), tmp_path, CONFIG)


def test_where_the_second_cannot_be_opened_the_first_is_closed(tmp_path, monkeypatch):
    fake = Fake()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InputError, match="wandb"):
        Trackers(("mlflow", "wandb"), tmp_path, CONFIG)
    assert fake.calls[-1][0] == "end_run"


def failing(*_args, **_kwargs):
    raise RuntimeError("the server is down\nand so on")


def test_all_are_closed_even_if_one_cannot_be(tmp_path, monkeypatch):
    mlflow, wandb, said = Fake(), Fake(), []
    mlflow.end_run = failing
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    with Trackers(("mlflow", "wandb"), tmp_path, CONFIG, said.append):
        pass
    assert said == ["note: tracking with mlflow could not be finished (RuntimeError: the server is down)"]
    assert len(wandb.named("finish")) == 1


def test_one_that_fails_on_the_way_is_given_up_and_the_others_go_on(tmp_path, monkeypatch):
    mlflow, wandb, said = Fake(), Fake(), []
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    with Trackers(("mlflow", "wandb"), tmp_path, CONFIG, said.append) as trackers:
        trackers.log({"loss": 2.0}, 0)
        mlflow.log_metrics = failing
        trackers.log({"loss": 1.0}, 1)
        trackers.log({"loss": 0.5}, 2)
    assert said == ["note: tracking with mlflow failed; going on without it (RuntimeError: the server is down)"]
    assert [kwargs["step"] for _, kwargs in wandb.named("log")] == [0, 1, 2]


def test_one_that_cannot_begin_is_an_error_and_the_others_are_closed(tmp_path, monkeypatch):
    mlflow, wandb = Fake(), Fake()
    mlflow.start_run = failing
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    with pytest.raises(InputError, match=r"tracking with mlflow cannot begin: RuntimeError: the server is down$"):
        Trackers(("wandb", "mlflow"), tmp_path, CONFIG)
    assert len(wandb.named("finish")) == 1


def test_one_that_is_named_twice_is_opened_once(tmp_path, monkeypatch):
    fake = Fake()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    with Trackers(("mlflow", "mlflow"), tmp_path, CONFIG):
        assert len(fake.named("start_run")) == 1


@pytest.mark.filterwarnings("ignore")
def test_tensorboard_itself(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with Trackers(("tensorboard",), tmp_path, CONFIG) as trackers:
        trackers.log({"epoch": 0, "loss": 1.5}, 0)
        trackers.log({"epoch": 1, "loss": 0.5}, 1)
    found = EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()
    assert [(event.step, event.value) for event in found.Scalars("loss")] == [(0, 1.5), (1, 0.5)]


@pytest.mark.filterwarnings("ignore")
def test_mlflow_itself(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # its small client has no database
    mlflow.set_tracking_uri(f"file:{tmp_path / 'store'}")
    for epoch in range(2):  # the second is a training gone on with
        with Trackers(("mlflow",), tmp_path, CONFIG) as trackers:
            trackers.log({"epoch": epoch, "loss": 1.5 - epoch}, epoch)
    (run,) = mlflow.MlflowClient().search_runs(["0"])
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
    assert [(point.step, point.value) for point in history] == [(0, 1.5), (1, 0.5)]
    assert run.data.params["learner"] == "sop"


@pytest.mark.filterwarnings("ignore")
def test_wandb_itself(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with Trackers(("wandb",), tmp_path, CONFIG) as trackers:
        trackers.log({"epoch": 0, "loss": 0.8125}, 0)
        assert wandb.run.id == (tmp_path / WANDB_RUN).read_text().strip()
    (written,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    until = time.monotonic() + 20  # its own process writes, and may be late
    while b"0.8125" not in written.read_bytes() and time.monotonic() < until:
        time.sleep(0.1)
    assert b"0.8125" in written.read_bytes()
