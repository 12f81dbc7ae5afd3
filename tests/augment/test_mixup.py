import pytest
import torch
from tests.oracles.images import natural

from prune4rel.augment import Mixture, draw_mixture, mix
from prune4rel.errors import InputError


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_mix_is_the_formula_for_images_and_labels():
    mixture = draw_mixture(6, 1.0, generator(), one_share=False)
    for values in (natural(6).float(), torch.eye(6), torch.rand(6)):
        expected = [
            share * values[k] + (1 - share) * values[partner]
            for k, (partner, share) in enumerate(zip(mixture.partners, mixture.shares, strict=True))
        ]
        torch.testing.assert_close(mix(values, mixture), torch.stack(expected))


def test_uint8_is_rounded():
    images = natural(10)
    mixture = draw_mixture(10, 4.0, generator())
    result = mix(images, mixture)
    assert result.dtype == torch.uint8
    assert torch.equal(result, mix(images.float(), mixture).round().to(torch.uint8))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_the_type_is_kept(dtype):
    assert mix(torch.rand(4, 2).to(dtype), draw_mixture(4, 1.0, generator())).dtype == dtype


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 4.0])
def test_shares_are_beta(alpha):
    shares = draw_mixture(100_000, alpha, generator(), one_share=False).shares.double()
    variance = 1 / (4 * (2 * alpha + 1))
    assert ((shares >= 0) & (shares <= 1)).all()
    assert abs(shares.mean() - 0.5) < 5 * (variance / 100_000) ** 0.5
    assert shares.var().item() == pytest.approx(variance, rel=0.03)


def test_mostly_itself():
    shares = draw_mixture(1000, 0.5, generator(), mostly_itself=True, one_share=False).shares
    assert (shares >= 0.5).all()
    assert len(shares.unique()) > 900


def test_one_share_for_all():
    assert len(draw_mixture(1000, 1.0, generator()).shares.unique()) == 1


def test_partners_are_a_permutation_and_a_seed_says_it_all():
    first, second = draw_mixture(1000, 1.0, generator()), draw_mixture(1000, 1.0, generator())
    assert torch.equal(first.partners.sort().values, torch.arange(1000))
    assert torch.equal(first.partners, second.partners)
    assert torch.equal(first.shares, second.shares)
    assert not torch.equal(first.shares, draw_mixture(1000, 1.0, generator(1)).shares)


def test_tiny_alpha_gives_no_nan():
    shares = draw_mixture(10_000, 1e-3, generator(), one_share=False).shares
    assert not shares.isnan().any()


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("one_share", [True, False])
def test_none_and_one(count, one_share):
    values = torch.rand(count, 3)
    result = mix(values, draw_mixture(count, 1.0, generator(), one_share=one_share))
    torch.testing.assert_close(result, values)


def test_bad_input():
    with pytest.raises(InputError, match="alpha must be above 0"):
        draw_mixture(4, 0.0, generator())
    with pytest.raises(InputError, match="mixture of 2 examples was given for a batch of 3"):
        mix(torch.rand(3), Mixture(torch.arange(2), torch.ones(2)))
