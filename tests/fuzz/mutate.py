"""Damage: what disks, editors and strangers do to a file."""

import json
import os
import re
import shutil

from prune4rel.reading import CHECK, seal

NASTY = [
    None, True, -1, 0, 1e308, -(2**63), 2**64, 10**30, float("nan"), float("inf"), "", "\x00", "\x1b[2J", "\ud800",
    "../../etc/passwd", "/dev/zero", "a" * 5000, [], {}, [[]], {"": None}, [None] * 3, "evil:f", "nan", "=1+1",
]  # fmt: skip
TOKENS = [
    b"-1", b"1e999", b"99999999999999999999", b"NaN", b"null", b"[" * 3000, b"{}", b"true", b"\x00", b"\xff\xfe",
    b"\xed\xa0\x80", b"&a [*a]", b"!!python/object:os.system", b"../", b"\r\n", b'"', b",", b"0", b"\x1b]0;x\x07",
]  # fmt: skip


def displaced(path, random, others=()):
    """Do to a file as a whole what people and synchronising programs do: remove it, put something else in its place."""
    whole = path.read_bytes()
    act = random.choice(
        ["gone", "folder gone", "folder", "pipe", "endless", "circle", "dangling", "copy", "other", "lines"]
    )
    if act == "copy":
        shutil.copy(path, path.with_name(f"{path.stem} (1){path.suffix}"))
    elif act == "other" and others:
        path.write_bytes(random.choice(others))
    elif act == "lines":
        lines = whole.splitlines(keepends=True)
        random.shuffle(lines)
        path.write_bytes(b"".join(lines[: random.randrange(len(lines) + 1)]))
    elif act == "folder gone":
        shutil.rmtree(path.parent)
    else:
        path.unlink()
        match act:
            case "folder":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
            case "endless":
                path.symlink_to("/dev/zero")
            case "circle" | "dangling":
                path.symlink_to(path.name if act == "circle" else "nowhere")


def damaged(content, random, others=(), *, forged=True):
    """Return bytes that are not what they were; `forged` ones have checksums that fit."""
    ways = [flip, flip, flip, cut, insert, drop, repeat, number, token]
    if others:
        ways.append(lambda _, random: random.choice(others))
    if forged and content[:1] in (b"{", b"["):
        ways += [structure] * 6
    found = content
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        found = random.choice(ways)(found, random)
    return found


def place(content, random):
    if random.random() < 0.3:  # headers and footers
        return random.choice(
            [random.randrange(min(64, len(content) + 1)), max(0, len(content) - random.randrange(1, 65))]
        )
    return random.randrange(len(content) + 1)


def flip(content, random):
    if not content:
        return b"\x00"
    at = min(place(content, random), len(content) - 1)
    return content[:at] + bytes([content[at] ^ (1 << random.randrange(8))]) + content[at + 1 :]


def cut(content, random):
    return content[: random.choice([0, place(content, random)])]


def insert(content, random):
    at = place(content, random)
    return content[:at] + random.randbytes(random.choice([1, 4, 100])) + content[at:]


def drop(content, random):
    at = place(content, random)
    return content[:at] + content[at + random.choice([1, 4, 100]) :]


def repeat(content, random):
    at = place(content, random)
    return content[: at + random.choice([4, 100])] + content[at:]


def number(content, random):
    """Write another number of four or eight bytes somewhere."""
    at = place(content, random)
    size = random.choice([1, 2, 4, 8])
    value = random.choice([0, 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1), 2 ** (8 * size - 2), 255])
    return content[:at] + (value % 2 ** (8 * size)).to_bytes(size, "little") + content[at + size :]


def token(content, random):
    """Put something odd in the place of a number or a word."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?|\w+", content[:20_000]))
    if not found:
        return insert(content, random)
    match = random.choice(found)
    return content[: match.start()] + random.choice(TOKENS) + content[match.end() :]


def structure(content, random):
    """Put something odd in the place of a value of JSON; what was sealed is sealed again, as a stranger would."""
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        return token(content, random)
    spots = list(_spots(whole))
    if not spots:
        return token(content, random)
    home, key = random.choice(spots)
    act = random.random()
    if act < 0.2:
        del home[key]
    elif act < 0.3 and isinstance(home, dict):
        home[random.choice(["", "\x00", "__class__", str(key) * 2])] = home.pop(key)
    else:
        home[key] = random.choice(NASTY)
    if isinstance(whole, dict) and CHECK in whole and random.random() < 0.8:
        try:
            whole = seal(whole)
        except (TypeError, ValueError, RecursionError):
            return content
    return json.dumps(whole).encode("utf-8", "surrogatepass")


def _spots(value):
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in list(pairs):
        yield value, key
        yield from _spots(inside)
