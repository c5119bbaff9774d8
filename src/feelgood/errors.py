"""The one exception that users meet."""

import difflib
from collections.abc import Iterable


class FeelgoodError(ValueError):
    """Bad input. The message is one sentence: what was wrong, the value, the remedy.

    The command line prints it and exits with code 2; it is never raised from inside a
    compiled run, where a failure is a value (see `feelgood.types.Status`).
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A closing clause that names the nearest known name, or lists where to look."""
    names = sorted(known)
    lower = {known_name.lower(): known_name for known_name in names}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{lower[close[0]]}'?"
    return "known: " + ", ".join(names[:12]) + (", …" if len(names) > 12 else "") + "."
