"""Finished tiles: kept in a work folder, so that a driver that starts again goes on where the last one ended."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from prune4rel.engines.ray.tiles import unpack
from prune4rel.errors import InputError
from prune4rel.neighbours.graph import Edges
from prune4rel.storage import to_json, write_json, write_whole

Tile = tuple[int, int]


class TileStore:
    """Edges by tile: packed in a folder, or in memory where there is none.

    In memory they are unpacked when they come, while workers are at the tiles that are left.

    Parameters
    ----------
    folder
        The work folder, or None. Tiles of different runs lie apart in it.
    run
        Everything the tiles depend on; another `run` has other tiles.
    """

    def __init__(self, folder: str | Path | None, run: Mapping[str, Any]) -> None:
        self._memory: dict[Tile, Edges] = {}
        self._folder: Path | None = None
        if folder is None:
            return
        key = hashlib.sha256(to_json(dict(sorted(run.items()))).encode()).hexdigest()[:16]
        self._folder = Path(folder) / f"graph-{key}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be used as the work folder ({error.strerror or error})") from None
        write_json(self._folder / "run.json", run, force=True)

    def put(self, tile: Tile, packed: bytes) -> None:
        """Keep a tile, whole or not at all."""
        if self._folder is None:
            self._memory[tile] = unpack(packed)
        else:
            write_whole(self._path(tile), lambda part: part.write_bytes(packed) and None, force=True)

    def get(self, tile: Tile) -> Edges | None:
        """Edges of a tile; None where it is not kept, or no longer readable."""
        if self._folder is None:
            return self._memory.get(tile)
        try:
            return unpack(self._path(tile).read_bytes())
        except (OSError, pa.ArrowException):
            return None

    def drop(self) -> None:
        """Let go of what is in memory; what is in the folder stays."""
        self._memory.clear()

    def _path(self, tile: Tile) -> Path:
        if self._folder is None:
            raise AssertionError("tiles in memory have no path")
        return self._folder / f"tile-{tile[0]:05d}-{tile[1]:05d}.parquet"
