"""What a scheduler serves is ready before it is asked: what is made then holds up the loop."""

import subprocess
import sys
from typing import Final

MODELS_BUILT: Final = """
import random

from berth.insight.explain.explanation import ResponseModel
from berth.kube.client.connect import Endpoint, client_of
from berth.runtime.clock import FakeClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.service.applications import scheduler_application
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE

def models(base=ResponseModel):
    for model in base.__subclasses__():
        yield from (model, *models(model))

clock = FakeClock()
endpoint = Endpoint("http://127.0.0.1:1")
client = client_of(endpoint, qps=0, burst=1, user_agent="test", clock=clock)
config = default_configuration(args_models(IN_TREE))
scheduler_application(SchedulerService(client, config, clock=clock, rng=random.Random(0)))
print(len([*models()]) > 50, *(m.__name__ for m in models() if not m.__pydantic_complete__))
"""


def test_models_of_answers_are_built() -> None:
    """In a process of its own, for other tests have used the models."""
    argv = [sys.executable, "-c", MODELS_BUILT]
    assert subprocess.check_output(argv, text=True) == "True\n"
