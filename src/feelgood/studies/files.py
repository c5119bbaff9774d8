"""Study files: TOML in, a checked study out. docs/studies.md shows what can be in one."""

import dataclasses
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from feelgood.core.arguments import parse_path
from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.core.lookup import Lookup
from feelgood.core.plugins import load_plugins
from feelgood.studies.candidates import BUDGET, HELD_OUT_SEEDS
from feelgood.studies.planning import Cell, Study, plan_cells, with_posterior
from feelgood.studies.tuned_studies import AgentSearch, TunedStudy, plan_searches

MAX_FILE_BYTES = 1_000_000
#: By key of a study file, a function that plans its cells; upper rooms register it.
SOURCES: Lookup[Callable[..., tuple[Cell, ...]]] = Lookup(
    "source of cells", "feelgood.paper.reproducing"
)
_WHOLE = "use at most 9223372036854775807"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _as_tables(value: Any) -> Any:
    """`["a", "b"]` as `{"a": [{}], "b": [{}]}`; `{"a": {...}}` as `{"a": [{...}]}`."""
    if isinstance(value, list):
        if not all(isinstance(name, str) for name in value):
            raise ValueError('a list holds names only, such as ["lints", "lmcts"]')
        for name in value:
            if value.count(name) > 1:
                raise ValueError(f"'{name}' is named twice: leave one out")
        return {name: [{}] for name in value}
    if isinstance(value, dict):
        return {name: [t] if isinstance(t, dict) else t for name, t in value.items()}
    raise ValueError('write a list of names, such as ["lints", "lmcts"], or one table per name')


_Scalar = bool | int | float | str
_Tables = Annotated[
    dict[str, list[dict[str, _Scalar | list[_Scalar]]]],
    BeforeValidator(_as_tables),
    Field(min_length=1),
]


class _Tune(BaseModel):
    """The keys of the table `tune`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    budget: int = BUDGET
    rounds: int | None = None
    seeds: int = HELD_OUT_SEEDS


class _Content(BaseModel):
    """The keys of a study file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str | None = None
    store: str | None = None
    rounds: int | None = None
    seeds: int | str | list[int] = 10
    preset: str | None = None
    posterior_every: int | None = None
    plugins: list[str] = []
    table: str | list[str] | None = None
    tune: _Tune | None = None
    testbeds: _Tables = {}
    agents: _Tables = {}

    @model_validator(mode="after")
    def _names_what_to_run(self) -> "_Content":
        """Testbeds and agents, or a table of the paper, whose rows they then pick."""
        if self.table is None:
            for key in ("testbeds", "agents"):
                if not getattr(self, key):
                    raise ValueError(f"key '{key}' is missing: a study needs testbeds and agents")
            return self
        if self.tune is not None:
            raise ValueError("key 'tune': a table of the paper has its own settings: leave it out")
        for key in ("testbeds", "agents"):
            for name, tables in getattr(self, key).items():
                if any(tables):
                    raise ValueError(
                        f"key '{key}.{name}': a table of the paper has its own settings: write a "
                        f'list of names, {key} = ["{name}"]'
                    )
        return self


@dataclasses.dataclass(frozen=True)
class StudyFile:
    """A study as its file describes it, and the folder its results go to."""

    plan: Study | TunedStudy
    store: Path

    @property
    def study(self) -> Study:
        """The study; an error where its cells follow from a search, which `plan.parts` knows."""
        if isinstance(self.plan, TunedStudy):
            raise FeelgoodError(
                f"what the study '{self.plan.name}' compares follows from its search: use "
                "'feelgood study run' with its file."
            )
        return self.plan


def read_study(path: str | Path | Any, posterior_every: int | Any | None = None) -> StudyFile:
    """Read and check a study file; `posterior_every` wins over what it says."""
    file = parse_path(path, "study file")
    try:
        text = _text(file)
        table = tomllib.loads(text)
        _check_whole_numbers(file, table)
        content = _Content.model_validate(table)
    except tomllib.TOMLDecodeError as error:
        raise FeelgoodError(f"{file}: not valid TOML: {error}; mend that line.") from None
    except RecursionError:
        raise FeelgoodError(f"{file}: nested too deeply: write plain tables.") from None
    except ValidationError as error:
        raise FeelgoodError(f"{file}: {_first_problem(error)}") from None
    except FeelgoodError:
        raise
    except ValueError:  # Python reads no number of thousands of digits
        raise FeelgoodError(f"{file}: a whole number is too large: {_WHOLE}.") from None
    name = file.stem if content.name is None else content.name
    if not _NAME.fullmatch(name):
        raise FeelgoodError(
            f"{file}: name = {name!r} is not allowed: use letters, digits, dots, dashes and "
            "underscores."
        )
    plugins = tuple(_plugin(file, plugin) for plugin in content.plugins)
    store = _store_folder(file, name, content.store)
    try:
        load_plugins(plugins)
        every = content.posterior_every if posterior_every is None else posterior_every
        plan = _plan(content, name, every, plugins)
    except FeelgoodError as error:
        raise FeelgoodError(f"{file}: {error}") from None
    return StudyFile(plan, store)


def _plan(
    content: _Content, name: str, every: int | Any | None, plugins: tuple[str, ...]
) -> Study | TunedStudy:
    if content.tune is not None:
        searches = tuple(_searches(content, content.tune, every))
        return TunedStudy(name, searches, plugins)
    if content.table is None:
        cells = [c for request in _requests(content) for c in plan_cells(**request)]
    else:
        cells = list(_cells_of_tables(content))
    return Study(name, tuple(cells if every is None else with_posterior(cells, every)), plugins)


def _check_whole_numbers(file: Path, value: Any, key: str = "") -> None:
    """Refuse whole numbers that TOML does not know, wherever they stand."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_whole_numbers(file, inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for inner in value:
            _check_whole_numbers(file, inner, key)
    elif isinstance(value, int) and value.bit_length() > 63:
        raise FeelgoodError(f"{file}: key '{key}': a whole number is too large: {_WHOLE}.")


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise FeelgoodError(
                f"{file}: {file.stat().st_size:,} bytes are too many for a study file: use at most "
                f"{MAX_FILE_BYTES:,}."
            )
        raw = file.read_bytes()
    except OSError as error:
        raise FeelgoodError(
            f"{file}: cannot be read ({error.strerror}): check the path of the study file."
        ) from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise FeelgoodError(f"{file}, line {line}: not UTF-8 text: save it as UTF-8.") from None


def _first_problem(error: ValidationError) -> str:
    """Pydantic's first complaint as one sentence with the key."""
    problem = error.errors()[0]
    # Below a union pydantic appends the alternative that it tried; the key is what comes before.
    parts = [str(p) for p in problem["loc"] if not (isinstance(p, int) or "[" in str(p))]
    key = ".".join(part for part in parts if part not in ("bool", "int", "float", "str"))
    if problem["type"] == "extra_forbidden":
        known = _Tune.model_fields if parts[0] == "tune" else _Content.model_fields
        hint = did_you_mean(str(problem["loc"][-1]), known)
        return f"unknown key '{key}': {hint}"
    if problem["type"] == "too_short":
        return f"key '{key}' is empty: name at least one."
    if problem["type"] == "value_error":
        # What concerns several keys is said with their names already.
        return f"key '{key}': {problem['ctx']['error']}." if key else f"{problem['ctx']['error']}."
    wanted = {
        "name": "a text",
        "store": "a text",
        "preset": "a text",
        "table": "the name of a table, such as main, or a list of names",
        "rounds": "a whole number",
        "posterior_every": "a whole number",
        "seeds": 'a whole number, a range such as "0:100", or a list of whole numbers',
        "plugins": "a list of texts",
        "tune": "a table with the whole numbers budget, rounds and seeds",
    }.get(parts[0] if parts else "", "a number, a text, true or false, or a list of such")
    return f"key '{key}' = {problem['input']!r} is not allowed: use {wanted}."


def _inside(file: Path, key: str, given: str) -> Path:
    """A path below the study file's folder; anything else is refused."""
    folder = file.parent
    place = folder / given
    escapes = Path(given).is_absolute() or ".." in Path(given).parts or "\0" in given
    if not given.strip() or escapes or not place.resolve().is_relative_to(folder.resolve()):
        raise FeelgoodError(
            f"{file}: {key} = {given!r} is not allowed: use a path below the study file's folder."
        )
    return place


def _store_folder(file: Path, name: str, given: str | None) -> Path:
    return _inside(file, "store", f"{name}-results" if given is None else given)


def _plugin(file: Path, given: str) -> str:
    """A module name as it is, a Python file relative to the study file."""
    return str(_inside(file, "plugins", given).resolve()) if given.endswith(".py") else given


def _cells_of_tables(content: _Content) -> tuple[Cell, ...]:
    """What `feelgood reproduce` runs for these tables, or for some of their rows."""

    names = [content.table] if isinstance(content.table, str) else content.table or []
    return SOURCES["table"](
        names,
        testbeds=list(content.testbeds),
        agents=list(content.agents),
        seeds=content.seeds if "seeds" in content.model_fields_set else None,
        rounds=content.rounds,
        reading=content.preset or "paper",
    )


def _searches(content: _Content, tune: _Tune, every: int | Any | None) -> Iterator[AgentSearch]:
    """All searches, with the comparison that follows each."""
    found = [
        search
        for request in _requests(content)
        for search in plan_searches(
            **request, budget=tune.budget, search_rounds=tune.rounds, search_seeds=tune.seeds
        )
    ]
    if every is None:
        yield from found
        return
    measured = iter(with_posterior([c for search in found for c in search.comparison], every))
    for search in found:
        own = tuple(next(measured) for _ in search.comparison)
        yield dataclasses.replace(search, comparison=own)


def _requests(content: _Content) -> Iterator[dict[str, Any]]:
    """What to plan: one agent on one testbed each, as arguments of `plan_cells`."""
    for testbed, testbed_tables in content.testbeds.items():
        for testbed_settings in testbed_tables:
            for value in testbed_settings.values():
                if isinstance(value, list):
                    raise FeelgoodError(
                        f"testbeds.{testbed} has a list of values: write one table per value, "
                        f"[[testbeds.{testbed}]]."
                    )
            for agent, agent_tables in content.agents.items():
                for table in agent_tables:
                    settings = dict(table)
                    preset = settings.pop("preset", content.preset)
                    if preset is not None and not isinstance(preset, str):
                        raise FeelgoodError(
                            f"agents.{agent}.preset = {preset!r} is not allowed: use a name, "
                            "such as paper."
                        )
                    yield {
                        "testbed": testbed,
                        "agent": agent,
                        "settings": settings,
                        "preset": preset,
                        "rounds": content.rounds,
                        "seeds": content.seeds,
                        "testbed_settings": testbed_settings,
                    }
