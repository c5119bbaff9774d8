"""The public names. To add one, add a line here; `__init__.py` reads this file."""

from feelgood.api.challenge_entries import check_entry as check_entry
from feelgood.api.challenge_entries import save_entry as save_entry
from feelgood.api.challenges import challenge as challenge
from feelgood.api.checking import check_agent as check_agent
from feelgood.api.checking import check_testbed as check_testbed
from feelgood.api.frames import from_frame as from_frame
from feelgood.api.run_result import RunResult as RunResult
from feelgood.api.run_result import load as load
from feelgood.api.running import run as run
from feelgood.api.running import run_each as run_each
from feelgood.api.tuned_agent import TuneResult as TuneResult
from feelgood.api.tuned_agent import tune as tune
from feelgood.core.errors import FeelgoodError as FeelgoodError
from feelgood.core.policy import AGENTS as AGENTS
from feelgood.core.policy import Policy as Policy
from feelgood.core.settings import setting as setting
from feelgood.core.spec import Spec as Spec
from feelgood.core.spec import Status as Status
from feelgood.core.testbed import TESTBEDS as TESTBEDS
from feelgood.core.testbed import Testbed as Testbed
from feelgood.engine.results import AgentResult as AgentResult
from feelgood.engine.simulation import simulate as simulate
from feelgood.evaluation.evaluating import evaluate as evaluate
from feelgood.live.bandit import Bandit as Bandit
from feelgood.live.decisions import Decision as Decision
from feelgood.logs.event_log import EventLog as EventLog
from feelgood.logs.log_reading import read_log as read_log
from feelgood.logs.opening import open_events as open_events

__version__: str
