import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.training import ranks_at_work as ranked
from tests.training.small import features, trainer_of

from prune4rel.errors import InputError
from prune4rel.loading.schedule import Ranks
from prune4rel.machine import threads
from prune4rel.training import distributed, warm_up
from prune4rel.training.distributed import LostRankError, join
from prune4rel.training.trainer import explaining_memory

TOLERANCE = {"rtol": 1e-4, "atol": 2e-5}
"""Of float32 numbers that were added up in another order, over some epochs."""

TRAIN = [
    *("-m", "prune4rel", "train", "--dataset", "digits", "--learner", "sop+", "--device", "cpu", "--save-every", "0"),
    *("--network", "mlp", "--network-option", "width=8", "--network-option", "depth=1"),
    *("--epochs", str(ranked.EPOCHS), "--set", "batch=15"),
]


@pytest.fixture(scope="module")
def alone():
    """What a single process makes of every case."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield {name: ranked.follow(name, Ranks()) for name in ranked.CASES}
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A folder in which two processes did everything they were asked to, once for all tests, and how they ended."""
    folder = tmp_path_factory.mktemp("two")
    with suppress(ranked.StoppedError):
        ranked.run(folder / "begun by one", stop_after=ranked.INTERRUPTED_AFTER)
    return folder, *ranked.run_two(str(folder))


@pytest.fixture(scope="module")
def home(ended):
    folder, _, said = ended
    assert (folder / "rank0.json").exists(), said
    return folder


@pytest.fixture(scope="module")
def told(home):
    return [json.loads((home / f"rank{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def tensors(home):
    return [load_file(home / f"rank{rank}.tensors") for rank in range(2)]


@pytest.mark.parametrize("name", ranked.CASES)
def test_two_processes_follow_one(name, alone, told, tensors):
    curve, facts, state = alone[name]
    for rank in range(2):
        found = told[rank][name]
        assert found["facts"] == facts
        for numbers, expected in zip(found["curve"], curve, strict=True):
            assert numbers == pytest.approx(expected, rel=1e-4, abs=1e-5)
        for key, values in state.items():
            torch.testing.assert_close(
                tensors[rank][f"{name}/{key}"], values, **TOLERANCE, msg=lambda text, key=key: f"{key}: {text}"
            )


def test_all_processes_are_in_the_same_state_to_the_last_bit(told, tensors):
    first, second = tensors
    for key, values in first.items():
        if not key.startswith("tools/"):
            assert torch.equal(values, second[key]), key
    assert told[0] == told[1]


def test_the_tools_by_hand(tensors):
    for rank, each in enumerate(tensors):
        found = {key.removeprefix("tools/"): values.tolist() for key, values in each.items() if key[:6] == "tools/"}
        assert found["sum"] == 5
        assert found["gradient"] == 3 * 5**2 + 2 * (2, 3)[rank]
        assert found["rows"] == [[0, 1], [10, 11], [12, 13]]
        assert found["flags"] == [False, True, True]
        assert found["nothing"] == []
        assert found["from one only"] == [[10, 11], [12, 13]]
        assert found["mine"] == [[0, 1], [2, 3, 4]][rank]
        assert found["matrix"] == [[3, 3, 3]] * 2
        assert found["double"] == [110]
        assert found["image"] == [[[[10, 10]] * 2] * 2]


def test_processes_that_begin_differently_are_refused(told):
    for each in told:
        taste, weights = each["refused"]
        assert "process 1 of 2 has another taste than process 0" in taste
        assert "another set of initial weights" in weights


def test_processes_share_the_cores(told):
    assert int(told[0]["threads"]) == max(1, threads() // 2)


def test_all_processes_stop_where_the_loss_is_no_number(told):
    for each in told:
        assert "became NaN or infinite" in each["diverged"]


def test_a_warm_up_of_two_gives_the_signals_of_one(tensors):
    expected = warm_up(features(), **ranked.WARM_UP)
    for name in ranked.SIGNALS:
        values = getattr(expected, name)
        np.testing.assert_allclose(tensors[0][f"signals/{name}"], values, rtol=1e-4, atol=1e-4, err_msg=name)


def assert_the_same_training(folder, other, *, exactly):
    """Compare what two trainings left behind."""
    if exactly:
        for name in ("model.safetensors", "metrics.jsonl", "corrected_labels.parquet"):
            assert (folder / name).read_bytes() == (other / name).read_bytes(), name
        return
    lines = [(path / "metrics.jsonl").read_text().splitlines() for path in (folder, other)]
    for line, expected in zip(*lines, strict=True):
        assert json.loads(line) == pytest.approx(json.loads(expected), rel=1e-3, abs=1e-3)
    ours, theirs = (load_file(path / "model.safetensors") for path in (folder, other))
    assert ours.keys() == theirs.keys()
    for key, values in ours.items():
        torch.testing.assert_close(values, theirs[key], rtol=1e-3, atol=1e-3)


def test_two_go_on_with_what_one_began(home):
    assert not (home / "begun by one" / "checkpoints").exists()
    assert_the_same_training(home / "begun by one", home / "undisturbed", exactly=False)


def torchrun(folder, subset, *how):
    how = how or ("--standalone", "--nproc-per-node", "2")
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *how, *TRAIN, "--subset", str(subset), "-o", str(folder)],
        cwd=ranked.ROOT,
        env=ranked.environment(),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def child_of_rank(parent, rank):
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise AssertionError


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs to find one of torchrun's processes")
def test_a_killed_process_ends_the_job_and_the_same_command_goes_on(home, tmp_path):
    folder, subset = tmp_path / "run", tmp_path / "subset.npy"
    np.save(subset, ranked.SUBSET)
    with torchrun(folder, subset) as job:
        until = time.monotonic() + 120
        while len(list(folder.glob("checkpoints/0*"))) < 2 and time.monotonic() < until and job.poll() is None:
            time.sleep(0.01)
        os.kill(child_of_rank(job.pid, 1), signal.SIGKILL)
        _, said = job.communicate(timeout=120)
    assert job.returncode != 0
    assert said.count("run the same command again") == 1, said
    assert not (folder / "result.json").exists()
    shutil.copytree(folder, tmp_path / "alone")

    with torchrun(folder, subset) as job:
        shown, said = job.communicate(timeout=120)
    assert job.returncode == 0, said
    assert "going on in epoch" in said
    assert shown.count("written to") == 1
    assert_the_same_training(folder, home / "undisturbed", exactly=True)

    ranked.run(tmp_path / "alone")
    assert_the_same_training(tmp_path / "alone", home / "undisturbed", exactly=False)


def test_processes_of_several_machines_train_together(home, tmp_path):
    subset, port = tmp_path / "subset.npy", ranked.free_port()
    np.save(subset, ranked.SUBSET)
    meet = ("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "a job")
    # what torchrun starts on every machine: two of these are as good as two machines with a folder they share
    both = [torchrun(tmp_path / "run", subset, *meet, "--local-addr", "127.0.0.1") for _ in range(2)]
    said = [job.communicate(timeout=120) for job in both]
    assert [job.returncode for job in both] == [0, 0], said
    assert sum(shown.count("written to") for shown, _ in said) == 1
    assert_the_same_training(tmp_path / "run", home / "undisturbed", exactly=True)


def test_where_one_process_fails_all_end_and_only_it_says_why(ended):
    _, codes, said = ended
    assert codes == [2, 1]
    assert said == ["", f"{ranked.FAILURE}\n"]


def test_alone_there_is_nobody_to_join(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    with join("cuda:7") as (ranks, device):
        assert type(ranks) is Ranks
        assert device == "cuda:7"


def test_every_process_takes_a_gpu_of_its_own(monkeypatch):
    taken = []
    monkeypatch.setattr(distributed, "resolve_device", lambda device: "cpu" if device == "cpu" else "cuda:0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    for name, value in (("RANK", "3"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "4"), ("LOCAL_WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    assert distributed._own_device("auto") == torch.device("cuda", 1)
    assert taken == [1]
    assert distributed._own_device("cpu") == torch.device("cpu")
    with pytest.raises(InputError, match="say --device cuda, not cuda:1"):
        distributed._own_device("cuda:1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    with pytest.raises(InputError, match="3 processes were started on this machine, which has 2 GPUs"):
        distributed._own_device("cuda")


def test_a_job_that_torchrun_starts_again_does_not_find_its_old_addresses(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    first = distributed._attempt()
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert distributed._attempt() != first
    monkeypatch.setenv("GROUP_WORLD_SIZE", "2")  # counts of several machines may differ
    assert distributed._attempt() == "attempt"


def test_threads_that_were_asked_for_are_left(monkeypatch):
    monkeypatch.setenv("PRUNE4REL_THREADS", "7")
    with distributed._fewer_threads():
        assert os.environ["PRUNE4REL_THREADS"] == "7"


def test_what_goes_wrong_between_processes_is_put_into_words():
    with (
        pytest.raises(LostRankError, match=r"from the last checkpoint \(Connection closed\)"),
        distributed._noticing_loss(),
    ):
        raise RuntimeError("[/far/away.cc:55] Connection closed. Good luck!\nBye")
    with pytest.raises(torch.OutOfMemoryError), distributed._noticing_loss():
        raise torch.OutOfMemoryError


def test_where_memory_runs_out_no_other_batch_is_tried():
    def work():
        raise MemoryError

    trainer = trainer_of()
    trainer.training.learner.ranks = SimpleNamespace(world=2)
    with pytest.raises(InputError, match=r"a batch of 16 over 2 processes does not fit .*\(--set batch=8\)"):
        explaining_memory(trainer, work)
