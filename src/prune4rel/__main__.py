"""``python -m prune4rel``."""

import os
import sys

if __name__ == "__main__":
    # Python puts the current folder first: what lies about there would be imported in place of an installed package
    first, home = os.path.realpath(sys.path[0]), os.path.realpath(f"{__file__}/../..")
    if not sys.flags.safe_path and first == os.path.realpath(os.curdir) and first != home:
        del sys.path[0]

    from prune4rel.cli import main

    main()
