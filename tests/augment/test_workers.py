import threading

import pytest
import torch
from tests.oracles.images import natural

from prune4rel.augment import StrongView, draw_frames
from prune4rel.augment.pixels import FEWEST, block_by_block

ALONE = FEWEST // (3 * 32 * 32)

MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, ALONE, ALONE + 1, 700])
def test_threads_do_not_show(monkeypatch, workers, count):
    images, view = natural(count), StrongView(MEAN, STD)
    drawn = view.draw(images.shape, torch.Generator().manual_seed(0))
    expected = torch.empty(images.shape)
    view._fill(expected, images, drawn)
    monkeypatch.setenv("PRUNE4REL_THREADS", str(workers))
    assert torch.equal(view.apply(images, drawn), expected)


def test_blocks_are_large_enough_small_enough_and_alone(monkeypatch):
    monkeypatch.setenv("PRUNE4REL_THREADS", "3")
    seen = []

    def fill(values, images, frames):
        seen.append((len(images), len(frames), torch.get_num_threads(), threading.get_ident()))
        values.copy_(images)

    frames = draw_frames(2000, torch.Generator())
    images = natural(2000)
    outside = torch.get_num_threads()
    assert torch.equal(block_by_block(fill, images, frames, torch.float32), images.float())
    assert torch.get_num_threads() == outside
    sizes, same, threads, places = zip(*seen, strict=True)
    assert sizes == same
    assert sum(sizes) == 2000
    assert FEWEST <= max(sizes) * images[0].numel() <= 400 * 3 * 32 * 32
    assert set(threads) == {1}
    assert threading.get_ident() not in places


def test_one_block_runs_here_and_leaves_the_number_of_threads_alone():
    outside = torch.get_num_threads()
    seen = []

    def fill(values, images, _frames):
        seen.append((torch.get_num_threads(), threading.get_ident()))
        values.copy_(images)

    block_by_block(fill, natural(3), draw_frames(3, torch.Generator()), torch.float32)
    assert seen == [(1, threading.get_ident())]
    assert torch.get_num_threads() == outside


def test_inference_mode_reaches_the_threads():
    images, view = natural(500), StrongView(MEAN, STD)
    expected = view(images, torch.Generator().manual_seed(0))
    with torch.inference_mode():
        result = view(images, torch.Generator().manual_seed(0))
    assert result.is_inference()
    assert torch.equal(result, expected)


def test_errors_reach_the_caller():
    def fill(_values, images, _frames):
        raise RuntimeError(f"no {len(images)}")

    with pytest.raises(RuntimeError, match="no "):
        block_by_block(fill, natural(500), draw_frames(500, torch.Generator()), torch.float32)
