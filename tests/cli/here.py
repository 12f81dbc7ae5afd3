"""The command line in this process: importing takes its time only once."""

import sys

import pytest

from prune4rel.cli import main


def call(monkeypatch, capsys, *arguments):
    """Return the exit code, what was printed, and what was complained about."""
    monkeypatch.setattr(sys, "argv", ["prune4rel", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    return end.value.code, out, err
