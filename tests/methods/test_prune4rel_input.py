"""Odd input to `prune4rel`: refused with what to do, or handled like any other."""

import math
import re
import warnings

import numpy as np
import pytest
import torch
from tests.instances import many

from prune4rel import InputError, select
from prune4rel.machine import memory_budget
from prune4rel.methods.prune4rel import PRESETS
from prune4rel.methods.run import estimate
from prune4rel.signals import Signals

BAD = {
    "tau below 0": ({"tau": -0.1}, r"tau must lie between 0 and 1, or be 'auto'; got -0.1"),
    "tau above 1": ({"tau": 1.01}, r"tau must lie between 0 and 1, or be 'auto'; got 1.01"),
    "tau NaN": ({"tau": math.nan}, r"tau must lie between 0 and 1, or be 'auto'; got nan"),
    "tau a word": ({"tau": "high"}, r"tau must lie between 0 and 1, or be 'auto'; got 'high'"),
    "eta 0": ({"eta": 0}, r"eta must be a number above 0, not 0"),
    "eta negative": ({"eta": -1.0}, r"eta must be a number above 0, not -1.0"),
    "eta infinite": ({"eta": math.inf}, r"eta must be a number above 0, not inf"),
    "eta NaN": ({"eta": math.nan}, r"eta must be a number above 0, not nan"),
    "eta too small": ({"eta": 1e-320}, r"eta must be 1e-290 or more, not 1e-320: confidence / eta would overflow"),
    "eta a word": ({"eta": "1"}, r"eta must be a number above 0, not '1'"),
    "preset": ({"preset": "papr"}, r"unknown preset 'papr'; did you mean 'paper'\? Known: paper, official"),
    "gain": ({"gain": "covrage"}, r"unknown gain 'covrage'; did you mean 'coverage'\?"),
    "similarity": ({"similarity": "cos"}, r"unknown similarity 'cos'; .*Known: cosine, shifted-cosine"),
    "confidence": (
        {"confidence": "entropy"},
        r"unknown confidence 'entropy'; .*Known: max-prob, diff-prob, label-prob",
    ),
    "screening": ({"screening": "fast"}, r"screening must be one of auto, none, projection, not 'fast'"),
    "max_degree 0": ({"max_degree": 0}, r"max_degree must be a whole number of at least 1, not 0"),
    "max_degree half": ({"max_degree": 1.5}, r"max_degree must be a whole number of at least 1, not 1.5"),
    "target_degree 0": ({"target_degree": 0}, r"target_degree must be above 0, not 0"),
    "target_degree NaN": ({"target_degree": math.nan}, r"target_degree must be above 0, not nan"),
    "memory a word": ({"memory": "much"}, r"memory: cannot read 'much' as a size in bytes; write it like 8GB"),
    "target_degree negative": ({"target_degree": -1, "tau": 0.9}, r"target_degree must be above 0, not -1"),
    "target_degree a word": ({"target_degree": "a"}, r"target_degree must be above 0, not 'a'"),
    "strict a number": ({"strict": 3}, r"strict must be true or false, not 3"),
    "preset None": ({"preset": None}, r"unknown preset None; Known: paper, official, coverage, label-aware"),
    "preset a list": ({"preset": ["paper"]}, r"unknown preset \['paper'\]; .*Known: paper"),
    "memory infinite": ({"memory": "inf"}, r"memory: cannot read 'inf' as a size in bytes; write it like 8GB"),
    "memory negative": ({"memory": "-1GB"}, r"memory: cannot read '-1GB' as a size in bytes; write it like 8GB"),
    "memory a list": ({"memory": [1]}, r"memory: cannot read \[1\] as a size in bytes; write it like 8GB"),
    "memory NaN": ({"memory": "nan"}, r"memory: cannot read 'nan' as a size in bytes; write it like 8GB"),
    "initial twice": ({"initial": [1, 2, 1]}, r"initial names an example twice"),
    "initial negative": ({"initial": [-1]}, r"initial holds an index outside 0 to 29"),
    "initial too high": ({"initial": [0, 30]}, r"initial holds an index outside 0 to 29"),
    "initial too many": ({"initial": range(6)}, r"initial holds 6 examples, more than the 5 to select in all"),
    "initial floats": ({"initial": [0.5]}, r"initial must be a list of indices"),
    "initial a mask": ({"initial": [True] * 30}, r"initial must be a list of indices"),
    "initial a table": ({"initial": [[1], [2]]}, r"initial must be a list of indices"),
}


@pytest.mark.parametrize("case", BAD)
def test_options_out_of_range_are_refused_with_what_is_possible(small, case):
    asked, message = BAD[case]
    with pytest.raises(InputError, match=message):
        select(size=5, device="cpu", **small, **asked)


def test_a_pytorch_device_is_a_device(small):
    chosen = select(size=5, device=torch.device("cpu"), **small)
    assert chosen.options["device"] == "cpu"
    assert chosen.indices.tolist() == select(size=5, device="cpu", **small).indices.tolist()


def test_all_zero_embeddings_are_refused_with_count_row_and_remedy(small):
    small["embeddings"][[7, 3]] = 0
    with pytest.raises(
        InputError, match=r"embeddings: 2 rows are all zero, the first is row 3; .*allow_zero=True"
    ) as refusal:
        select(size=5, **small)
    assert refusal.value.field == "embeddings"


@pytest.mark.parametrize("preset", PRESETS)
def test_all_zero_embeddings_count_as_isolated_where_allowed(small, preset):
    small["embeddings"][[7, 3]] = 0
    chosen = select(size=30, preset=preset, allow_zero=True, device="cpu", **small)
    assert sorted(chosen.indices) == list(range(30))
    assert chosen.stats["isolated"] >= 2 / 30


def test_nothing_but_zeros_goes_by_confidence(small):
    small["embeddings"][:] = 0
    chosen = select(size=30, preset="coverage", allow_zero=True, device="cpu", **small)
    assert chosen.indices.tolist() == np.argsort(-small["probabilities"].max(axis=1), kind="stable").tolist()
    assert chosen.stats["mean_degree"] == 0


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("balanced", [False, True])
def test_a_handful_of_examples(rng, preset, n, balanced):
    chosen = select(
        embeddings=rng.normal(size=(n, 4)),
        probabilities=rng.dirichlet(np.ones(2), n),
        labels=np.arange(n) % 2,
        size=n,
        preset=preset,
        balanced=balanced,
        device="cpu",
    )
    assert sorted(chosen.indices) == list(range(n))


@pytest.mark.parametrize("preset", PRESETS)
def test_one_class_balanced_is_the_same_as_unbalanced(small, preset):
    small |= {"labels": np.zeros(30, dtype=int), "probabilities": np.ones((30, 1))}
    picks = [select(size=20, preset=preset, balanced=b, device="cpu", **small).indices for b in (False, True)]
    np.testing.assert_array_equal(*picks)


@pytest.mark.parametrize("preset", PRESETS)
def test_duplicated_rows_go_by_index(preset):
    chosen = select(
        embeddings=np.tile([[1.0, 2.0, 3.0]], (40, 1)),
        probabilities=np.full((40, 2), 0.5),
        labels=np.zeros(40, dtype=int),
        size=40,
        preset=preset,
        device="cpu",
    )
    assert chosen.indices.tolist() == list(range(40))
    assert chosen.stats["mean_degree"] == 39


def convert(arrays, embeddings, probabilities=lambda array: array):
    return arrays | {
        "embeddings": embeddings(arrays["embeddings"]),
        "probabilities": probabilities(arrays["probabilities"]),
    }


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    ("embeddings", "probabilities"),
    [
        (lambda e: e.astype(np.float16), lambda p: p.astype(np.float16)),
        (lambda e: e.astype(np.float64), lambda p: p.astype(np.float64)),
        (lambda e: e.astype(np.int32), lambda p: p),
        (np.asfortranarray, np.asfortranarray),
        (lambda e: np.repeat(e, 2, axis=0)[::2], lambda p: np.repeat(p, 2, axis=1)[:, ::2]),
        (torch.from_numpy, torch.from_numpy),
        (lambda e: torch.from_numpy(e).bfloat16(), lambda p: torch.from_numpy(p).bfloat16()),
    ],
    ids=["float16", "float64", "integers", "Fortran", "strided", "tensors", "bfloat16"],
)
def test_types_and_layouts_that_hold_the_same_numbers_give_the_same_picks(rng, preset, embeddings, probabilities):
    eighths = rng.multinomial(8, [0.4, 0.4, 0.2], size=60).astype(np.float32) / 8
    arrays = {"embeddings": rng.integers(-9, 10, size=(60, 5)).astype(np.float32), "probabilities": eighths}
    labels = np.arange(60) % 3
    plain = select(labels=labels, size=40, preset=preset, device="cpu", **arrays)
    other = select(labels=labels, size=40, preset=preset, device="cpu", **convert(arrays, embeddings, probabilities))
    assert other.indices.tolist() == plain.indices.tolist()
    assert other.gains.tolist() == plain.gains.tolist()


def test_limited_degree_is_approximate_where_edges_were_left_out_and_exact_elsewhere():
    instance = many(150)
    arrays = {"embeddings": instance.rows, "labels": instance.labels, "probabilities": np.full((150, 3), 1 / 3)}
    asked = arrays | {"size": 100, "preset": "coverage", "tau": 0.9, "device": "cpu"}
    exact = select(**asked)
    limited = select(max_degree=2, **asked)
    assert limited.approximate
    assert limited.stats["edges_left_out"] == exact.stats["edges"] - limited.stats["edges"]
    assert any("Approximate: max_degree left out" in note for note in limited.notes)
    unlimited = select(max_degree=149, **asked)
    assert not unlimited.approximate
    assert unlimited.indices.tolist() == exact.indices.tolist()


def test_too_little_memory_for_coverage_is_refused_with_the_estimate_and_the_ways_out(small):
    with pytest.raises(
        InputError, match=r"would take about .* edges, .* an example at tau = 0.6.* more than the 1000 B"
    ) as refusal:
        select(size=5, gain="coverage", tau=0.6, memory="1000B", device="cpu", **small)
    for remedy in ("tau='auto'", "a higher tau", "max_degree=K", "more memory", "gain='paper'"):
        assert remedy in str(refusal.value)


@pytest.mark.parametrize(("memory", "bytes_"), [("8GB", 2**33), (1000, 1000)])
def test_memory_budget(memory, bytes_):
    assert memory_budget(memory) == bytes_
    assert 0 < memory_budget(None) < 2**50


NOTES = {
    "isolated": ({"tau": 1.0}, r"100% of the examples have no neighbour at this tau"),
    "dense": ({"tau": 0.0}, r"An example has 199 neighbours on average, more than a tenth of the set"),
    "covered": ({"tau": 0.0, "eta": 0.1}, r"% of the picks gained next to nothing"),
    "uneven": ({"tau": 1.0}, r"Classes got between \d+ and \d+ picks; balanced=True"),
}


@pytest.mark.parametrize("case", NOTES)
def test_what_looks_odd_is_noted_with_what_to_do(rng, case):
    asked, note = NOTES[case]
    sure = np.linspace(0.5, 1, 200)
    chosen = select(
        embeddings=rng.normal(size=(200, 6)),
        probabilities=np.c_[sure, 1 - sure],
        labels=np.repeat([0, 1], 100),
        size=90,
        preset="coverage",
        device="cpu",
        **asked,
    )
    assert sum(bool(re.search(note, text)) for text in chosen.notes) == 1


def test_nothing_odd_is_not_noted():
    instance = many(300, dim=6, clusters=40)
    chosen = select(
        embeddings=instance.rows,
        probabilities=np.full((300, 3), 1 / 3),
        labels=instance.labels,
        size=60,
        balanced=True,
        device="cpu",
    )
    assert chosen.notes == ()


def test_looking_ahead_estimates_what_selecting_finds(small):
    signals = Signals(**small)
    asked = {"preset": "coverage", "target_degree": 4.0}
    ahead = estimate("prune4rel", signals, device="cpu", memory="1GB", **asked)
    chosen = select(signals=signals, size=5, device="cpu", **asked)
    assert ahead.tau == chosen.options["tau"]
    assert ahead.mean_degree == chosen.stats["mean_degree"]


def test_no_warning_on_the_way(small):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small["probabilities"][:] = [1.0, 0.0, 0.0]
        for eta in (1e-290, 1e-3, 1e300):
            for gain in ("paper", "coverage"):
                assert len(select(size=30, eta=eta, gain=gain, device="cpu", **small)) == 30
