"""`feelgood evaluate`: what agents would have earned on a log."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from feelgood.cli.app import app, errors
from feelgood.cli.choosing import is_pattern, matching
from feelgood.cli.options import (
    ForceOption,
    JsonOption,
    PluginOption,
    SetOption,
    json_path,
    split_names,
)
from feelgood.cli.output import console_for, prepare_output, write_atomically
from feelgood.cli.set_options import parse_single_values
from feelgood.core.errors import FeelgoodError
from feelgood.core.plugins import load_plugins

if TYPE_CHECKING:
    from feelgood.evaluation.evaluating import LogEvaluation
    from feelgood.logs.event_schema import Events


LogArgument = Annotated[
    Path,
    typer.Argument(help="A log: ours, an Open Bandit .csv, Vowpal Wabbit's .dsjson, or a table."),
]
JudgedArgument = Annotated[list[str], typer.Argument(help="Agents, such as lints linucb.")]
BlocksOption = Annotated[
    int, typer.Option(help="Parts of the log; agents learn from each after they are judged.")
]
MembersOption = Annotated[
    int, typer.Option(help="Chains of an agent whose rule has no formula for probabilities.")
]
SeedOption = Annotated[int, typer.Option(help="Seed of the agents.")]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="feelgood, open-bandit, dsjson or frame; default: guessed."),
]
ArmOption = Annotated[str | None, typer.Option(help="In a table: the column with the arms.")]
RewardOption = Annotated[str | None, typer.Option(help="In a table: the column with the rewards.")]
ProbabilityOption = Annotated[
    str | None, typer.Option(help="In a table: the column with the log's probabilities.")
]
FeaturesOption = Annotated[
    list[str] | None,
    typer.Option(help="In a table: the columns of the context, a,b,c; default: all others."),
]
LogPageOption = Annotated[Path | None, typer.Option(help="Write a page to this file.")]


@app.command("evaluate", epilog="Example: feelgood evaluate decisions.arrow lints linucb")
def evaluate_command(
    log: LogArgument,
    agents: JudgedArgument,
    blocks: BlocksOption = 20,
    members: MembersOption = 32,
    seed: SeedOption = 0,
    set_: SetOption = None,
    format_: FormatOption = None,
    arm: ArmOption = None,
    reward: RewardOption = None,
    probability: ProbabilityOption = None,
    features: FeaturesOption = None,
    json_: JsonOption = None,
    page: LogPageOption = None,
    force: ForceOption = False,
    plugin: PluginOption = None,
) -> None:
    """Say which agent would have done better on a log, with intervals and doubts."""
    from feelgood.api.progress import progress_bar
    from feelgood.evaluation.evaluating import evaluate

    load_plugins(plugin)
    given = parse_single_values(set_)
    json_file = json_path(json_)
    prepare_output([target for target in (json_file, page) if target is not None], force)
    with progress_bar(errors) as report:
        found = evaluate(
            _events(log, format_, features, arm=arm, reward=reward, probability=probability),
            _names(agents),
            blocks=blocks,
            members=members,
            seed=seed,
            settings=given,
            progress=report,
        )
    text = json.dumps(found.to_json(), indent=1, allow_nan=False) + "\n"
    if json_ == "-":
        typer.echo(text, nl=False)
    elif json_file is not None:
        write_atomically(json_file, lambda path: path.write_text(text))
    _show(found, log.name, json_)
    if page is not None:
        from feelgood.report.log_page import evaluation_page

        html = evaluation_page(found, log.name)
        write_atomically(page, lambda path: path.write_text(html, encoding="utf-8"))
        console_for(json_).print(f"wrote {page}", markup=False, soft_wrap=True)


def _events(
    log: Path, format_: str | None, features: list[str] | None, **columns: str | None
) -> "Events":
    """The log; a table by the columns that are named."""
    from feelgood.logs.frame_events import events_from_frame
    from feelgood.logs.opening import open_events

    if features is None and not any(columns.values()):
        return open_events(log, format_)
    if format_ not in (None, "frame"):
        raise FeelgoodError(f"--format {format_} has columns of its own: name none.")
    return events_from_frame(log, features=split_names(features) or None, **columns)


def _names(words: list[str]) -> list[str]:
    """Agents by name or pattern."""
    from feelgood import AGENTS

    out: list[str] = []
    for word in words:
        out += (matching(word, AGENTS.names()) or [word]) if is_pattern(word) else [word]
    return [AGENTS[name].name for name in out]


def _show(found: "LogEvaluation", name: str, json_: str | None) -> None:
    view = console_for(json_)
    for sentence in found.notes:
        view.print(sentence, markup=False, soft_wrap=True)
    view.print(_table(found, name))
    for sentence in (*found.warnings, found.sentence):
        view.print(sentence, markup=False, soft_wrap=True)


def _table(found: "LogEvaluation", name: str) -> Table:
    from feelgood.evaluation.value_table import table_caption, value_table

    heads, rows = value_table(found)
    title = f"reward per decision on {name}, {found.decisions:,} decisions"
    table = Table(title=title, caption=table_caption(found))
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
