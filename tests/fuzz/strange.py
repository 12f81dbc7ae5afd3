"""Files that are whole, and yet not what anybody expects: encodings, types, shapes and names that formats allow."""

import io
import json
import zipfile
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

WORDS = [
    "good film", "fine, really", 'he said "no"', "", "NA", "nan", "=1+1", "caf\u00e9", "\u202eevil", "a\nb",
    "\x1b[31mred",
    "x" * 3000, "-5", "1e400", "\ufeffbom", "0", "1", "1.5", "yes", "no", "/etc/passwd", "../x.png", "pipe",
    "[1, 2]", "[]",
]  # fmt: skip
NAMES = [
    "text",
    "label",
    "id",
    "split",
    "path",
    "image",
    "embedding",
    "labels",
    "embeddings",
    "losses",
    "index",
    "",
    "a",
]
ENCODINGS = ["utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp037", "shift_jis"]
KEYS = [
    "dataset",
    "methods",
    "ratios",
    "epochs",
    "seeds",
    "network",
    "training",
    "look",
    "learner",
    "data",
    "1",
    "null",
    "~",
]
VALUES = [
    "&a [*a]", "{<<: {epochs: 3}}", "!!binary aGk=", "!!timestamp 2001-01-01", "2001-12-14", ".nan", "~", "[[[[]]]]",
    "|\n  x",
    '"\\ud800"', "!!set {a}", "? x", "1:30:00", "{1: 2}", "{method: evil:f}", "[1, 1]", "uniform", "0.1", "-1",
    "99999999999",
]  # fmt: skip
KINDS = ["<f2", "<f4", ">f8", "<f16", "<c16", "|b1", "<i8", "<u8", "<U3", "|S3", "<M8[s]", "|V8", "|i1"]


def content(name, random):
    """Return what a file of that name might hold, or None where there is nothing odd of its kind."""
    makers = {".csv": table_as_text, ".parquet": parquet, ".npy": npy, ".npz": npz, ".yaml": yaml, ".jsonl": lines}
    makers |= {".png": picture, ".jpg": picture, ".txt": table_as_text}
    kind = name[name.rfind(".") :]
    return makers[kind](random) if kind in makers else None


def table_as_text(random):
    mark, end = random.choice([",", ";", "\t", " ", "\x01"]), random.choice(["\n", "\r\n", "\r", "\u2028"])
    rows = [random.sample(NAMES, random.randrange(1, 4))]
    rows += [[random.choice(WORDS) for _ in rows[0]] for _ in range(random.choice([0, 1, 4, 12]))]
    if random.random() < 0.8:
        rows = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in rows]
    if random.random() < 0.1:
        rows[-1].append("more")
    return end.join(mark.join(row) for row in rows).encode(random.choice(ENCODINGS), "replace")


def lines(random):
    odd = [None, True, -1, 2**64, 1e308, float("nan"), [], {}, [{"a": [1]}], *WORDS]
    rows = [{random.choice(NAMES): random.choice(odd) for _ in range(3)} for _ in range(random.choice([0, 1, 4]))]
    text = "\n".join(map(json.dumps, rows)) if random.random() < 0.7 else json.dumps(rows)
    return text.encode(random.choice(ENCODINGS), "replace")


def column(random, n):
    """Return n cells of a type that tables may have."""
    odd = [
        [random.choice(WORDS) for _ in range(n)], [None] * n, [{"bytes": None, "path": "/etc/passwd"}] * n,
        [{"a": {"b": 1}}] * n,
        [[1.0, 2.0]] * n, [[1.0] * random.randrange(3) for _ in range(n)], [[1.0, None]] * n, [[[1.0]]] * n, [True] * n,
        [1.5] * n, [float("nan")] * n, [b"\xff\x00"] * n, [b"\x89PNG"] * n, [Decimal("1.5")] * n,
    ]  # fmt: skip
    typed = [
        (10**15, pa.timestamp("s")), (-(10**6), pa.date32()), (1, pa.duration("ns")), (2**63, pa.uint64()), ("x",
        pa.large_string()),
        ("x", pa.string_view()), (b"abc", pa.binary(3)), ([1.0, 2.0], pa.list_(pa.float32(), 2)), ([(1, 2)],
        pa.map_(pa.int8(), pa.int8())),
    ]  # fmt: skip
    if random.random() < 0.6:
        return pa.array(random.choice(odd))
    value, kind = random.choice(typed)
    return pa.array([value] * n, kind)


def parquet(random):
    n = random.choice([0, 1, 4, 12])
    names = random.sample(NAMES, random.randrange(1, 5))
    table = pa.table({name: column(random, n) for name in names})
    told = {b"huggingface": b'{"info": {"features": {"label": {"names": "abc"}}}}', b"prune4rel.sha256": b"[1]"}
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(random.choice([None, told])), sink)
    return sink.getvalue()


def npy(random):
    n, kind = random.choice([0, 1, 11, 12, 12, 12, 12]), random.choice(KINDS)
    shape = random.choice([(n,), (n, 4), (n, 3), (4, n), (n, 1), (n, 0), (), (n, 2, 2), (2**40, n)])
    size = min(int(np.prod(shape)) * np.dtype(kind).itemsize, 10**4)
    sink = io.BytesIO()
    header = {"descr": kind, "fortran_order": random.random() < 0.2, "shape": shape}
    np.lib.format.write_array_header_1_0(sink, header)
    bits = random.choice([bytes(size), random.randbytes(size), b"\x01" * size, b"\xff" * size])
    return sink.getvalue() + bits[: random.choice([size, size, size, size // 2])]


def npz(random):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as whole:
        for name in random.sample(["labels", "probabilities", "embeddings", "losses", "../x", ""], random.randrange(5)):
            whole.writestr(name + random.choice([".npy", ".npy", ""]) or "a", npy(random))
    return sink.getvalue()


def yaml(random):
    told = "dataset: digits\nmethods: uniform\nratios: 0.1\nepochs: 1\nnetwork: mlp\nwarmup_epochs: 1\n"
    told += "".join(f"{random.choice(KEYS)}: {random.choice(VALUES)}\n" for _ in range(random.randrange(1, 3)))
    return told.encode(random.choice(ENCODINGS), "replace")


def picture(random):
    form, mode = random.choice(
        [
            ("PNG", "I;16"),
            ("PNG", "1"),
            ("PNG", "LA"),
            ("JPEG", "CMYK"),
            ("GIF", "P"),
            ("TIFF", "F"),
            ("BMP", "L"),
            ("TGA", "RGBA"),
        ]
    )
    sink = io.BytesIO()
    Image.new(mode, random.choice([(1, 1), (5, 9), (1, 900)])).save(sink, form)
    return random.choice([sink.getvalue(), b"P6 99999 99999 255\n", b"%!PS-Adobe-3.0 EPSF-3.0\n", b""])
