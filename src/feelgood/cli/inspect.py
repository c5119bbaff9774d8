"""`feelgood list` and `feelgood doctor`: what there is, and what it runs on."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from feelgood.cli.app import app
from feelgood.cli.choosing import is_pattern, matching
from feelgood.cli.options import PluginOption
from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.core.plugins import load_plugins

if TYPE_CHECKING:
    from feelgood.core.registry import Entry, Registry


@app.command("list", epilog="Example: feelgood list lmcts")
def list_command(
    what: Annotated[
        str,
        typer.Argument(
            help="agents, testbeds, a pattern such as 'fg*', or a name, which is described."
        ),
    ] = "all",
    all_: Annotated[
        bool, typer.Option("--all", help="Also the combinations that the paper did not run.")
    ] = False,
    settings: Annotated[bool, typer.Option("--settings", help="Show every setting too.")] = False,
    plugin: PluginOption = None,
) -> None:
    """List agents and testbeds, with what they are and what can be set, or describe one."""
    from feelgood import AGENTS, TESTBEDS

    load_plugins(plugin)
    out = Console(highlight=False, soft_wrap=True)
    registries: dict[str, Registry[Any]] = {"agents": AGENTS, "testbeds": TESTBEDS}
    names = {title: registry.names(more=all_) for title, registry in registries.items()}
    if is_pattern(what):
        names = {title: tuple(matching(what, known)) for title, known in names.items()}
    elif what in registries:
        names = {what: names[what]}
    elif what != "all":
        for registry in registries.values():
            if what in registry:
                _describe(registry[what], registry.kind, out)
                return
        known = [*registries, *AGENTS.names(more=True), *TESTBEDS.names(more=True)]
        raise FeelgoodError(f"cannot list '{what}': {did_you_mean(what, known)}")
    if not any(names.values()):
        raise FeelgoodError(f"nothing matches '{what}': 'feelgood list --all' shows every name.")
    width = max(len(name) for chosen in names.values() for name in chosen)
    for title, chosen in names.items():
        for family, members in registries[title].by_family(chosen).items():
            if family or len(names) > 1:
                heading = f"{title}: {family}" if family else title
                out.print(heading, style="bold", markup=False)
            for name in members:
                entry = registries[title][name]
                out.print(f"  {name:<{width}}  {entry.doc}", markup=False)
                if settings:
                    _print_settings(entry, out, indent=width + 6)


def _print_settings(entry: "Entry[Any]", out: Console, indent: int) -> None:
    for key, rule in entry.settings.items():
        tuned = f"; tuned from {rule.tune[0]:g} to {rule.tune[1]:g}" if rule.tune else ""
        line = f"{key} = {rule.default}  ({rule.describe()}{tuned})  {rule.doc}"
        out.print(" " * indent + line, markup=False)


def _describe(entry: "Entry[Any]", kind: str, out: Console) -> None:
    """What an agent or a testbed is, its parts and settings, and a command that runs it."""
    from feelgood.api.describing import example_of, texts_of

    out.print(entry.name, style="bold", end=": ")
    out.print(entry.doc, markup=False)
    for text in texts_of(entry):
        out.print()
        out.print(text, markup=False)
    if entry.settings:
        out.print("\nsettings", style="bold")
        _print_settings(entry, out, indent=2)
    out.print("\nexample", style="bold")
    out.print(f"  {example_of(entry, kind)}", markup=False)


def _version_or_none(package: str) -> str:
    """The version of a package that need not be there."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@app.command(epilog="Example: feelgood doctor")
def doctor() -> None:
    """Versions, devices, cache folder, dataset availability: what to paste into a report."""
    import platform
    from importlib.metadata import version

    import jax

    from feelgood.data.datasets import availability
    from feelgood.engine.compiling import cache_folder
    from feelgood.engine.device import usable_cores

    out = Console(highlight=False, soft_wrap=True)
    rows = [("python", platform.python_version()), ("platform", platform.platform())]
    rows += [(name, version(name)) for name in ("feelgood", "jax", "jaxlib", "equinox")]
    rows.append(("numpy", version("numpy")))
    rows += [(name, _version_or_none(name)) for name in ("pyarrow", "altair", "blackjax", "ray")]
    rows.append(("devices", ", ".join(f"{d.device_kind} ({d.platform})" for d in jax.devices())))
    rows.append(("cores", str(usable_cores())))
    rows.append(("cache", str(cache_folder())))
    folder, found, missing = availability()
    rows.append(("data folder", str(folder) if folder else "not set (FEELGOOD_DATA)"))
    rows.append(("datasets here", ", ".join(found) or "none"))
    rows.append(("datasets absent", ", ".join(missing) or "none"))
    for label, value in rows:
        out.print(f"{label:<16}{value}", markup=False)
