"""`docs/architecture.md` is true, and the limits that it rests on hold."""

import ast
import inspect
import re
import tomllib
from pathlib import Path

import pytest

from feelgood.core.policy import Hints, Needs, Policy, Report

ROOT = Path(__file__).resolve().parents[1]
HOUSE = ROOT / "src" / "feelgood"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
#: Low to high.
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"][0]["layers"][::-1]
#: Rooms that are told how chains are laid out, and never ask for the device.
TOLD = ("targets", "samplers", "agents")
MOST_STEPS = 15
MOST_REQUIRED, MOST_MEMBERS = 3, 8


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found.group(1)


def steps() -> list[str]:
    return re.findall(r"^\d+\. .+(?:\n {2,}.+)*", section("The walk of one round"), re.MULTILINE)


def files_in(text: str) -> list[str]:
    return re.findall(r"`([\w/]+\.py)`", text)


def test_every_folder_of_the_package_is_a_room_of_the_contract() -> None:
    folders = {path.parent.name for path in HOUSE.glob("*/__init__.py")}
    assert folders == set(LAYERS) and len(LAYERS) == len(folders)


def test_the_picture_has_the_rooms_in_the_order_of_the_contract() -> None:
    picture = re.findall(r"│ (\w+) .*│$", section("The rooms"), re.MULTILINE)
    assert picture == LAYERS[::-1]


def test_every_room_says_what_it_may_touch() -> None:
    described = re.findall(r"^\*\*(\w+)\*\*: ", section("What each room may touch"), re.MULTILINE)
    assert described == LAYERS


def test_the_walk_is_short_and_every_step_names_its_file() -> None:
    walk = steps()
    assert 10 <= len(walk) <= MOST_STEPS
    assert [int(step.split(".")[0]) for step in walk] == list(range(1, len(walk) + 1))
    assert all(files_in(step) for step in walk)


def test_every_file_that_the_page_names_exists() -> None:
    rooms = dict(re.findall(r"^\*\*(\w+)\*\*: (.+(?:\n.+)*)", PAGE, re.MULTILINE))
    named = [(HOUSE, name) for name in files_in(PAGE) if "/" in name]
    named += [
        (HOUSE / room, n) for room, text in rooms.items() for n in files_in(text) if "/" not in n
    ]
    assert len(named) > 30
    lacking = [name for folder, name in named if not (folder / name).is_file()]
    assert not lacking


def test_the_calls_of_a_round_are_in_the_file_that_the_walk_names() -> None:
    (step,) = [step for step in steps() if "**The round**" in step]
    loop = (HOUSE / "engine" / "loop.py").read_text(encoding="utf-8")
    for call in ("draw", "choose", "update", "report"):
        assert f"`{call}`" in step and f"policy.{call}(" in loop


def test_a_policy_is_small() -> None:
    own = {name for name in vars(Policy) if not name.startswith("_")}
    members = {name for name in own if callable(getattr(Policy, name))}
    required = {
        name for name in members if getattr(getattr(Policy, name), "__isabstractmethod__", 0)
    }
    assert required == {"init", "choose", "update"} and len(required) <= MOST_REQUIRED
    assert members == own and len(own) <= MOST_MEMBERS


@pytest.mark.parametrize("part", [Policy, Needs, Report, Hints])
def test_the_page_on_agents_has_every_member(part: type) -> None:
    page = (ROOT / "docs" / "adding-an-agent.md").read_text(encoding="utf-8")
    names = getattr(part, "_fields", None) or [n for n in vars(Policy) if not n.startswith("_")]
    for name in names:
        assert re.search(rf"[`(]{name}\b", page), name
    for name in set(re.findall(r"^\| `(\w+)\(", page, re.MULTILINE)):
        assert inspect.isfunction(getattr(Policy, name))


def mentions_of_the_device(source: str) -> list[str]:
    """What a module imports or reads of the device."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        else:
            continue
        found += [name for name in names if DEVICE.search(name)]
    return found


DEVICE = re.compile(
    r"default_backend|jax\.(local_)?devices|engine\.device|on_accelerator|platform$"
)


@pytest.mark.parametrize("room", TOLD)
def test_no_agent_sampler_or_target_reads_the_device(room: str) -> None:
    files = sorted((HOUSE / room).rglob("*.py"))
    assert len(files) > 3
    found = {f.name: m for f in files if (m := mentions_of_the_device(f.read_text("utf-8")))}
    assert not found, "the layout in `Spec` says all that they may know"


def test_the_check_of_the_device_can_fail() -> None:
    assert mentions_of_the_device("import jax\nif jax.default_backend() == 'cpu': pass")
    assert mentions_of_the_device("from feelgood.engine.device import usable_cores")
    assert mentions_of_the_device("from feelgood.engine import device")
    assert mentions_of_the_device("from jax import devices")
    assert not mentions_of_the_device("import jax\njax.vmap(f)")
