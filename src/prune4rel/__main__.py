"""``prune4rel``, and ``python -m prune4rel``: can be interrupted before anything else is imported."""

import os
import sys
from contextlib import suppress
from typing import NoReturn

from prune4rel.ending import heard_by, leave


def main() -> NoReturn:
    """Run the command line."""
    heard_by(leave)
    from prune4rel.cli import main as run  # noqa: PLC0415 - what takes a moment comes after a listener is there

    run()


if __name__ == "__main__":
    # Python puts the current folder first: what lies about there would be imported in place of an installed package
    with suppress(FileNotFoundError):  # it has gone
        first, home = os.path.realpath(sys.path[0]), os.path.realpath(f"{__file__}/../..")
        if not sys.flags.safe_path and first == os.path.realpath(os.curdir) and first != home:
            del sys.path[0]

    main()
