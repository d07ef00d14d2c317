"""Reasons why a recorded pod fits, or does not, for people."""

from collections.abc import Mapping
from typing import Any

from berth.insight.explain.evaluation import evaluate
from berth.insight.explain.explanation import Explanation
from berth.insight.explain.summary import Subject, summarize
from berth.insight.offline.explain import question
from berth.scheduler.config.load import Adjust, as_is
from berth.scheduler.profile.build import Registry


def reasons(
    scenario: Mapping[str, Any], registry: Registry, *, limit: int | None, adjust: Adjust = as_is
) -> Explanation | str:
    """Tell about ``scenario["pod"]`` and the *limit* best nodes; or why it cannot.

    *adjust* may change the configuration of the scenario.
    Raises ScenarioError or ConfigError when the scenario is malformed.
    """
    asked = question(scenario, registry, adjust)
    if isinstance(asked, str):
        return asked
    evaluation = evaluate(
        asked.profile, asked.pod, asked.nodes, nominated=asked.nominated, limit=limit
    )
    return Explanation(
        pod=asked.pod.key,
        uid=asked.pod.uid,
        profile=asked.profile.name,
        summary=summarize(Subject(asked.pod.key), None, evaluation),
        evaluation=evaluation,
    )
