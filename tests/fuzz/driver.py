"""Runs every command that writes, in forked children, on a disk that fails or loses its power.

`python driver.py KINDS FOLDER CASES SECONDS SEED` tries so many cases of each kind with each command, or for so many
seconds, and prints what went wrong, a line each. KINDS is faults, power or both with a comma between. For faults the
library made of faults.c has to be loaded first (LD_PRELOAD).
"""

import ctypes
import errno
import io
import os
import random
import shutil
import signal
import sys
import time
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path

import torch
from tests.fuzz.test_readers import same
from tests.fuzz.writers import WRITERS, make_inputs

from prune4rel import cli
from prune4rel.errors import InputError
from prune4rel.methods.prune4rel import compile_loops
from prune4rel.progress import Progress

LONGEST = 120
STATES = ("lost", "empty")
ERRORS = {
    "write": ("ENOSPC", "EIO"),
    "open": ("EACCES", "ENOSPC", "EROFS"),
    "rename": ("EIO", "EACCES", "ENOSPC"),
    "fsync": ("EIO", "ENOSPC"),
    "mkdir": ("ENOSPC", "EACCES", "EIO"),
    "flock": ("ENOLCK", "EIO", "EACCES"),
    "unlink": ("EIO", "EACCES"),
}


def forked(work, home):
    """Do some work in a child; return its exit code and what it said."""
    said = home.parent / "said.txt"
    child = os.fork()
    if not child:
        code = 99
        try:
            os.chdir(home)
            torch.set_num_threads(1)
            signal.alarm(LONGEST)
            code = work(said)
        except BaseException:  # noqa: BLE001 - a child must not go on as if it were the parent
            said.write_text(traceback.format_exc())
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said.read_text() if said.exists() else ""


def command(words, before=lambda: None, after=lambda: None):
    def work(said):
        sys.argv = ["prune4rel", *words]
        text = io.StringIO()
        code = 0
        with redirect_stdout(text), redirect_stderr(text), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            before()
            try:
                cli.main()
            except SystemExit as end:
                code = end.code or 0
            after()
        said.write_text(text.getvalue(), errors="backslashreplace")
        return code

    return work


def found(writer, home):
    """What is read of what a command wrote; None where that is refused with a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return writer.read(home)
        except InputError:
            return None


def remember_imports(place):
    """Import what a child had to import, so that the next ones need not; most of a command's time goes there."""
    listed = place / "imported.txt"
    for name in listed.read_text().split() if listed.exists() else ():
        if name not in sys.modules:
            with suppress(Exception):
                import_module(name)


def whole_run(writer, inputs, place, home, before, after):
    """Run a command as it is on a good disk; return what is read of what it wrote."""

    def told():
        after()
        (place / "imported.txt").write_text("\n".join(sorted(sys.modules)))

    code, said = forked(command(writer.words(inputs), before, told), home)
    if code:
        raise SystemExit(f"{writer.line}: {said}")
    remember_imports(place)
    return writer.read(home)


def some_of(cases, most, seconds, chance):
    """Give cases in an order of chance, until there were enough."""
    chance.shuffle(cases)
    end = time.monotonic() + seconds
    for tried, case in enumerate(cases):
        if tried >= most or time.monotonic() > end:
            return
        yield case


def fresh(place, writer=None):
    home = place / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    (place / "said.txt").unlink(missing_ok=True)
    if writer is not None:
        writer.before(home)
    return home


def agrees(writer, home, whole, inputs):
    """Whether the command, done again, ends as if nothing had happened; else what is wrong."""
    known = found(writer, home)
    if known is not None and not same(known, whole) and writer.line.split()[0] != "review":
        return "what is there reads as something else"
    for again in (False, True):
        code, said = forked(command(writer.words(inputs, again=again)), home)
        if code == 2 and not again and "exists already" in said:
            continue
        if code not in (0, 2) or "Traceback" in said:
            return f"again ended with {code}: {said[-300:]}"
        if code == 0 and writer.line.split()[0] == "review" and "--import" in writer.line:
            return None if found(writer, home) is not None else "decisions cannot be read"
        if code == 0 and same(found(writer, home), whole):
            break
        if again or not writer.again:
            return f"again ended with {code} and another result: {said[-300:]}"
    left = [path.name for path in home.rglob(".*") if path.name.endswith((".part", ".old"))]
    return f"left {left}" if left else None


def faults(place, most, seconds, chance):
    library = ctypes.CDLL(None)
    disarm = lambda: library.fault_arm(-1, 0, 0, 0, b"")  # noqa: E731
    for name, writer in WRITERS.items():
        inputs, home, counts = place / "in", fresh(place, writer), place / "counts.txt"

        def count(counts=counts):
            counts.write_text(" ".join(str(library.fault_count(kind)) for kind in range(len(ERRORS))))
            disarm()

        armed = lambda home=home: library.fault_arm(-1, 0, 0, 0, bytes(home))  # noqa: E731
        whole = whole_run(writer, inputs, place, home, armed, count)
        cases = list(cases_of(list(map(int, counts.read_text().split())), chance))
        for kind, error, number, once in some_of(cases, most, seconds, chance):
            home = fresh(place, writer)
            armed = lambda: library.fault_arm(kind, getattr(errno, error), number, once, bytes(home))  # noqa: B023, E731
            ended = forked(command(writer.words(inputs), armed, disarm), home)
            if trouble := trouble_of(ended, writer, home, whole, inputs):
                yield f"{name}: {list(ERRORS)[kind]} {number} {error}{' once' * once}: {trouble}"


def cases_of(counts, chance):
    """Give the calls that are to fail: kind, error, which, and whether that one alone."""
    for kind, (most, errors) in enumerate(zip(counts, ERRORS.values(), strict=True)):
        numbers = {1, 2, 3, most, *(chance.randint(1, max(1, most)) for _ in range(4))}
        yield from ((kind, error, k, once) for error in errors for k in numbers if k <= most for once in (0, 1))


def trouble_of(ended, writer, home, whole, inputs):
    """Say what is wrong with how a command ended while the disk failed, and with what comes of it afterwards."""
    code, said = ended
    if code not in (0, 2) or "Traceback" in said or (code == 2 and "error:" not in said):
        return f"ended with {code}: {said[-500:]}"
    if code == 0 and not same(found(writer, home), whole):
        return f"ended well, and the result is another: {said[-200:]}"
    trouble = agrees(writer, home, whole, inputs)
    return trouble and f"{said.strip()[-150:]} -> {trouble}"


class Disk:
    """What of a folder is on the disk for certain: files as they were when they were synced, and folders' names.

    It holds every file it knows open, so that no number of one is given to another.
    """

    def __init__(self, home, states):
        self.home, self.states, self.moments = home, states, 0
        self.contents, self.names, self.held = {}, {}, []
        self.sync = os.fsync
        for place, folders, files in os.walk(home):
            self.keep(os.open(place, os.O_RDONLY))
            for name in files:
                if not Path(place, name).is_symlink():
                    self.keep(os.open(Path(place, name), os.O_RDONLY))
            del folders

    def keep(self, descriptor):
        self.held.append(descriptor)
        known = os.fstat(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if not path.is_relative_to(self.home):
            return
        if path.is_dir():
            self.names[known.st_ino] = {each.name: each.stat(follow_symlinks=False).st_ino for each in os.scandir(path)}
        else:
            with open(f"/proc/self/fd/{descriptor}", "rb") as file:  # noqa: PTH123 - also of a file without a name
                self.contents[known.st_ino] = file.read()

    def fsync(self, file):
        descriptor = file if isinstance(file, int) else file.fileno()
        self.sync(descriptor)
        self.keep(os.dup(descriptor))
        self.cut()

    def install(self):
        os.fsync = self.fsync
        rename, replace, unlink = os.rename, os.replace, os.unlink

        def then_cut(act):
            def done(*words, **options):
                result = act(*words, **options)
                self.cut()
                return result

            return done

        os.rename, os.replace, os.unlink = then_cut(rename), then_cut(replace), then_cut(unlink)
        self.own = rename

    def cut(self):
        """Write down the two worst things a disk may hold if the power went now."""
        self.moments += 1
        place = self.states / f"{self.moments:05}"
        (place / "lost").mkdir(parents=True)
        (place / "empty").mkdir()
        self.lost(self.home.stat().st_ino, place / "lost", {})
        self.empty(self.home, place / "empty")

    def lost(self, number, place, _):
        """Nothing that was not synced is there: neither names nor contents."""
        for name, inside in self.names.get(number, {}).items():
            if inside in self.names:
                (place / name).mkdir()
                self.lost(inside, place / name, _)
            elif inside in self.contents:
                (place / name).write_bytes(self.contents[inside])
            elif inside in self.folders():
                (place / name).mkdir()
            else:
                (place / name).touch()

    def folders(self):
        return {Path(place).stat().st_ino for place, _, _ in os.walk(self.home)}

    def empty(self, folder, place):
        """Names are as they are now, and contents as they were when they were synced."""
        for each in os.scandir(folder):
            if each.is_dir(follow_symlinks=False):
                (place / each.name).mkdir()
                self.empty(each.path, place / each.name)
            elif each.is_file(follow_symlinks=False):
                (place / each.name).write_bytes(self.contents.get(each.stat().st_ino, b""))


def power(place, most, seconds, chance):
    inputs = place / "in"
    for name, writer in WRITERS.items():
        home = fresh(place, writer)
        states = place / "states" / name.replace(" ", "-")
        holder = []

        def before(home=home, states=states, holder=holder):
            holder.append(Disk(home, states))
            holder[0].install()

        whole = whole_run(writer, inputs, place, home, before, lambda holder=holder: holder[0].cut())
        *moments, last = sorted(states.iterdir())
        for kind in STATES:
            if not same(found(writer, last / kind), whole):
                yield f"{name}: after it returned, power cut ({kind}): what it wrote is gone"
        for state in some_of([moment / kind for moment in moments for kind in STATES], most, seconds, chance):
            home = fresh(place)
            home.rmdir()
            shutil.copytree(state, home)
            if trouble := agrees(writer, home, whole, inputs):
                yield f"{name}: power cut at {state.parent.name} ({state.name}): {trouble}"


def main(kinds, place, most, seconds, seed):
    warnings.simplefilter("ignore")
    cli.load_verbs()
    compile_loops(Progress())
    with suppress(FileNotFoundError):
        shutil.rmtree(place / "in")

    def made(_):
        make_inputs(place / "in")
        (place / "imported.txt").write_text("\n".join(sorted(sys.modules)))
        return 0

    ended = forked(made, place)
    if ended[0]:
        raise SystemExit(f"inputs: {ended}")
    remember_imports(place)
    wrong = 0
    for kind in kinds.split(","):
        chance = random.Random(seed)  # noqa: S311 - no secret
        for line in {"faults": faults, "power": power}[kind](place, most, seconds / len(WRITERS), chance):
            wrong += 1
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    return wrong


if __name__ == "__main__":
    kinds, place, *numbers = sys.argv[1:]
    sys.exit(1 if main(kinds, Path(place).resolve(), *map(int, numbers)) else 0)
