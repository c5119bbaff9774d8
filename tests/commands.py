"""The command line through its entry point, in the test's own process."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest


class Done(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


def calling(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *first: str
) -> Command:
    """A function that runs `feelgood FIRST ARGUMENTS`.

    `conftest.py` imports this file before the shapes' checks are installed, hence no import above.
    """
    from feelgood import cli

    def call(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["feelgood", *first, *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
            raise SystemExit(0)
        code = stop.value.code
        assert isinstance(code, int)
        return Done(code, *capsys.readouterr())

    return call
