"""``python -m prune4rel``."""

from prune4rel.cli import main

if __name__ == "__main__":
    main()
