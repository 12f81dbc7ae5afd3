"""How quick the page of `prune4rel review` is in headless Chromium, and what it looks like.

    python benchmarks/review_page.py first              the first page, of a million labels
    python benchmarks/review_page.py act                from a key to the next example, and other actions
    python benchmarks/review_page.py scroll             frames while 100,000 texts, and as many pictures, scroll by
    python benchmarks/review_page.py picture OUT.png    the digits of scikit-learn, a fifth with a wrong label

Everything is measured inside the page, of a server in a process of its own; the texts are words drawn by chance, the
pictures noise in a thousand files that are named a hundred times each.
"""

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from common import table

sys.path.insert(0, str(Path(__file__).parent.parent))
browser, folders, serving, shown = (
    import_module(f"tests.{name}")
    for name in ("report.chromium", "review.folders", "review.serving", "review.test_page")
)
ACTIONS = {"keep": "k", "another class": "2", "cannot tell": "t", "remove": "r", "skip": "s", "undo": "z", "grid": "g"}
TIMES = 30
FILES = 1000
WATCH = """(() => {
  window.taken = null;
  let begun = 0;
  addEventListener('keydown', () => { begun = performance.now(); taken = null; }, true);
  const seen = () => requestAnimationFrame(() => { taken ??= performance.now() - begun; });
  const main = document.getElementById('main'), words = { childList: true, characterData: true, subtree: true };
  new MutationObserver(seen).observe(main, { ...words, attributes: true, attributeFilter: ['hidden', 'data-row'] });
})()"""


def visit(chromium: Any, server: Any) -> Any:
    page = chromium.open(server.url, width=1280, height=800)
    page.wait(shown.READY)
    return page


def pictures_folder(place: Path, n: int) -> Path:
    """Write a table that names files of noise, and labels as `prune4rel clean` writes them."""
    rng = np.random.default_rng(0)
    (place / "files").mkdir()
    for number in range(FILES):
        pixels = rng.integers(0, 255, (96, 96, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / "files" / f"{number}.jpg")
    names = np.array(folders.DIGITS)[rng.integers(0, 10, n)]
    paths = [f"files/{row % FILES}.jpg" for row in range(n)]
    pq.write_table(pa.table({"path": paths, "label": names}), place / "pictures.parquet")
    folders.write_labels(place / "cleaned", "table", place / "pictures.parquet", rng)
    return place / "cleaned"


def first(chromium: Any, place: Path, n: int) -> None:
    folder = folders.texts_folder(place, n)
    begun = perf_counter()
    server = serving.Server(folder, place / "cache")
    started = perf_counter() - begun
    body = []
    for number in range(5):
        page = visit(chromium, server)
        shown = page.run("performance.getEntriesByName('ready')[0].startTime")
        body.append((f"window {number + 1}", f"{shown:.0f}"))
        page.close()
    server.kill()
    table(f"First page of {n:,} texts; the server had started after {started:.1f} s", ("", "ms"), body)


def act(chromium: Any, place: Path, n: int) -> None:
    body = []
    for name, folder in (
        ("digits", folders.digits_folder(place / "digits")),
        (f"{n:,} texts", folders.texts_folder(place, n)),
    ):
        server = serving.Server(folder, place / "cache")
        page = visit(chromium, server)
        page.run(WATCH)
        for action, key in ACTIONS.items():
            times = []
            for _ in range(TIMES):
                page.hit(key, key)
                page.wait("taken !== null")
                times.append(page.run("taken"))
                page.settle()
            body.append((name, action, f"{np.median(times):.0f}", f"{quantiles(times, n=20)[-1]:.0f}"))
        page.close()
        server.kill()
    table("From a key to what it shows", ("", "action", "median, ms", "95th percentile, ms"), body)


def scroll(chromium: Any, place: Path, n: int) -> None:
    body = []
    for name, make in (("texts", folders.texts_folder), ("pictures", pictures_folder)):
        (place / name).mkdir()
        server = serving.Server(make(place / name, n), place / "cache")
        page = visit(chromium, server)
        page.press("g", "g")
        page.wait("document.querySelectorAll('#cells li').length > 10")
        for again in ("first time", "once more"):
            page.run("document.getElementById('scroll').scrollTop = 0")
            page.settle()
            times = page.run(shown.SCROLL)
            body.append((f"{n:,} {name}", again, f"{np.median(times):.0f}", f"{quantiles(times, n=20)[-1]:.0f}"))
        page.close()
        server.kill()
    table("A frame while scrolling", ("", "", "median, ms", "95th percentile, ms"), body)


def picture(chromium: Any, place: Path, out: Path) -> None:
    server = serving.Server(folders.digits_folder(place / "cleaned"), place / "cache")
    page = visit(chromium, server)
    page.run("document.getElementById('who').value = 'ann'")
    for number, key in enumerate("aakaa"):
        page.press(key, key)
        page.wait(f"document.getElementById('counter').textContent.startsWith('{number + 1} of')")
        page.wait(f"document.getElementById('where').textContent.startsWith('{number + 2} of')")
    while page.run("document.querySelector('[data-act=accept]').disabled"):
        page.press("s", "s")
        page.settle()
    page.wait("getComputedStyle(document.getElementById('status')).opacity === '0'")
    page.wait("[...document.images].every((image) => image.complete && image.naturalWidth)")
    page.settle()
    page.screenshot(out, full=False)
    server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("first", "act", "scroll", "picture"))
    parser.add_argument("out", type=Path, nargs="?", default=Path("review.png"))
    parser.add_argument("--n", type=int)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        chromium = browser.Chromium(place / "profile")
        try:
            if given.what == "picture":
                picture(chromium, place, given.out)
            else:
                many = given.n or (1_000_000 if given.what == "first" else 100_000)
                {"first": first, "act": act, "scroll": scroll}[given.what](chromium, place, many)
        finally:
            chromium.close()


if __name__ == "__main__":
    main()
