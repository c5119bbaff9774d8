"""Every setting of the presets beside the paper's text and the released code, as a page.

`python -m feelgood.paper.setting_table > docs/presets.md` writes it. `stated.csv` has what the text
and the code state, with the line and the place; `choices.toml` says why a preset has something
else, or what it has where nothing is stated.
"""

import csv
import dataclasses
import functools
import math
import tomllib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any

from feelgood.core.lookup import preset_settings
from feelgood.core.policy import AGENTS
from feelgood.core.spec import Spec
from feelgood.paper.published_numbers import all_published
from feelgood.paper.published_rows import PublishedRow, to_row

#: The families of the page, with the testbed and the shape that stand for each.
FAMILIES: dict[str, tuple[str, Spec, int]] = {
    "linear": ("linear-20", Spec(arms=5, dim=4), 10_000),
    "logistic": (
        "logistic-20",
        Spec(arms=50, dim=20, shared=True, rewards="bernoulli"),
        10_000,
    ),
    "wheel": ("wheel-0.5", Spec(arms=5, dim=2), 5_000),
    "adult": ("adult", Spec(arms=2, dim=14, rewards="bernoulli"), 10_000),
    "covertype": ("covertype", Spec(arms=7, dim=54, rewards="bernoulli"), 15_000),
    "magic": ("magic", Spec(arms=2, dim=10, rewards="bernoulli"), 10_000),
    "mushroom": ("mushroom", Spec(arms=2, dim=22, rewards="bernoulli"), 10_000),
    "shuttle": ("shuttle", Spec(arms=7, dim=9, rewards="bernoulli"), 10_000),
    "mnist": ("mnist", Spec(arms=10, dim=784, rewards="bernoulli"), 10_000),
    "financial": ("financial", Spec(arms=8, dim=21), 10_000),
    "jester": ("jester", Spec(arms=8, dim=32), 10_000),
    "restaurant": ("restaurant", Spec(arms=130, dim=19, rewards="bernoulli"), 10_000),
    "cifar10": ("cifar10", Spec(arms=10, dim=3072, rewards="bernoulli"), 25_000),
}
#: Settings that the text and the code cannot state, because only our agents have them.
_OURS = {"early", "bonus_on", "lam_schedule"}
NONE = "–"


@dataclasses.dataclass(frozen=True)
class Stated:
    """What the text and the code state of one setting; empty where they are silent."""

    text: str = ""
    line: str = ""
    code: str = ""
    place: str = ""


@dataclasses.dataclass(frozen=True)
class SettingRow:
    """One setting of one agent: ours in both presets, what is stated, and why ours is another."""

    family: str
    agent: str
    setting: str
    paper: str
    released: str
    stated: Stated
    why: str

    @property
    def differs(self) -> bool:
        """Whether ours is another than what is stated, or the text or both state nothing."""
        text = self.paper != NONE and not same(self.paper, self.stated.text)
        if not self.stated.code:
            return text or not self.stated.text
        return text or not same(self.released, self.stated.code)

    @property
    def reason(self) -> str:
        """Why it differs, or that the two sources do; empty where everything is one."""
        apart = NONE not in (self.paper, self.released) and not same(self.paper, self.released)
        if self.differs or (apart and not self.stated.code):
            return self.why
        return "text and code differ" if apart else ""


def same(ours: str, theirs: str) -> bool:
    """Whether two values are one, as numbers where they are."""
    try:
        return math.isclose(float(ours), float(theirs), rel_tol=1e-6)
    except ValueError:
        return ours == theirs


@functools.cache
def stated() -> dict[tuple[str, str, str], Stated]:
    """By family, agent and setting."""
    text = files("feelgood.paper").joinpath("stated.csv").read_text(encoding="utf-8")
    return {
        (line["testbed"], line["agent"], line["setting"]): Stated(
            line["text"], line["line"], line["code"], line["place"]
        )
        for line in csv.DictReader(text.splitlines())
    }


@functools.cache
def _choices() -> list[dict[str, str]]:
    text = files("feelgood.paper").joinpath("choices.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["choice"])


def why(family: str, agent: str, setting: str) -> str:
    """The first reason that holds; empty where there is none."""
    own = {"testbed": family, "agent": agent, "setting": setting}
    for choice in _choices():
        given = {key: value for key, value in choice.items() if key != "why"}
        if all(any(fnmatchcase(own[k], p) for p in v.split()) for k, v in given.items()):
            return choice["why"]
    return ""


def setting_rows(family: str) -> Iterator[SettingRow]:
    """All settings of all agents that the paper has in this family."""
    for paper, released in _runs(family):
        ours, theirs = _values(paper, family), _values(released, family)
        for setting in dict.fromkeys([*ours, *theirs]):
            known = stated().get((family, paper.agent, setting), Stated())
            yield SettingRow(
                family=family,
                agent=paper.agent,
                setting=setting,
                paper=ours.get(setting, NONE),
                released=theirs.get(setting, NONE),
                stated=known,
                why=why(family, paper.agent, setting),
            )


def _runs(family: str) -> Iterator[tuple[PublishedRow, PublishedRow]]:
    """For each agent, what both readings run at the paper's main settings."""
    testbed, seen = FAMILIES[family][0], set[str]()
    for number in all_published():
        if number.testbed != testbed or number.beta == 1 or number.agent in seen | {"uniform"}:
            continue
        seen.add(number.agent)
        yield to_row(number), to_row(number, "released")


def _values(row: PublishedRow, family: str) -> dict[str, str]:
    """The preset's settings that the agent has, in words."""
    if row.cannot is not None:
        return {}
    _, spec, rounds = FAMILIES[family]
    found = preset_settings(row.preset, row.agent, row.testbed, spec, rounds)
    if "." in row.testbed and row.agent.startswith("released-"):
        found = dict(row.settings)
    known = AGENTS[row.agent].settings
    own = {k: v for k, v in found.items() if k in known}
    own |= {k: v for k, v in row.settings.items() if k not in ("lam", "gamma")}
    if "beta" in own:
        own["temperature"] = _temperature(own.pop("beta"), row.agent, spec, rounds)
    return {name: _word(value) for name, value in own.items()}


def _temperature(beta: float, agent: str, spec: Spec, rounds: int) -> str | float:
    """1/β in units of d ln T, or as it is."""
    if beta == 1.0:
        return "1/β = 1"
    dim = spec.dim if "neural" in agent else spec.parameters
    return float(f"{1.0 / (beta * dim * math.log(rounds)):.6g}")


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# ---- the page -------------------------------------------------------------------------------

_HEAD = """# Presets: every setting beside its source

Written by `python -m feelgood.paper.setting_table`; a test compares it with the program. `paper` is
what the preset of that name has, *text* what the paper states, with the line of its LaTeX source.
`released` is what the other preset has, *code* what the released files state, with their place in
the repository ctx-bandits-mcmc-showdown at commit 0aaf138. –: nothing is stated, or the agent has
no such setting. Where ours differs from what is stated, or nothing is, the last column says why.

The temperature is v in 1/β = v · d · ln T. There d is the number of parameters of a linear model,
or the dimension of a network's context. Settings that no preset names have their defaults. For what
else the released code does, see [the released code](released.md).

`paper-beta1`, `paper-beta1-appendix` and `paper-equal-beta` differ from `paper` in the temperature
alone, as do the presets that begin with `released-` from `released`. One exception: on logistic
bandits the λ tables of the released code go with η = 10 and step 0.001. So
`released-equal-beta` and `released-beta1-appendix` have these for Langevin agents and MALA. [Which
tables go with which preset](reproducing.md).
"""
_COLUMNS = ("agents", "setting", "`paper`", "text", "line", "`released`", "code", "place", "why")


def page() -> str:
    """docs/presets.md."""
    parts = [_HEAD]
    for family in FAMILIES:
        own = [row for row in setting_rows(family) if row.setting not in _OURS]
        parts += [f"\n## {family}\n", _grid(own)]
    return "\n".join([*parts, _OURS_ALONE, *_own_presets()])


_OURS_ALONE = """
## Presets of ours

`constant-bonus` and `beta-1` go with no table of the paper, so that no source states them. They
have this on linear-20, and the same elsewhere, but for one setting. Where rewards are 0 or 1 the
bonus of `beta-1` is on the score. Agents of the paper that are not named have their defaults.

| preset | agents | settings |
|---|---|---|"""


def _own_presets() -> Iterator[str]:
    """One line per preset for all agents of the paper that have the same in it."""
    agents = dict.fromkeys(to_row(number).agent for number in all_published())
    for preset in ("constant-bonus", "beta-1"):
        groups: dict[str, list[str]] = {}
        for agent in agents:
            found = preset_settings(preset, agent, *FAMILIES["linear"])
            own = {k: v for k, v in found.items() if k in AGENTS[agent].settings}
            words = ", ".join(f"{name} {_word(value)}" for name, value in own.items())
            groups.setdefault(words, []).append(f"`{agent}`")
        yield from (f"| `{preset}` | {', '.join(v)} | {k} |" for k, v in groups.items() if k)


def _grid(found: Sequence[SettingRow]) -> str:
    """One line for all agents that have the same in everything but the lines."""
    groups: dict[tuple[str, ...], list[SettingRow]] = {}
    for row in found:
        known = row.stated
        key = (row.setting, row.paper, known.text, row.released, known.code, row.reason)
        groups.setdefault(key, []).append(row)
    out = ["| " + " | ".join(_COLUMNS) + " |", "|" + "---|" * len(_COLUMNS)]
    for (setting, paper, text, released, code, reason), group in groups.items():
        agents = ", ".join(f"`{row.agent}`" for row in group)
        lines = ", ".join(dict.fromkeys(r.stated.line for r in group if r.stated.line))
        places = ", ".join(dict.fromkeys(r.stated.place for r in group if r.stated.place))
        cells = (agents, setting, paper, text, lines, released, code, _short(places), reason)
        out.append("| " + " | ".join(cell or NONE for cell in cells) + " |")
    return "\n".join(out)


def _short(places: str) -> str:
    """The first of many places."""
    first, *more = places.split(", ")
    return f"{first} and {len(more)} more" if len(more) > 1 else places


if __name__ == "__main__":
    print(page())
