import json
import resource
from contextlib import contextmanager

import pytest
import torch

from prune4rel import InputError
from prune4rel.progress import Progress
from prune4rel.training.checkpoint import FACTS, TENSORS, Checkpoints, write_tensors

CPU = torch.device("cpu")


class Listening(Progress):
    def __init__(self):
        self.heard = []

    def say(self, message):
        self.heard.append(message)


@pytest.fixture
def states(tmp_path):
    return Checkpoints(tmp_path / "run" / "checkpoints", {"seed": 0, "training": {"lr": 0.5, "milestones": [3]}})


def save(states, *numbers):
    for number in numbers:
        states.save(number, {"w": torch.full((3,), float(number))}, {"epoch": number, "history": [{"loss": 0.1}]})


def newest(states):
    listener = Listening()
    found = states.newest(listener, CPU)
    return (None if found is None else found[1]["epoch"]), listener.heard


def test_the_last_two_are_kept_and_the_newest_is_found(states):
    assert newest(states) == (None, [])
    save(states, 1, 9, 10)
    assert sorted(path.name for path in states.folder.iterdir()) == ["000000000009", "000000000010"]
    tensors, facts = states.newest(Progress(), CPU)
    assert torch.equal(tensors["w"], torch.full((3,), 10.0))
    assert (facts["epoch"], facts["history"]) == (10, [{"loss": 0.1}])


def test_saving_the_same_number_again_replaces_it(states):
    save(states, 5)
    states.save(5, {"w": torch.zeros(1)}, {"epoch": 6})
    assert newest(states) == (6, [])


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("name", [TENSORS, FACTS])
def test_a_truncated_newest_one_falls_back_and_says_so(states, name, share):
    save(states, 1, 2)
    path = states.folder / "000000000002" / name
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    epoch, heard = newest(states)
    assert epoch == 1
    assert len(heard) == 1
    assert "000000000002" in heard[0]
    assert "not a readable" in heard[0]
    assert "going back to the one before" in heard[0]


@pytest.mark.parametrize("name", [TENSORS, FACTS])
def test_a_single_changed_digit_is_noticed(states, name):
    save(states, 1, 2)
    path = states.folder / "000000000002" / name
    content = bytearray(path.read_bytes())
    place = content.index(b'"epoch": 2') + 9 if name == FACTS else len(content) - 1
    content[place] ^= 1
    path.write_bytes(bytes(content))
    assert newest(states)[0] == 1


@pytest.mark.parametrize("content", ["[]", "null", "{}", '{"sha256": 1, "state": 2}', "no json"])
def test_nonsense_is_passed_over(states, content):
    save(states, 1, 2)
    (states.folder / "000000000002" / FACTS).write_text(content)
    assert newest(states)[0] == 1


def test_where_none_can_be_read_it_says_that_it_begins_anew(states):
    save(states, 1, 2)
    for folder in states.folder.iterdir():
        (folder / TENSORS).unlink()
    epoch, heard = newest(states)
    assert epoch is None
    assert "going back" in heard[0]
    assert "beginning anew" in heard[1]


def test_another_identity_is_named(states):
    save(states, 1)
    other = Checkpoints(states.folder, {"seed": 0, "training": {"lr": 0.25, "milestones": [3]}})
    with pytest.raises(InputError, match=r"begun with training\.lr = 0\.5, not 0\.25.*--restart"):
        other.newest(Progress(), CPU)
    same = Checkpoints(states.folder, {"seed": 0, "training": {"lr": 0.5, "milestones": (3,)}})
    assert newest(same)[0] == 1


def test_an_option_that_came_or_went_is_named(states):
    save(states, 1)
    with pytest.raises(InputError, match=r"ema = null, not 0\.9"):
        Checkpoints(states.folder, states.identity | {"ema": 0.9}).newest(Progress(), CPU)


def test_what_a_killed_process_left_is_cleared_away(states):
    save(states, 1)
    for name in (".000000000002.77.part", ".000000000001.77.old"):
        (states.folder / name).mkdir()
        (states.folder / name / TENSORS).write_bytes(b"half")
    assert newest(states) == (1, [])
    assert [path.name for path in states.folder.iterdir()] == ["000000000001"]


@contextmanager
def small_files_only(size):
    """Let the operating system refuse files larger than `size` bytes, as a full disk would."""
    import signal

    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_keeps_the_state_before(states):
    save(states, 1)
    with small_files_only(20_000), pytest.raises(InputError, match="writing failed") as error:
        states.save(2, {"w": torch.ones(100_000)}, {"epoch": 2})
    assert "000000000002" in str(error.value)
    assert newest(states) == (1, [])


def test_clear_removes_everything(states):
    save(states, 1)
    states.clear()
    states.clear()
    assert not states.folder.exists()


def test_check_same_reads_an_identity_from_a_file(states, tmp_path):
    path = tmp_path / "training.json"
    path.write_text(json.dumps(states.identity))
    states.check_same(path)
    path.write_text(json.dumps(states.identity | {"seed": 3}))
    with pytest.raises(InputError, match="seed = 3, not 0"):
        states.check_same(path)
    path.write_text("{")
    with pytest.raises(InputError, match=r"not a readable JSON .* begin anew with --restart"):
        states.check_same(path)


def test_tensors_that_share_memory_or_have_odd_strides_are_written(tmp_path):
    from safetensors.torch import load_file

    whole = torch.arange(24.0).view(1, 2, 3, 4)
    tensors = {"a": whole, "b": whole[:, :1], "c": whole.to(memory_format=torch.channels_last)}
    write_tensors(tmp_path / "t.safetensors", tensors)
    found = load_file(tmp_path / "t.safetensors")
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    assert (tmp_path / "t.safetensors").stat().st_mode & 0o400
