"""What a run folder says of itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prune4rel._version import __version__
from prune4rel.atomic import put_aside
from prune4rel.errors import InputError, in_a_line
from prune4rel.progress import Progress
from prune4rel.provenance import versions
from prune4rel.reading import read_json, read_record
from prune4rel.steps import KINDS
from prune4rel.steps.select import OwnMethod
from prune4rel.storage import to_json, write_whole

FORMAT = 1
CONFIG, MANIFEST = "config.yaml", "manifest.json"


def now() -> str:
    """Return the time, for people and programs."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class _Facts:
    """What is read of a manifest."""

    format: int
    versions: Mapping[str, str]
    begun: str = ""
    device: str = ""
    own: Mapping[str, OwnMethod] = field(default_factory=dict)


def read_manifest(home: Path) -> dict[str, Any] | None:
    """Return the manifest of a run folder, or None where there is none; refuse one of another format."""
    path = home / MANIFEST
    if not path.exists():
        return None
    manifest: dict[str, Any] = read_json(path, "manifest of a run")
    facts = read_record(_Facts, manifest, path)
    if facts.format != FORMAT:
        made_by = facts.versions.get("prune4rel", "another version")
        raise InputError(
            f"{home}: was written by version {in_a_line(made_by)} of prune4rel, whose folders look different (format "
            f"{facts.format}, here {FORMAT}); use that version, or choose another folder"
        )
    return manifest


def own_methods(home: Path, manifest: dict[str, Any]) -> dict[str, OwnMethod]:
    """Return what a run folder says of methods in code of the user's own, by their names."""
    return dict(read_record(_Facts, manifest, home / MANIFEST).own)


def open_manifest(home: Path, *, restart: bool, progress: Progress) -> dict[str, Any]:
    """Read what is known of a folder to work in, or begin; refuse a folder that holds something else."""
    found = read_manifest(home)
    if found is None:
        strangers = sorted(each.name for each in home.iterdir() if not each.name.startswith("."))
        if strangers:
            raise InputError(f"{home}: holds {strangers[0]!r} but no run; choose an empty or a new folder")
    if found is None or restart:
        for kind in KINDS:
            put_aside(home / kind.place)
        return {"format": FORMAT, "versions": versions(), "begun": now()}
    before = found["versions"]["prune4rel"]
    if before != __version__:
        progress.say(f"{home}: begun by version {before} of prune4rel, going on with {__version__}")
    return {**found, "versions": versions()}


def write_manifest(home: Path, manifest: dict[str, Any]) -> None:
    """Write it."""
    plain = json.loads(to_json(manifest))
    text = json.dumps(plain, indent=1) + "\n"  # in ASCII: a path may hold bytes that are no text
    write_whole(home / MANIFEST, lambda part: part.write_text(text, encoding="utf-8"), force=True)
