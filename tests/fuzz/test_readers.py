"""Whatever is in a file: reading it gives a value, or one line that can be printed anywhere."""

import os
import shutil
import time
import warnings
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.mutate import damaged, displaced
from tests.fuzz.samples import SAMPLES

from prune4rel import InputError

SECONDS = float(os.environ.get("PRUNE4REL_FUZZ_SECONDS", "12")) / len(SAMPLES)
"""Of each; without end with `make fuzz`."""

ENDLESS = SECONDS > 60
FUZZ = settings(
    max_examples=10**9 if ENDLESS else 150,
    derandomize=not ENDLESS,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module", params=SAMPLES, ids=lambda sample: sample.name)
def sample(request, tmp_path_factory):
    """A sample, made once; its folder, and what it is read as."""
    home = tmp_path_factory.mktemp("sample")
    request.param.make(home)
    return request.param, home, request.param.read(home)


def files_of(home):
    return sorted(path for path in home.rglob("*") if path.is_file() and path.name != ".lock")


def same(one, other):
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        one, other = np.asarray(one), np.asarray(other)
        return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (one != one and other != other)  # noqa: PLR0124 - NaN


def read(kind, home):
    """Read a sample; return what it is, or what it was refused with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return kind.read(home), None
        except InputError as error:
            message = str(error)
            assert message.isprintable(), repr(message)
            assert message.strip()
            return None, message


def attack(sample, base, random, *, forged):
    """Damage one file of a copy of a sample, and read it; return what it was and what it is, or why it is refused."""
    kind, home, whole = sample
    there = files_of(home)
    path = random.choice(there)
    others = [other.read_bytes() for other in there if other.stat().st_size < 10**5]
    place = base / f"{time.monotonic_ns()}"
    shutil.copytree(home, place, symlinks=True)
    try:
        victim = place / path.relative_to(home)
        if random.random() < 0.25:
            displaced(victim, random, others)
        else:
            victim.write_bytes(damaged(path.read_bytes(), random, others, forged=forged))
        return whole, *read(kind, place)
    except BaseException:
        if keep := os.environ.get("PRUNE4REL_FUZZ_KEEP"):
            shutil.copytree(place, Path(keep, f"{kind.name.replace(' ', '-')}-{time.time_ns()}"))
        raise
    finally:
        shutil.rmtree(place, ignore_errors=True)


def fuzz(attack):
    """Attack with seed after seed, until the time is up: the processor's, so that others at work change little."""
    end = time.process_time() + SECONDS

    @FUZZ
    @given(st.integers(0, 2**63))
    def check(seed):
        nonlocal end
        if time.process_time() < end:
            try:
                attack(Random(seed))  # noqa: S311 - nothing secret
            except BaseException:
                end = float("inf")  # the same again has to fail again
                raise

    check()


def test_no_reader_ends_in_a_traceback(sample, tmp_path):
    fuzz(lambda random: attack(sample, tmp_path, random, forged=True))


def test_damage_to_what_we_wrote_never_goes_unnoticed(sample, tmp_path):
    if not sample[0].ours:
        pytest.skip("is not ours, or says nothing of itself")

    def check(random):
        whole, found, refused = attack(sample, tmp_path, random, forged=False)
        assert refused or same(found, whole)

    fuzz(check)
