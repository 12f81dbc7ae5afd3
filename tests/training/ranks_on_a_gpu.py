"""What each of two processes on one GPU does: ``python -m tests.training.ranks_on_a_gpu FOLDER``.

NCCL wants a GPU for every process. On a single one, tensors travel by gloo instead; everything else is as with NCCL.
"""

import sys
from pathlib import Path
from unittest.mock import patch

import torch
from tests.training import ranks_at_work as ranked

from prune4rel.training import distributed


def work(folder):
    torch.backends.cudnn.allow_tf32 = False  # rounds so much that the size of a batch tells
    start = torch.distributed.init_process_group
    one_gpu = patch.object(distributed, "_own_device", lambda _: torch.device("cuda", 0))
    by_gloo = patch.object(torch.distributed, "init_process_group", lambda _, **options: start("gloo", **options))
    with one_gpu, by_gloo, distributed.join("cuda") as (ranks, device):
        ranked.leave(folder, ranks, *ranked.follow_all(ranks, device))


if __name__ == "__main__":
    work(Path(sys.argv[1]))
