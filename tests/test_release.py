"""A release is what its tag says, and nothing is sent anywhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prune4rel import __version__

ROOT = Path(__file__).parents[1]
GIT = shutil.which("git") or ""
pytestmark = pytest.mark.skipif(not GIT or not (ROOT / ".ci").is_dir(), reason="no checkout with git, but an sdist")


@pytest.fixture
def checkout(tmp_path):
    """A repository of its own that holds what is tracked here, tagged, with a dated changelog."""
    listed = subprocess.run([GIT, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("this is no checkout of git")
    home = tmp_path / "checkout"
    for name in filter(None, listed.split("\0")):
        if not name.startswith(("tests/", "results/")) and (ROOT / name).is_file():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, home / name)
    for folder in ("tests", "results"):
        (home / folder).mkdir(exist_ok=True)
    changes = (home / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.sub(rf"(## \[{re.escape(__version__)}\] - )\S+", r"\g<1>2026-01-01", changes)
    (home / "CHANGELOG.md").write_text(dated, encoding="utf-8")
    git(home, "init", "-q")
    git(home, "add", "-A")
    git(home, "commit", "-qm", "all")
    git(home, "tag", f"v{__version__}")
    return home


def git(home, *words):
    someone = {f"GIT_{who}_{what}": "one@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run([GIT, *words], cwd=home, check=True, env=os.environ | someone)


def release(home, tag=f"v{__version__}"):
    own = {"SKIP_TESTS": "1", "PYTHON": sys.executable}
    return subprocess.run(
        [home / ".ci" / "release", tag], cwd=home, capture_output=True, text=True, check=False, env=os.environ | own
    )


def test_what_is_published_is_built_and_summed_up(checkout):
    done = release(checkout)
    assert done.returncode == 0, done.stderr
    made = {path.name for path in (checkout / "dist").iterdir()}
    wheel, sdist = f"prune4rel-{__version__}-py3-none-any.whl", f"prune4rel-{__version__}.tar.gz"
    assert {wheel, sdist, "SHA256SUMS", "NOTES.md"} <= made
    assert {wheel, sdist} <= set((checkout / "dist" / "SHA256SUMS").read_text().split())
    assert (checkout / "dist" / "NOTES.md").read_text(encoding="utf-8").strip()
    assert "upload" in done.stdout
    assert release(checkout).returncode == 0, "again"


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("CITATION.cff", f"version: {__version__}", "version: 9.9", "CITATION.cff has another version"),
        ("CHANGELOG.md", "2026-01-01", "unreleased", "no dated section"),
        ("src/prune4rel/_version.py", f'"{__version__}"', '"9.9"', "_version.py has another version"),
    ],
)
def test_what_disagrees_with_the_tag_is_refused(checkout, name, old, new, words):
    text = (checkout / name).read_text(encoding="utf-8")
    (checkout / name).write_text(text.replace(old, new), encoding="utf-8")
    assert "not committed" in release(checkout).stderr
    git(checkout, "commit", "-qam", "another")
    assert "HEAD is not what" in release(checkout).stderr
    git(checkout, "tag", "-f", f"v{__version__}")
    done = release(checkout)
    assert done.returncode == 1
    assert words in done.stderr


def test_the_citation_names_this_version():
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
