import numpy as np
import pytest
import torch

from prune4rel.augment import FeatureView, Views
from prune4rel.errors import InputError

COUNT, WIDTH = 4000, 10
MEAN, STD = torch.arange(float(WIDTH)), torch.linspace(0.0, 4.5, WIDTH)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def features(count=COUNT):
    return MEAN + STD * torch.randn((count, WIDTH), generator=generator(9))


def test_without_noise_and_drop_nothing_changes():
    inputs = features()
    result = FeatureView(MEAN, STD)(inputs, generator())
    assert torch.equal(result, inputs)
    assert result.data_ptr() != inputs.data_ptr()


def test_noise_is_normal_in_units_of_each_features_deviation():
    inputs = features()
    added = FeatureView(MEAN, STD, noise=0.2)(inputs, generator()) - inputs
    assert (added[:, 0] == 0).all()
    units = added[:, 1:] / (0.2 * STD[1:])
    assert units.mean(0).abs().max() < 5 / COUNT**0.5
    assert (units.std(0) - 1).abs().max() < 5 / (2 * COUNT) ** 0.5
    inside = (units.abs() < 1).double().mean()
    assert abs(inside - 0.6827) < 5 * (0.2166 / units.numel()) ** 0.5
    together = torch.corrcoef(units.T) - torch.eye(WIDTH - 1)
    assert together.abs().max() < 5 / COUNT**0.5


def test_dropped_features_are_their_means_and_the_rest_is_left_alone():
    inputs, view = features(), FeatureView(MEAN, STD, drop=0.3)
    drawn = view.draw(inputs.shape, generator())
    result = view.apply(inputs, drawn)
    assert torch.equal(result, torch.where(drawn.dropped, MEAN.expand_as(inputs), inputs))
    spread = (0.3 * 0.7 / COUNT) ** 0.5
    assert (drawn.dropped.double().mean(0) - 0.3).abs().max() < 5 * spread
    counts = drawn.dropped.sum(1).double()
    assert abs(counts.var() / (WIDTH * 0.3 * 0.7) - 1) < 0.2


def test_standardised_features_have_mean_0_and_deviation_1():
    inputs = features()
    result = FeatureView(MEAN, STD, standardise=True)(inputs, generator())
    assert torch.equal(result[:, 1:], (inputs[:, 1:] - MEAN[1:]) / STD[1:])
    assert (result[:, 0] == 0).all()
    assert result.mean(0).abs().max() < 5 / COUNT**0.5
    assert torch.equal(inputs, features())
    strong = {"noise": 0.4, "drop": 0.3}
    plain = FeatureView(MEAN, STD, **strong)(inputs, generator())
    scaled = FeatureView(MEAN, STD, **strong, standardise=True)(inputs, generator())
    torch.testing.assert_close(scaled * STD + MEAN, plain)
    assert (scaled == 0).double().mean() > 0.25


def test_noise_comes_before_dropping():
    result = FeatureView(MEAN, STD, noise=3.0, drop=1.0)(features(), generator())
    assert torch.equal(result, MEAN.expand(COUNT, WIDTH))


def test_a_seed_says_it_all_and_nothing_else_is_drawn_from():
    view, inputs = FeatureView(MEAN, STD, noise=0.5, drop=0.2), features(50)
    before = torch.get_rng_state()
    one, again, other = view(inputs, generator(1)), view(inputs, generator(1)), view(inputs, generator(2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("noise", "drop"), [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5)])
@pytest.mark.parametrize("where", [slice(3, 17), slice(0, 0), torch.tensor([7, 2, 31])])
def test_parts_of_the_draws(where, noise, drop):
    view, inputs = FeatureView(MEAN, STD, noise=noise, drop=drop), features(40)
    drawn = view.draw(inputs.shape, generator())
    assert torch.equal(view.apply(inputs[where], drawn[where]), view.apply(inputs, drawn)[where])


def test_two_views_differ():
    view = FeatureView(MEAN, STD, noise=0.1, drop=0.1)
    one, two = Views((view, view))(features(30), generator())
    assert not torch.equal(one, two)


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_means_and_deviations_of_all_kinds(kind):
    view = FeatureView(kind([1.0, 2.0]), kind([0.5, 0.25]), noise=1.0, drop=0.5)
    expected = FeatureView(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.25]), noise=1.0, drop=0.5)
    inputs = torch.zeros(20, 2)
    assert torch.equal(view(inputs, generator()), expected(inputs, generator()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_types(dtype):
    result = FeatureView(MEAN, STD, noise=0.1, drop=0.1)(features(20).to(dtype), generator())
    assert result.dtype == dtype


def test_everything_happens_on_the_inputs_device():
    result = FeatureView(MEAN, STD, noise=0.1, drop=0.1)(torch.empty(6, WIDTH, device="meta"), generator())
    assert result.is_meta
    assert result.shape == (6, WIDTH)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_same_numbers_on_a_gpu():
    view, inputs = FeatureView(MEAN, STD, noise=0.3, drop=0.2), features()
    assert torch.equal(view(inputs.cuda(), generator()).cpu(), view(inputs, generator()))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise": -0.1}, "noise must be 0 or more and finite, not -0.1"),
        ({"noise": float("nan")}, "noise must be 0 or more and finite, not nan"),
        ({"drop": 1.5}, "drop must be from 0 to 1, not 1.5"),
        ({"std": [1.0]}, "10 means and 1 deviations"),
        ({"std": -STD}, "std: holds -4.5; a standard deviation is 0 or more"),
        ({"mean": [[1.0]]}, r"mean: must be \(d,\) numbers, one a feature, not float64 of shape \(1, 1\)"),
        ({"mean": [float("nan")] * WIDTH}, "mean: holds NaN, infinity"),
        ({"mean": [1e300] * WIDTH}, "mean: .*too large for float32"),
        ({"mean": ["a"] * WIDTH}, r"mean: must be \(d,\) numbers"),
    ],
)
def test_impossible_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        FeatureView(**({"mean": MEAN, "std": STD} | options))


def test_what_does_not_fit_is_refused():
    view = FeatureView(MEAN, STD, noise=0.1)
    with pytest.raises(InputError, match=r"features must have the shape \(B, 10\), .* not \(5, 9\)"):
        view(torch.zeros(5, 9), generator())
    with pytest.raises(InputError, match=r"not \(5, 3, 8, 8\)"):
        view.draw((5, 3, 8, 8), generator())
    with pytest.raises(InputError, match=r"features must be floating-point numbers, not torch\.uint8"):
        view(torch.zeros(5, WIDTH, dtype=torch.uint8), generator())
    with pytest.raises(InputError, match="parameters of 5 examples were given for 4 feature vectors"):
        view.apply(torch.zeros(4, WIDTH), view.draw((5, WIDTH), generator()))
