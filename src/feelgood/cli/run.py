"""`feelgood run`."""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from feelgood.api.progress import progress_bar
from feelgood.cli.app import SEEDS_HELP, DataOption, PluginOption, RoundsOption, app, errors
from feelgood.cli.choosing import choose
from feelgood.cli.output import (
    RESULTS_FILE,
    TABLE_FILE,
    best_of,
    console_for,
    health_table,
    prepare_output,
    result_table,
    save,
    write_page,
)
from feelgood.cli.streams import results_at_stake
from feelgood.core.errors import FeelgoodError
from feelgood.core.plugins import load_plugins

if TYPE_CHECKING:
    from feelgood.core.testbed import Testbed
    from feelgood.engine.results import AgentResult


def parse_value(text: str) -> Any:
    """`0.1`, `true`, `sqrt`, or a comma-separated list of such: a sweep."""
    parts = [part.strip() for part in text.split(",")]
    values: list[Any] = []
    for part in parts:
        try:
            values.append(json.loads(part))
        except (ValueError, RecursionError):
            values.append(part)
    return values if len(values) > 1 else values[0]


def parse_settings(pairs: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """`agent.key=value` pairs as a nested dictionary; the key is what follows the last dot."""
    out: dict[str, dict[str, Any]] = {}
    for pair in pairs or ():
        left, equals, value = pair.partition("=")
        owner, dot, key = left.rpartition(".")
        if not equals or not dot or not owner or not key or not value:
            raise FeelgoodError(
                f"--set {pair} is not understood: write agent.key=value, such as linucb.alpha=0.5."
            )
        if key in out.setdefault(owner, {}):
            raise FeelgoodError(f"--set {owner}.{key} is given twice: give one value, or a list.")
        out[owner][key] = parse_value(value)
    return out


@app.command()
def run(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="TESTBED... AGENT...",
            help="Testbeds and agents in any order, such as linear-20 lints linucb. Patterns such "
            "as 'linear-*' go in quotes. A .csv, .tsv or .parquet file of yours is a testbed too.",
        ),
    ],
    rounds: RoundsOption = None,
    seeds: Annotated[str, typer.Option(help=SEEDS_HELP)] = "10",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="agent.key=value; a list a,b,c is a sweep; testbed.key too."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="paper: the paper's settings; see docs/reproducing.md.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Of your file: the column with the right answer.")
    ] = None,
    rewards: Annotated[
        str | None, typer.Option(help="Of your file: the columns with each arm's reward, a,b,c.")
    ] = None,
    posterior_every: Annotated[
        int | None, typer.Option(help="Measure the agents' posteriors every so many rounds.")
    ] = None,
    health: Annotated[
        bool, typer.Option("--health", help="Show how the samplers did, too.")
    ] = False,
    json_: Annotated[
        str | None, typer.Option("--json", help="Write results to this file, or - for stdout.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the results into this folder, for plot and report.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write the interactive page to this file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing results.")] = False,
    plugin: PluginOption = None,
    data: DataOption = None,
) -> None:
    """Run agents on testbeds, print a table and say which agent is best."""
    from feelgood.api.run_result import RunResult
    from feelgood.api.running import run_each
    from feelgood.data.datasets import use_data
    from feelgood.engine.results import AgentResult

    load_plugins(plugin)
    use_data(data)
    testbeds, agents = choose(names)
    given = parse_settings(set_)
    problems = _problems(testbeds, label, rewards)
    json_file = None if json_ in (None, "-") else Path(str(json_))
    targets = [path for path in (json_file, page) if path is not None]
    targets += [out / RESULTS_FILE, out / TABLE_FILE] if out else []
    finished: list[AgentResult] = []
    interrupted = False
    with progress_bar(errors) as report:
        # All input is checked here, before anything runs.
        work = [
            run_each(
                problem,
                agents,
                rounds=rounds,
                seeds=seeds,
                settings=_settings_for(name, given, problems),
                preset=preset,
                posterior_every=posterior_every,
                progress=_labelled(report, name if len(problems) > 1 else None),
            )
            for name, problem in problems.items()
        ]
        prepare_output(targets, force)
        try:
            with results_at_stake():
                for result in itertools.chain.from_iterable(work):
                    finished.append(result)
        except KeyboardInterrupt:
            interrupted = True
    outcome = RunResult(tuple(finished), interrupted=interrupted)
    if finished:
        # First the files: the terminal may be gone, full or unable to show the table.
        save(outcome, json_file, out)
        if page is not None:
            write_page(finished, page)
    else:
        targets = []  # stopped before the first result: older files stay as they are
    _show(finished, health, json_ == "-")
    if json_ == "-":
        print(json.dumps(outcome.to_json(), allow_nan=False))
    view = console_for(json_)
    for target in targets:
        view.print(f"wrote {target}", markup=False, soft_wrap=True)
    if interrupted:
        errors.print(f"feelgood: interrupted; {len(finished)} finished result(s) are kept.")
        raise typer.Exit(130)


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
