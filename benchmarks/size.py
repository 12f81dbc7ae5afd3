"""How large the house is: lines of code and files, room by room, at some commits.

python benchmarks/size.py bfc5202 HEAD

Lines of code are lines that hold more than blanks, comments and docstrings. Texts that stand below a constant, as its
documentation, count as docstrings. A room is a folder of the package, or one of its modules; each row also counts the
files. A commit may be the working tree: ``.``. What has been added since is left out by name, rooms and modules:

python benchmarks/size.py bfc5202 . --without cleaning,judging,data/arrow
"""

import argparse
import ast
import io
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "src/prune4rel"
NOT_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def code_lines(text: str) -> int:
    r"""Count lines of code.

    >>> code_lines("'Doc.'\n\n# why\nx = 1  # one\n'What x is.'\ndef f():\n    return (x,\n            2)\n")
    4
    """
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documentation.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documentation)


def files_at(commit: str) -> dict[str, str]:
    """Return the text of every file of the package at a commit, by its path in the package."""
    if commit == ".":
        package = ROOT / PACKAGE
        return {str(path.relative_to(package)): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    names = git("ls-tree", "-r", "--name-only", commit, PACKAGE).split("\n")
    return {name.removeprefix(f"{PACKAGE}/"): git("show", f"{commit}:{name}") for name in names if name.endswith(".py")}


def git(*arguments: str) -> str:
    """Return what git says."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True)  # noqa: S607 - git is git
    return done.stdout.decode()


def size_at(commit: str, without: tuple[str, ...]) -> tuple[Counter[str], Counter[str]]:
    """Return lines of code and files at a commit, by room; some rooms and modules are left out."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for name, text in files_at(commit).items():
        if name.removesuffix(".py") in without or name.startswith(tuple(f"{room}/" for room in without)):
            continue
        room = name.split("/", maxsplit=1)[0].removesuffix(".py") if "/" in name else "(ground floor)"
        lines[room] += code_lines(text)
        files[room] += 1
    return lines, files


def main() -> None:
    """Print a table: rooms down, commits across."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="+", help="commits, or . for the working tree")
    parser.add_argument("--without", default="", help="rooms and modules to leave out, with commas between")
    asked = parser.parse_args()
    sizes = [size_at(commit, tuple(asked.without.split(","))) for commit in asked.commits]
    rooms = sorted({room for lines, _ in sizes for room in lines})
    print("| room |" + "".join(f" {commit}: lines | files |" for commit in asked.commits))
    print("|---|" + "---:|---:|" * len(sizes))
    for room in rooms:
        print(f"| {room} |" + "".join(f" {lines[room]:,} | {files[room]} |" for lines, files in sizes))
    total = "".join(
        f" {sum(lines[room] for room in rooms):,} | {sum(files[room] for room in rooms)} |" for lines, files in sizes
    )
    print(f"| **together** |{total}")


if __name__ == "__main__":
    main()
