"""``prune4rel review``: a local page on which a person settles labels."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, echo, secho

from prune4rel.cli import app, heed, was_told
from prune4rel.errors import InputError

if TYPE_CHECKING:
    from prune4rel.review import ReviewFolder

PORT = 8765
SERVER, FILES = "Server", "Decisions"


@app.command()
def review(
    folder: Annotated[Path, Argument(help="The folder that `prune4rel clean` wrote, or one with a labels.parquet.")],
    *,
    order: Annotated[
        str, Option(help="What to show first: doubt, worth, suspicion, random (for an honest audit) or row.")
    ] = "worth",
    seed: Annotated[int, Option(help="Of the random order.")] = 0,
    decisions: Annotated[
        Path | None, Option(help="The file of decisions; decisions.jsonl in the folder.", rich_help_panel=FILES)
    ] = None,
    take_in: Annotated[
        Path | None,
        Option("--import", help="Add the decisions of this CSV or .jsonl, and stop.", rich_help_panel=FILES),
    ] = None,
    give_out: Annotated[
        Path | None, Option("--export", help="Write the decisions that stand as CSV, and stop.", rich_help_panel=FILES)
    ] = None,
    read_only: Annotated[bool, Option("--read-only", help="Look, but do not decide.", rich_help_panel=SERVER)] = False,
    port: Annotated[int, Option(help="Where to listen; 0 for any that is free.", rich_help_panel=SERVER)] = PORT,
    host: Annotated[
        str, Option(help="Where to listen; anything but 127.0.0.1 lets others in.", rich_help_panel=SERVER)
    ] = "127.0.0.1",
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Open the page in a browser.", rich_help_panel=SERVER)
    ] = True,
    force: Annotated[bool, Option("--force", help="Replace an existing CSV.", rich_help_panel=FILES)] = False,
) -> None:
    """Settle labels by hand, by keyboard, on a page of your own machine.

    prune4rel review cleaned/

    Every decision is on disk (decisions.jsonl) before the page says so. `clean`, `select`, `run` and `train` take it
    by --decisions. The page is for whoever has its whole address; it asks nothing of any other machine.
    """
    from prune4rel.review import ReviewFolder
    from prune4rel.review.order import check_order

    check_order(order)
    if not 0 <= port < 2**16:
        raise InputError(f"--port must be 0 to {2**16 - 1}, not {port}")
    if folder.name == "labels.parquet" and folder.is_file():
        folder = folder.parent
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the one that `prune4rel clean` wrote")
    opened = ReviewFolder(folder, decisions)
    for line in (*(f"{opened.log.path}: {each}" for each in opened.log.damage), *opened.log.refused):
        secho(f"note: {line}", err=True, fg="yellow")
    if take_in is not None:
        _take_in(opened, take_in)
    if give_out is not None:
        _give_out(opened, give_out, force=force)
    if take_in is None and give_out is None:
        _serve(opened, order, seed, host=host, port=port, read_only=read_only, browser=browser)


def _take_in(folder: "ReviewFolder", path: Path) -> None:
    """Add decisions from a file to those of the folder."""
    from dataclasses import replace

    from prune4rel.decisions import Whereabouts, me, read_decisions
    from prune4rel.decisions.refusals import Refusals

    labels = folder.labels
    decisions, notes = read_decisions(path)
    where = Whereabouts(len(labels), labels.class_names, labels.given_label, labels.ids, labels.content)
    found, refused = [], Refusals()
    for each in decisions:
        try:
            row = where.row_of(each)
            label = each.label or labels.class_names[labels.given_label[row]]
            here = folder.decision(row, each.what, label, each.who or me())
        except InputError as error:
            refused.add(error)
            continue
        found.append(replace(here, when=each.when, bulk=each.bulk))
    if decisions and not found:
        raise InputError(f"{path}: none of its decisions is about these examples: {refused.lines[0]}")
    for line in (*notes, *refused.lines):
        secho(f"note: {line}", err=True, fg="yellow")
    if found:
        folder.log.append(found)
    echo(f"{len(found):,} decisions added to {folder.log.path}")


def _give_out(folder: "ReviewFolder", path: Path, *, force: bool) -> None:
    """Write the decisions that stand as CSV."""
    from prune4rel.decisions import write_csv
    from prune4rel.storage import write_whole

    if path.suffix != ".csv":
        raise InputError(f"{path}: decisions are written as .csv; decisions.jsonl itself is in {folder.path}")
    standing = folder.log.standing
    write_whole(path, lambda part: write_csv((standing[row] for row in sorted(standing)), part), force=force)
    echo(f"{len(standing):,} decisions written to {path}")


def _serve(
    folder: "ReviewFolder", order: str, seed: int, *, host: str, port: int, read_only: bool, browser: bool
) -> None:
    """Serve the page until it is interrupted."""
    import webbrowser
    from importlib.util import find_spec
    from threading import Timer

    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise InputError(
            f"`prune4rel review` needs {missing[0]}, which is not installed: pip install 'prune4rel[review]'"
        )
    import uvicorn

    class _Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            self.should_exit |= was_told()  # from here on it hears of signals itself

    from prune4rel.data.decode import no_warnings
    from prune4rel.review.server import LOOPBACK, listen, make_app
    from prune4rel.review.session import Review
    from prune4rel.review.thumbnails import Thumbnails

    cache, token = _private_place(folder.path)
    if not read_only and (trouble := folder.log.why_not_writable()):
        secho(f"note: {trouble}; this is a read-only look", err=True, fg="yellow")
        read_only = True
    for line in filter(None, (folder.trouble, folder.outside)):
        secho(f"note: {line}", err=True, fg="yellow")
    dataset = folder.dataset
    thumbnails = None if dataset is None or folder.kind != "pictures" else Thumbnails(dataset.splits(), cache)
    review_of = Review(folder, order=order, seed=seed, read_only=read_only)
    review_of.prepare()
    with listen(host, port) as place:
        port = place.getsockname()[1]
        application = make_app(review_of, thumbnails, token=token, host=host, port=port)
        shown = f"[{host}]" if ":" in host else "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 # nosec
        address = f"http://{shown}:{port}/?token={token}"
        if host not in LOOPBACK:
            secho(
                f"warning: listening on {host}, unencrypted: whoever reads the address on its way can look and decide",
                err=True,
                fg="red",
            )
        echo(f"{len(folder.labels):,} labels, {len(folder.log.standing):,} decided. The page (Ctrl+C ends it):")
        echo(f"\n  {address}\n")
        if browser and host in LOOPBACK and os.environ.get("BROWSER", "") != "none":
            Timer(0.5, webbrowser.open, [address]).start()
        config = uvicorn.Config(application, log_level="warning", access_log=False, server_header=False, lifespan="off")
        with no_warnings():
            _Server(config).run(sockets=[place])
    heed()
    echo(f"{len(folder.log.standing):,} decided, in {folder.log.path}")


def _private_place(folder: Path) -> tuple[Path | None, str]:
    """Return a folder of this user's for thumbnails, and the token of a reviewed folder, the same at every start.

    Where there is none that only this user can read, nothing is kept and the token is new.
    """
    import hashlib
    import secrets

    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = base / "prune4rel" / "review" / name
    fresh = secrets.token_urlsafe(24)
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = place / "token"
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            mine = file.stat()
            kept = file.read_text(encoding="ascii").strip()
            safe = len(kept) == len(fresh) and (
                os.name == "nt" or (mine.st_uid == os.getuid() and not mine.st_mode & 0o077)
            )
            return place / "thumbnails", kept if safe else fresh
        with os.fdopen(descriptor, "w", encoding="ascii") as written:
            written.write(fresh)
    except (OSError, UnicodeDecodeError):
        return None, fresh
    return place / "thumbnails", fresh
