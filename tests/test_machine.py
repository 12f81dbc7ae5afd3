import math
import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from prune4rel import machine
from prune4rel.errors import InputError
from prune4rel.machine import (
    WORTH_A_GPU,
    Clock,
    available_memory,
    format_bytes,
    format_seconds,
    parse_bytes,
    resolve_device,
    sharing,
    threads,
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("8GB", 8 * 2**30),
        ("8 gib", 8 * 2**30),
        ("512MB", 2**29),
        ("1.5 MiB", 3 * 2**19),
        ("2T", 2**41),
        ("10k", 10240),
        (" 7 ", 7),
        ("7B", 7),
        (1000, 1000),
        (2.9, 2),
        (0, 0),
        (np.int32(5), 5),
    ],
)
def test_sizes_are_read_as_people_write_them(text, count):
    assert parse_bytes(text) == count


WRONG_SIZES = ["", "much", "8 XB", "GB", "nan", "1 2 GB", "inf", "-1GB", "1e999", -1, math.inf, math.nan, [1], None]


@pytest.mark.parametrize("text", WRONG_SIZES)
def test_other_sizes_are_refused_with_an_example(text):
    with pytest.raises(InputError, match=r"as a size in bytes; write it like 8GB or 512MB"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1023.7, "1.0 KiB"),
        (1024, "1.0 KiB"),
        (2**20 - 1, "1.0 MiB"),
        (2**20 - 60, "1023.9 KiB"),
        (2**40 - 1, "1.0 TiB"),
        (5 * 2**19, "2.5 MiB"),
        (3 * 2**30, "3.0 GiB"),
        (2**42, "4.0 TiB"),
    ],
)
def test_bytes_for_people(count, text):
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.00 s"),
        (9.5, "9.50 s"),
        (9.999, "10 s"),
        (12.3, "12 s"),
        (59.7, "1 min 0 s"),
        (75, "1 min 15 s"),
        (119.7, "2 min 0 s"),
        (3599.7, "1 h 0 min"),
        (3600, "1 h 0 min"),
        (7199.9, "2 h 0 min"),
        (7260, "2 h 1 min"),
    ],
)
def test_seconds_for_people(seconds, text):
    assert format_seconds(seconds) == text


def test_available_memory_is_what_the_system_reports_or_less():
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 2**20 < available_memory() <= total


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({"meminfo": "MemTotal: 9 kB\nMemAvailable:  4 kB\n"}, 4096),
        ({"meminfo": "MemAvailable: 4 kB", "memory.max": "3000", "memory.current": "1000"}, 2000),
        ({"meminfo": "MemAvailable: 4 kB", "memory.max": "1000", "memory.current": "3000"}, 0),
        ({"meminfo": "MemAvailable: 4 kB", "memory.max": "max", "memory.current": "1"}, 4096),
    ],
    ids=["no container", "container", "overdrawn container", "container without limit"],
)
def test_available_memory_respects_the_container(monkeypatch, files, free):
    def read(path, *_args, **_options):
        if path.name not in files:
            raise FileNotFoundError(path)
        return files[path.name]

    monkeypatch.setattr(Path, "read_text", read)
    assert available_memory() == free


def test_available_memory_without_linux_files_is_half_of_all(monkeypatch):
    monkeypatch.setattr(machine, "_meminfo_available", lambda: None)
    monkeypatch.setattr(machine.os, "sysconf", {"SC_PAGE_SIZE": 100, "SC_PHYS_PAGES": 10}.get)
    assert available_memory() == 500


@pytest.mark.parametrize(("wanted", "used"), [("3", 3), ("0", None), ("many", None), ("", None)])
def test_threads_can_be_set_from_outside(monkeypatch, wanted, used):
    monkeypatch.setenv("PRUNE4REL_THREADS", wanted)
    assert threads() == (used or len(os.sched_getaffinity(0)))


@pytest.mark.parametrize("before", ["7", None])
def test_threads_are_shared_for_a_while(monkeypatch, before):
    monkeypatch.delenv("PRUNE4REL_THREADS", raising=False)
    if before:
        monkeypatch.setenv("PRUNE4REL_THREADS", before)
    whole = threads()
    with sharing(2):
        assert threads() == max(1, whole // 2)
        with sharing(whole + 1):
            assert threads() == 1
    assert threads() == whole
    assert os.environ.get("PRUNE4REL_THREADS") == before


def test_threads_without_affinity_are_the_cores(monkeypatch):
    monkeypatch.delenv("PRUNE4REL_THREADS", raising=False)
    monkeypatch.delattr(machine.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 11)
    assert threads() == 11


@pytest.mark.parametrize(
    ("asked", "driver", "cuda", "given"),
    [
        ("cpu", True, True, "cpu"),
        ("auto", False, True, "cpu"),
        ("auto", True, False, "cpu"),
        ("auto", True, True, "cuda:0"),
        ("cuda", True, True, "cuda:0"),
        ("cuda:1", True, True, "cuda:1"),
        (torch.device("cpu"), True, True, "cpu"),
        (torch.device("cuda"), True, True, "cuda:0"),
        (torch.device("cuda", 1), True, True, "cuda:1"),
    ],
)
def test_device_is_one_that_is_there(monkeypatch, asked, driver, cuda, given):
    monkeypatch.setattr(machine, "_may_have_cuda", lambda: driver)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert resolve_device(asked) == given


def test_little_work_stays_on_the_cpu_unless_a_gpu_is_asked_for(monkeypatch):
    monkeypatch.setattr(machine, "_may_have_cuda", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert resolve_device("auto", work=WORTH_A_GPU / 2) == "cpu"
    assert resolve_device("auto", work=WORTH_A_GPU * 2) == "cuda:0"
    assert resolve_device("cuda", work=0) == "cuda:0"


def test_cuda_that_is_not_there_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        ValueError, match=r"'cuda' was asked for, but PyTorch sees no CUDA device .* use 'auto' or 'cpu'"
    ):
        resolve_device("cuda")


def test_a_gpu_too_many_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InputError, match=r"device 'cuda:2' was asked for, but PyTorch sees 2 here, counted from 0"):
        resolve_device("cuda:2")


@pytest.mark.parametrize("device", ["tpu", "cuda:", "cuda:x", "cudas", "", None, 0])
def test_unknown_device_is_refused(device):
    with pytest.raises(InputError, match=rf"device must be 'auto', 'cpu' or 'cuda', not '{device}'"):
        resolve_device(device)


def test_clock_books_each_step():
    clock = Clock()
    clock.lap("first")
    time.sleep(0.02)
    clock.lap("second")
    assert list(clock.laps) == ["first", "second"]
    assert clock.laps["first"] < 0.02 <= clock.laps["second"] < 1
