"""The public names. To add one, add a line here; `__init__.py` reads this file."""

from feelgood.challenges import challenge as challenge
from feelgood.checking import check_agent as check_agent
from feelgood.checking import check_testbed as check_testbed
from feelgood.errors import FeelgoodError as FeelgoodError
from feelgood.frames import from_frame as from_frame
from feelgood.protocols import AGENTS as AGENTS
from feelgood.protocols import TESTBEDS as TESTBEDS
from feelgood.protocols import Policy as Policy
from feelgood.protocols import Testbed as Testbed
from feelgood.results import AgentResult as AgentResult
from feelgood.results import RunResult as RunResult
from feelgood.running import run as run
from feelgood.running import run_each as run_each
from feelgood.saving import load as load
from feelgood.settings import setting as setting
from feelgood.simulate import simulate as simulate
from feelgood.types import Spec as Spec
from feelgood.types import Status as Status

__version__: str
