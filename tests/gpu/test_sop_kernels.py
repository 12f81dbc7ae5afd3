"""The kernels of SOP beside the same losses in plain PyTorch, in double precision."""

import pytest
import torch

from prune4rel.learners.losses import Aims
from prune4rel.learners.sop import EPSILON, Weights, losses
from prune4rel.loading.schedule import Ranks

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def inputs(count, n_classes, views, scale, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator).cuda()

    labels = torch.randint(0, n_classes, (count,), generator=generator).cuda()
    return scale * draw(views * count, n_classes), labels, 0.7 * draw(count, 1), 0.6 * draw(count, n_classes)


@pytest.mark.parametrize(("count", "n_classes"), [(128, 10), (7, 3), (33, 100), (512, 256), (1, 2), (300, 14)])
@pytest.mark.parametrize("weights", [None, Weights(0.9, 0.1), Weights(0.0, 0.0)])
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_losses_and_gradients_are_those_of_the_plain_version(count, n_classes, weights, scale):
    from prune4rel.gpu.sop_kernels import fused_losses

    logits, labels, u, v = inputs(count, n_classes, 1 if weights is None else 2, scale)
    ours = [tensor.clone().requires_grad_() for tensor in (logits, u, v)]
    plain = [tensor.double().requires_grad_() for tensor in (logits, u, v)]
    total, parts = fused_losses(ours[0], labels, *ours[1:], weights, EPSILON)
    wanted, wanted_parts = losses(plain[0], labels, *plain[1:], weights, count, Ranks())
    check(ours, total, parts, plain, wanted, wanted_parts)


@pytest.mark.parametrize(("count", "n_classes"), [(128, 10), (7, 3), (33, 100), (512, 256), (1, 2), (300, 14)])
def test_aims_weigh_labels_and_teach_strong_views(count, n_classes):
    from prune4rel.gpu.sop_kernels import fused_losses

    logits, labels, u, v = inputs(count, n_classes, 2, 3.0)
    generator = torch.Generator().manual_seed(1)
    trusted = (torch.rand(count, generator=generator) > 0.4).float().cuda()
    guesses = torch.randint(0, n_classes, (count,), generator=generator).cuda()
    believed = torch.rand(count, generator=generator).cuda() * (1 - trusted)
    ours = [tensor.clone().requires_grad_() for tensor in (logits, u, v)]
    plain = [tensor.double().requires_grad_() for tensor in (logits, u, v)]
    weights = Weights(0.9, 0.1)
    total, parts = fused_losses(ours[0], labels, *ours[1:], weights, EPSILON, Aims(trusted, guesses, believed))
    doubled = Aims(trusted.double(), guesses, believed.double())
    wanted, wanted_parts = losses(plain[0], labels, *plain[1:], weights, count, Ranks(), doubled)
    check(ours, total, parts, plain, wanted, wanted_parts)
    assert len(parts) == 5


def check(ours, total, parts, plain, wanted, wanted_parts):
    (2 * total).backward()
    (2 * wanted).backward()
    torch.testing.assert_close(total.double(), wanted, rtol=1e-5, atol=1e-5)
    for part, wanted_part in zip(parts, wanted_parts, strict=True):
        assert not part.requires_grad
        torch.testing.assert_close(part.double(), wanted_part, rtol=1e-5, atol=1e-5)
    for mine, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine.grad.double(), other.grad, rtol=1e-4, atol=1e-6)


def test_the_same_bits_every_time():
    from prune4rel.gpu.sop_kernels import losses_and_gradients

    given = inputs(128, 100, 2, 3.0)
    first, again = (losses_and_gradients(*given, Weights(0.9, 0.1), EPSILON) for _ in range(2))
    assert all(map(torch.equal, first, again))
