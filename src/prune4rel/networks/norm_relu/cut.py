"""How the work of the kernels is cut up."""

from typing import NamedTuple

TILE, MOST_COLUMNS, WARPS = 4096, 64, 4
"""Numbers a program changes together, in how many channels at most, by how many warps."""

TILE_OF_SUMS, MOST_COLUMNS_OF_SUMS, WARPS_OF_SUMS = 8192, 32, 4
"""Likewise for a program that adds up: it keeps as many sums in its registers. Found by trying, on an H200."""

MOST_PROGRAMS = 256
"""Programs that add up; about two for each multiprocessor of a large GPU."""


class Cut(NamedTuple):
    """How a matrix is cut up: rows and columns of a tile, tiles from top to bottom and from left to right."""

    rows: int
    columns: int
    down: int
    across: int

    @property
    def parts(self) -> int:
        """How many programs share the places of a channel where they are added up."""
        return min(self.down, max(1, MOST_PROGRAMS // self.across))

    @property
    def sizes(self) -> dict[str, int]:
        """What kernels that change numbers have to know beforehand."""
        return {"ROWS": self.rows, "COLUMNS": self.columns, "num_warps": WARPS}

    @property
    def sizes_of_sums(self) -> dict[str, int]:
        """What kernels that add up have to know beforehand."""
        return {**self.sizes, "PARTS": _power_of_two(self.parts), "num_warps": WARPS_OF_SUMS}


def cut(places: int, channels: int, tile: int, most_columns: int) -> Cut:
    """Cut a matrix of places by channels up.

    >>> cut(262144, 64, 8192, 32), cut(262144, 64, 8192, 32).parts
    (Cut(rows=256, columns=32, down=1024, across=2), 128)
    """
    columns = min(most_columns, _power_of_two(channels))
    rows = min(tile // columns, _power_of_two(places))
    return Cut(rows, columns, _parts(places, rows), _parts(channels, columns))


def cut_for_sums(places: int, channels: int) -> Cut:
    """Cut a matrix up that is added up."""
    return cut(places, channels, TILE_OF_SUMS, MOST_COLUMNS_OF_SUMS)


def cut_for_changes(places: int, channels: int) -> Cut:
    """Cut a matrix up that is changed number by number."""
    return cut(places, channels, TILE, MOST_COLUMNS)


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _parts(whole: int, size: int) -> int:
    return -(-whole // size)
