"""`feelgood run`."""

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from feelgood.api.progress import progress_bar
from feelgood.api.run_folder import RESULTS_FILE, TABLE_FILE
from feelgood.cli.app import app, errors
from feelgood.cli.choosing import choose
from feelgood.cli.options import (
    SEEDS_HELP,
    DataOption,
    ForceOption,
    JsonOption,
    PageOption,
    PluginOption,
    RoundsOption,
    json_path,
)
from feelgood.cli.output import (
    best_of,
    console_for,
    health_table,
    prepare_output,
    result_table,
    save_run,
    write_page,
)
from feelgood.cli.set_options import parse_set_options
from feelgood.cli.streams import results_at_stake
from feelgood.core.errors import FeelgoodError
from feelgood.core.plugins import load_plugins

if TYPE_CHECKING:
    from feelgood.api.run_result import RunResult
    from feelgood.core.testbed import Testbed
    from feelgood.engine.results import AgentResult


NamesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="TESTBED... AGENT...",
        help="Testbeds and agents in any order, such as linear-20 lints linucb. Patterns such "
        "as 'linear-*' go in quotes. A .csv, .tsv or .parquet file of yours is a testbed too.",
    ),
]
SeedsOption = Annotated[str, typer.Option(help=SEEDS_HELP)]
SweepOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="agent.key=value; a list a,b,c is a sweep; testbed.key too."),
]
PresetOption = Annotated[
    str | None, typer.Option(help="paper: the paper's settings; see docs/reproducing.md.")
]
LabelOption = Annotated[
    str | None, typer.Option(help="In a file of yours: the column with the right answer.")
]
RewardsOption = Annotated[
    str | None, typer.Option(help="In a file of yours: the columns with each arm's reward, a,b,c.")
]
PosteriorEveryOption = Annotated[
    int | None, typer.Option(help="Measure the agents' posteriors every so many rounds.")
]
HealthOption = Annotated[bool, typer.Option("--health", help="Show how the samplers did, too.")]
RunFolderOption = Annotated[
    Path | None, typer.Option(help="Write the results into this folder, for plot and report.")
]


@app.command(
    "run",
    epilog="Example: feelgood run linear-20 lints linucb --rounds 2k --seeds 10 --page page.html",
)
def run_command(
    names: NamesArgument,
    rounds: RoundsOption = None,
    seeds: SeedsOption = "10",
    set_: SweepOption = None,
    preset: PresetOption = None,
    label: LabelOption = None,
    rewards: RewardsOption = None,
    posterior_every: PosteriorEveryOption = None,
    health: HealthOption = False,
    json_: JsonOption = None,
    out: RunFolderOption = None,
    page: PageOption = None,
    force: ForceOption = False,
    plugin: PluginOption = None,
    data: DataOption = None,
) -> None:
    """Run agents on testbeds, print a table and say which agent is best."""
    from feelgood.data.datasets import use_data

    load_plugins(plugin)
    use_data(data)
    testbeds, agents = choose(names)
    given = parse_set_options(set_)
    problems = _problems(testbeds, label, rewards)
    files = RunFiles(json_path(json_), page, out)
    options: dict[str, Any] = {"rounds": rounds, "seeds": seeds, "preset": preset}
    options["posterior_every"] = posterior_every
    outcome = _play(problems, agents, given, options, lambda: prepare_output(files.all(), force))
    # First the files: the terminal may be gone, full or unable to show the table.
    wrote = files.write(outcome)
    _show(outcome.results, health, json_ == "-")
    if json_ == "-":
        print(json.dumps(outcome.to_json(), allow_nan=False))
    view = console_for(json_)
    for target in wrote:
        view.print(f"wrote {target}", markup=False, soft_wrap=True)
    if outcome.interrupted:
        errors.print(f"feelgood: interrupted; {len(outcome.results)} finished result(s) are kept.")
        raise typer.Exit(130)


@dataclasses.dataclass(frozen=True)
class RunFiles:
    """What is written; None is not."""

    json_file: Path | None
    page: Path | None
    out: Path | None

    def all(self) -> list[Path]:
        """All files."""
        folder = [self.out / RESULTS_FILE, self.out / TABLE_FILE] if self.out else []
        return [*(path for path in (self.json_file, self.page) if path is not None), *folder]

    def write(self, outcome: "RunResult") -> list[Path]:
        """Write them; stopped before the first result, older files stay as they are."""
        if not outcome.results:
            return []
        save_run(outcome, self.json_file, self.out)
        if self.page is not None:
            write_page(outcome.results, self.page)
        return self.all()


def _play(
    problems: "Mapping[str, str | Testbed]",
    agents: Sequence[str],
    given: Mapping[str, dict[str, Any]],
    options: Mapping[str, Any],
    checked: Callable[[], None],
) -> "RunResult":
    """Run all agents on all testbeds; `checked` is called when all input is known to be right."""
    from feelgood.api.run_result import RunResult
    from feelgood.api.running import run_each
    from feelgood.engine.results import AgentResult

    finished: list[AgentResult] = []
    interrupted = False
    with progress_bar(errors) as report:
        # All input is checked here, before anything runs.
        work = [
            run_each(
                problem,
                agents,
                settings=_settings_for(name, given, problems),
                progress=_labelled(report, name if len(problems) > 1 else None),
                **options,
            )
            for name, problem in problems.items()
        ]
        checked()
        try:
            with results_at_stake():
                for result in itertools.chain.from_iterable(work):
                    finished.append(result)
        except KeyboardInterrupt:
            interrupted = True
    return RunResult(tuple(finished), interrupted=interrupted)


def _problems(
    testbeds: "Sequence[str | Path]", label: str | None, rewards: str | None
) -> "dict[str, str | Testbed]":
    """The testbeds by name; files are read here, and every guess about them is printed."""
    files = [testbed for testbed in testbeds if isinstance(testbed, Path)]
    if (label or rewards) and not files:
        raise FeelgoodError(
            "--label and --rewards are for a file of your own: name one, such as mine.csv."
        )
    problems: dict[str, str | Testbed] = {}
    for testbed in testbeds:
        if isinstance(testbed, Path):
            from feelgood.api.frames import from_frame

            columns = None if rewards is None else [c.strip() for c in rewards.split(",")]
            problems[testbed.stem] = from_frame(
                testbed,
                label=label,
                rewards=columns,
                name=testbed.stem,
                notify=lambda sentence: errors.print(sentence, markup=False),
            )
        else:
            problems[testbed] = testbed
    if len(problems) < len(testbeds):
        raise FeelgoodError(f"two of {', '.join(map(str, testbeds))} have one name: rename a file.")
    return problems


def _settings_for(
    name: str, given: "Mapping[str, dict[str, Any]]", problems: "Iterable[str]"
) -> dict[str, dict[str, Any]]:
    """The settings that concern one testbed: not those of the others."""
    others = set(problems) - {name}
    return {owner: values for owner, values in given.items() if owner not in others}


def _labelled(
    report: Callable[[str, int, int], None], testbed: str | None
) -> Callable[[str, int, int], None]:
    """`report` with the testbed's name beside the agent's."""
    if testbed is None:
        return report
    return lambda agent, done, total: report(f"{agent} on {testbed}", done, total)


def _show(results: "Sequence[AgentResult]", health: bool, aside: bool) -> None:
    """The tables, what diverged, and which agent is best; `aside`: on stderr."""
    view = console_for("-" if aside else None)
    for testbed in dict.fromkeys(r.testbed for r in results):
        here = [r for r in results if r.testbed == testbed]
        view.print(result_table(here))
        if health:
            view.print(health_table(here))
        for result in here:
            if result.status != "ok":
                view.print(f"{result.agent}: {result.status}", style="yellow", markup=False)
        sentence = best_of(here)
        if sentence is not None:
            view.print(sentence, markup=False, soft_wrap=True)
