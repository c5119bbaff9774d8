"""Which testbeds and agents a command line means: names in any order, patterns, files."""

import difflib
import fnmatch
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from feelgood.core.errors import FeelgoodError

#: Files that hold a table of one's own.
TABLES = (".csv", ".tsv", ".parquet")


def is_pattern(word: str) -> bool:
    """Whether a word has `*`, `?` or `[`."""
    return any(sign in word for sign in "*?[")


def choose(words: Sequence[str]) -> tuple[list[str | Path], list[str]]:
    """The testbeds, among them files, and the agents that these words name, each once."""
    from feelgood import AGENTS, TESTBEDS

    testbeds: dict[str | Path, None] = {}
    agents: dict[str, None] = {}
    for word in words:
        if Path(word).suffix.lower() in TABLES:
            testbeds[Path(word)] = None
        elif is_pattern(word):
            beds, players = (matching(word, r.names()) for r in (TESTBEDS, AGENTS))
            if beds and players:
                raise FeelgoodError(
                    f"'{word}' matches testbeds ({', '.join(beds)}) and agents "
                    f"({', '.join(players)}): write a narrower pattern."
                )
            if not beds and not players:
                raise FeelgoodError(
                    f"no testbed or agent matches '{word}': 'feelgood list' shows all of them."
                )
            testbeds |= dict.fromkeys(beds)
            agents |= dict.fromkeys(players)
        elif word in TESTBEDS and not (word in AGENTS and testbeds):
            testbeds[word] = None
        elif word in AGENTS:
            agents[word] = None
        else:
            _refuse(word, bool(testbeds))
    if not testbeds:
        raise FeelgoodError("no testbed was named: name at least one, such as linear-20.")
    if not agents:
        raise FeelgoodError("no agent was named: name at least one, such as lints.")
    return list(testbeds), list(agents)


def matching(pattern: str, names: Sequence[str]) -> list[str]:
    """The names that a pattern matches."""
    return [name for name in names if fnmatch.fnmatchcase(name, pattern)]


def _refuse(word: str, has_testbed: bool) -> NoReturn:
    """The error for a word that is neither; of which kind it was meant is guessed."""
    from feelgood import AGENTS, TESTBEDS

    known = [*TESTBEDS.names(more=True), *AGENTS.names(more=True)]
    close = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.5)
    is_testbed = close[0] in TESTBEDS if close else not has_testbed
    (TESTBEDS if is_testbed else AGENTS)[word]
    raise AssertionError(f"{word} is known")
