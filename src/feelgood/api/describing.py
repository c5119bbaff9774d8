"""An agent or a testbed in words: what it is made of, and a command that runs it."""

import contextlib
import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import refusal
from feelgood.core.registry import Entry
from feelgood.core.testbed import TESTBEDS


def texts_of(entry: Entry[Any]) -> Iterator[str]:
    """The texts of the class and of the parts it is made of, such as a kernel and a bonus.

    The sentence that listings show is not among them.

    **Example:**

    >>> from feelgood import AGENTS
    >>> from feelgood.api.describing import texts_of
    >>> next(texts_of(AGENTS["linucb"])).splitlines()[-1]
    'recommendation", WWW 2010.'
    """
    if entry.words is not None:
        yield entry.words()
        return
    built = entry.build()
    parts = [getattr(built, field.name) for field in dataclasses.fields(built)]
    for thing in (built, *(part for part in parts if dataclasses.is_dataclass(part))):
        text = (inspect.getdoc(type(thing)) or "").removeprefix(entry.doc)
        text = text.partition("**Example:**")[0].strip()  # of Python; `example_of` has a command
        if text:
            yield text


def example_of(entry: Entry[Any], kind: str) -> str:
    """A command that runs it, with one of its numbers set to its default."""
    agent = kind == "agent"
    words = f"{testbed_for(entry)} {entry.name}" if agent else f"{entry.name} lints linucb"
    numbers = (k for k, rule in entry.settings.items() if isinstance(rule.default, float))
    key = next(numbers, None)
    owner = entry.name if agent else "testbed"
    chosen = f" --set {owner}.{key}={entry.settings[key].default:g}" if key else ""
    return f"feelgood run {words}{chosen}"


def testbed_for(entry: Entry[Any]) -> str:
    """A testbed that an agent plays: linear-20, or the first one that needs no data."""
    agent = entry.build()
    for name in ("linear-20", *TESTBEDS.names()):
        with contextlib.suppress(FeelgoodError):
            if refusal(agent, TESTBEDS[name].build().spec) is None:
                return name
    return "linear-20"
