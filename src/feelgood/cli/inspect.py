"""`feelgood list` and `feelgood doctor`: what there is, and what it runs on."""

from typing import Annotated

import typer
from rich.console import Console

from feelgood.cli.app import PluginOption, app
from feelgood.errors import FeelgoodError
from feelgood.plugins import load_plugins


@app.command("list")
def list_command(
    what: Annotated[str, typer.Argument(help="agents or testbeds; both if left out.")] = "all",
    all_: Annotated[
        bool, typer.Option("--all", help="Also the combinations that the paper did not run.")
    ] = False,
    settings: Annotated[bool, typer.Option("--settings", help="Show every setting too.")] = False,
    plugin: PluginOption = None,
) -> None:
    """List agents and testbeds, with what they are and what can be set."""
    from feelgood.running import AGENTS, TESTBEDS

    load_plugins(plugin)
    if what not in ("all", "agents", "testbeds"):
        raise FeelgoodError(f"cannot list '{what}': use agents or testbeds.")
    out = Console(highlight=False, soft_wrap=True)
    for title, registry in (("agents", AGENTS), ("testbeds", TESTBEDS)):
        if what not in ("all", title):
            continue
        if what == "all":
            out.print(title, style="bold")
        names = registry.names(more=all_)
        width = max(len(name) for name in names)
        for name in names:
            entry = registry[name]
            out.print(f"  {name:<{width}}  {entry.doc}", markup=False)
            if settings:
                for key, rule in entry.settings.items():
                    line = f"{key} = {rule.default}  ({rule.describe()})  {rule.doc}"
                    out.print(f"  {'':<{width}}    {line}", markup=False)


@app.command()
def doctor() -> None:
    """Versions, devices, cache folder, dataset availability: what to paste into a report."""
    import platform
    from importlib.metadata import version

    import jax

    from feelgood.compiling import cache_folder
    from feelgood.datasets import availability
    from feelgood.grouping import usable_cores

    out = Console(highlight=False, soft_wrap=True)
    rows = [("python", platform.python_version()), ("platform", platform.platform())]
    rows += [(name, version(name)) for name in ("feelgood", "jax", "jaxlib", "equinox")]
    rows += [(name, version(name)) for name in ("blackjax", "numpy", "pyarrow")]
    rows.append(("devices", ", ".join(f"{d.device_kind} ({d.platform})" for d in jax.devices())))
    rows.append(("cores", str(usable_cores())))
    rows.append(("cache", str(cache_folder())))
    folder, found, missing = availability()
    rows.append(("data folder", str(folder) if folder else "not set (FEELGOOD_DATA)"))
    rows.append(("datasets here", ", ".join(found) or "none"))
    rows.append(("datasets absent", ", ".join(missing) or "none"))
    for label, value in rows:
        out.print(f"{label:<16}{value}", markup=False)
