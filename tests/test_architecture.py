"""Who may import whom: one direction, never upward. And names: one thing, one name."""

import ast
from collections import Counter, defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "prune4rel"
FLOORS = (
    (
        "errors",
        "ending",
        "atomic",
        "contents",
        "file_prints",
        "reading",
        "lock",
        "_version",
        "_compiled",
        "machine",
        "blocks",
        "progress",
        "half",
        "storage",
        "text_arrays",
        "provenance",
        "registry",
        "noise",
    ),
    ("signals", "selection", "labels", "decisions", "shards", "signal_shards", "bridges"),
    ("gpu",),
    ("neighbours", "gradients", "augment", "networks"),
    ("data", "loading"),
    ("greedy", "inference"),
    ("engines",),
    ("methods", "learners", "judging", "encoders"),
    ("training", "report", "review"),
    ("cleaning", "exporting"),
    ("steps", "sklearn", "torch", "lightning", "transformers"),
    ("pipeline",),
    ("recipes",),
    ("cli", "__init__", "__main__"),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
ARRAYS_ONLY = ("neighbours", "greedy", "methods", "judging")
"""Rooms that know nothing of images, models or training."""
MOST_LINES = 500


paths = sorted(SOURCE.rglob("*.py"))
trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path, tree=None):
    """Names of all modules of this package that are imported anywhere in a file: inside functions, too.

    Types, relative imports, ``import prune4rel.x`` and ``import_module("prune4rel.x")`` count like all others.
    """
    package = ("prune4rel", *path.relative_to(SOURCE).parent.parts)
    for node in ast.walk(tree or trees[path]):
        if isinstance(node, ast.ImportFrom):
            home = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*home, *([node.module] if node.module else [])])
            yield from ([f"{module}.{name.name}" for name in node.names] if module == "prune4rel" else [module])
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (word.value for word in node.args[:1] if isinstance(word, ast.Constant))


def rooms_imported(path, tree=None):
    """Rooms that a file imports from, its own aside; ``import prune4rel`` is the roof's ``__init__``."""
    for module in imports_of(path, tree):
        first, *rest = module.split(".")
        if first == "prune4rel":
            room = rest[0] if rest and rest[0] in FLOOR_OF else "__init__"
            if room != room_of(path):
                yield room


@pytest.mark.parametrize("path", paths, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_imports_upward(path):
    room = room_of(path)
    assert room in FLOOR_OF, f"say in FLOORS where {room} stands"
    for other in rooms_imported(path):
        assert FLOOR_OF[other] <= FLOOR_OF[room], f"{room} must not import {other}"


@pytest.mark.parametrize("path", paths, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_import_leads_somewhere(path):
    modules = {".".join(("prune4rel", *other.relative_to(SOURCE).with_suffix("").parts)) for other in paths}
    for module in imports_of(path):
        if module.startswith("prune4rel.") and module.count(".") > 1:
            assert module in modules or f"{module}.__init__" in modules, f"{path}: there is no {module}"


def test_rooms_of_arrays_know_nothing_of_images_or_models():
    allowed = {*FLOORS[0], *FLOORS[1], *ARRAYS_ONLY, "gradients", "engines"}
    for path in paths:
        if room_of(path) in ARRAYS_ONLY:
            assert set(rooms_imported(path)) <= allowed, path


@pytest.mark.parametrize(
    ("line", "rooms"),
    [
        ("from prune4rel.cli import app", ["cli"]),
        ("import prune4rel.training.train", ["training"]),
        ("import prune4rel as p4r", ["__init__"]),
        ("from prune4rel import select", ["__init__"]),
        ("from prune4rel import pipeline, signals", ["pipeline", "signals"]),
        ("def f():\n    from prune4rel.methods import select", ["methods"]),
        ("if TYPE_CHECKING:\n    from prune4rel.report import Story", ["report"]),
        ("importlib.import_module('prune4rel.steps')", ["steps"]),
        ("from ..recipes import harvest", ["recipes"]),
        ("from .. import noise", ["noise"]),
        ("from .lazy import pick\nfrom prune4rel.greedy import lazy\nimport numpy", []),
    ],
)
def test_every_way_to_import_is_seen(line, rooms):
    assert list(rooms_imported(SOURCE / "greedy" / "one.py", ast.parse(line))) == rooms


def test_no_two_rooms_import_each_other():
    needs = defaultdict(set)
    for path in paths:
        needs[room_of(path)].update(rooms_imported(path))
    assert {(a, b) for a in needs for b in needs[a] if a < b and a in needs[b]} == set()
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(f"rooms in a circle: {error.args[1]}")


def test_no_class_name_twice():
    names = Counter(
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name: times for name, times in names.items() if times > 1} == {}


def test_no_module_name_more_than_twice():
    # a command is called what its verb is called
    names = Counter(path.stem for path in paths if path.stem != "__init__" and room_of(path) != "cli")
    assert {name: times for name, times in names.items() if times > 2} == {}


def test_modules_stay_small():
    for path in (*paths, *SOURCE.rglob("*.js"), *SOURCE.rglob("*.css"), *SOURCE.rglob("*.html")):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES, path


PARSERS = {
    "json": ("load", "loads"),
    "yaml": ("load", "safe_load", "full_load", "SafeLoader", "load_all", "safe_load_all"),
    "np": ("load", "loadtxt", "genfromtxt", "fromfile", "memmap", "fromstring"),
    "npy": ("read_magic", "read_array_header_1_0", "read_array_header_2_0", "read_array"),
    "format": ("read_magic", "read_array_header_1_0", "read_array_header_2_0", "read_array"),
    "torch": ("load",),
    "pickle": ("load", "loads", "Unpickler"),
    "pq": ("read_table", "ParquetFile", "read_metadata", "read_schema", "ParquetDataset"),
    "ipc": ("open_file", "open_stream", "read_all"),
    "pa_json": ("read_json",),
    "pv": ("read_csv", "open_csv"),
    "csv": ("reader", "DictReader"),
    "tarfile": ("open", "TarFile"),
    "zipfile": ("ZipFile",),
    "zlib": ("decompress", "decompressobj"),
    "base64": ("b64decode",),
    "Image": ("open",),
    "": ("safe_open", "load_file"),
}
"""Calls that parse what somebody else may have written, by what they are called on."""

BORDERS = {"reading", "_told_of"}
"""What they stand inside; the second is that of images."""

OUTSIDE = {
    "_Unpickler": "a subclass that refuses everything; unpickle catches whatever it raises",
    "unpickle": "has a border of its own: what damaged pickles raise is told there",
    "_read_zip": "called inside unpickle's",
    "_load_next": "likewise",
    "_npy_header": "called inside reading and opened",
    "_read_member": "called inside _read_npz's",
    "_open": "called inside _told_of",
    "_read": "of checkpoints: called by those that go back to the one before",
    "unpack": "called inside TileStore's, and on what a worker has just packed",
    "write": "what has just been made",
}
"""Functions that are called inside a border, or are one."""


def parser_calls(tree):
    """Give every call of a parser that is inside no border: its line, its name, the functions around it."""

    def visit(node, around, inside):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            around = [*around, node.name]
        if isinstance(node, ast.With):
            names = [item.context_expr for item in node.items]
            calls = [ast.unparse(name.func).rpartition(".")[2] for name in names if isinstance(name, ast.Call)]
            first = next((place for place, name in enumerate(calls) if name in BORDERS), None)
            for place, item in enumerate(node.items):
                yield from visit(item, around, inside or (first is not None and place > first))
            for each in node.body:
                yield from visit(each, around, inside or first is not None)
            return
        if isinstance(node, ast.Call) and not inside:
            home, _, name = ast.unparse(node.func).rpartition(".")
            own = node.args and ast.unparse(node.args[0]).startswith(("to_json(", "json.dumps("))
            if name in PARSERS.get(home.rpartition(".")[2], ()) and not own:
                yield node.lineno, ast.unparse(node.func), around
        for each in ast.iter_child_nodes(node):
            yield from visit(each, around, inside)

    yield from visit(tree, [], False)


@pytest.mark.parametrize("path", paths, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_parser_is_called_inside_the_border(path):
    if path.name == "reading.py":
        return
    for line, name, around in parser_calls(trees[path]):
        assert set(around) & set(OUTSIDE), f"{path}:{line}: {name} outside `with reading(...)`, in {around}"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("json.loads(text)", 1),
        ("with reading(path, 'x'):\n    json.loads(text)", 0),
        ("with reading(path, 'x'), safe_open(path) as file:\n    pass", 0),
        ("with safe_open(path) as file, reading(path, 'x'):\n    pass", 1),
        ("json.loads(to_json(value))", 0),
        ("with opened(url) as file, reading(url, 'x'):\n    pq.ParquetFile(file)", 0),
        ("def f():\n    return np.load(path)", 1),
        ("pa.ipc.open_file(x).read_all()", 1),
        ("np.lib.format.read_magic(file)", 1),
    ],
)
def test_calls_of_parsers_are_seen(line, found):
    assert len(list(parser_calls(ast.parse(line)))) == found
