"""The one exception that users meet."""

import difflib
from collections.abc import Iterable, Sized
from typing import Any


class FeelgoodError(ValueError):
    """Bad input. The message is one sentence: what was wrong, the value, the remedy.

    The command line prints it and exits with code 2; it is never raised from inside a
    compiled run, where a failure is a value (see `feelgood.core.spec.Status`).

    **Example:**

    >>> import feelgood
    >>> try:
    ...     feelgood.run("linear-20", "lintz")
    ... except feelgood.FeelgoodError as error:
    ...     print(error)
    unknown agent 'lintz': did you mean 'lints'?
    """

    __module__ = "feelgood"  # where users find it


def missing_package(what: str, package: str, extra: str) -> FeelgoodError:
    """What to say where a package of an extra is not installed; `what` needs it."""
    return FeelgoodError(
        f"{what} the package {package}, which is not installed: pip install 'feelgood[{extra}]'."
    )


def shown(value: Any, width: int = 80) -> str:
    """A value for a message: its `repr` in one line of at most `width` characters."""
    kind = type(value).__name__
    if isinstance(value, Sized) and not hasattr(value, "dtype"):
        try:
            count = len(value)
        except Exception:
            count = 0
        if count > 1_000:  # its `repr` would take long, and nobody would read it
            return f"<{kind} of {count:,}>"
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"<{kind}>"
    return text if len(text) <= width else f"{text[: width - 1]}…"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A closing clause that names the nearest known name, or lists where to look."""
    names = sorted(known)
    lower = {known_name.lower(): known_name for known_name in names}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{lower[close[0]]}'?"
    return "known: " + ", ".join(names[:12]) + (", …" if len(names) > 12 else "") + "."
