"""PodDisruptionBudgets as the API server writes them."""

import msgspec

from berth.kube.objects.meta import LabelSelector, ObjectMeta
from berth.kube.objects.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)

WRITTEN = b"""{
  "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
  "metadata": {"name": "web", "namespace": "default"},
  "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
  "status": {
    "disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3,
    "disruptedPods": {"web-1": "2026-01-01T00:00:00Z"}
  }
}"""


def test_what_is_read_of_a_budget() -> None:
    assert msgspec.json.decode(WRITTEN, type=PodDisruptionBudget) == PodDisruptionBudget(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "web"})),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=2, disrupted_pods={"web-1": "2026-01-01T00:00:00Z"}
        ),
    )


def test_a_budget_that_no_controller_has_seen_allows_nothing() -> None:
    budget = msgspec.json.decode(b'{"metadata": {"name": "new"}}', type=PodDisruptionBudget)
    assert (budget.spec.selector, budget.status.disruptions_allowed) == (None, 0)
