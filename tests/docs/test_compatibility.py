"""docs/compatibility.md against the code, both ways: nothing is there that it does not list.

Nor the other way round. What kube-scheduler has and berth lacks is in it as absent; that list comes
from the specification (§7, §8, §12.2) and the recorded metrics.
"""

import ast
import importlib
import pkgutil
import random
import typing
from collections.abc import Iterator
from dataclasses import MISSING, Field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

import berth.scheduler.metrics
from berth.kube.client.connect import Endpoint, client_of
from berth.runtime.clock import FakeClock
from berth.runtime.metrics import Family
from berth.runtime.release import RELEASES, EffectiveVersion
from berth.scheduler.config.feature_gates import CONSULTED, OWN, TURNABLE, default_gates
from berth.scheduler.config.load import default_configuration
from berth.scheduler.config.options import flag_fields
from berth.scheduler.config.types import KubeSchedulerConfiguration, PluginSet
from berth.scheduler.metrics.absent import ABSENT
from berth.scheduler.metrics.process import declared
from berth.scheduler.profile.build import args_models
from berth.service.applications import scheduler_application
from berth.service.scheduler_service import SchedulerService
from berth.service.server.application import Application
from berth_plugins.registry import IN_TREE
from tests.scheduler.metrics.test_recorded import RECORDED, UNSEEN

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
STATES = {"same", "differs", "no effect", "absent", "own"}

OF_THE_SPEC = {
    "/", "/healthz", "/livez", "/readyz", "/metrics", "/metrics/resources", "/metrics/slis",
    "/configz", "/flagz", "/statusz", "/debug/pprof/", "/debug/pprof/profile",
    "/debug/pprof/symbol", "/debug/pprof/trace", "/debug/flags", "/debug/flags/v",
}  # fmt: skip
"""Endpoints of spec §7.3."""

NEVER_SEEN = {
    "scheduler_podgroup_schedule_attempts_total": ("counter", "profile, result"),
    "scheduler_podgroup_scheduling_attempt_duration_seconds": ("histogram", "profile, result"),
    "scheduler_podgroup_scheduling_algorithm_duration_seconds": ("histogram", ""),
    "scheduler_volume_binder_cache_requests_total": ("counter", "operation"),
}
"""Families of spec §8 that had nothing to say when kube-scheduler was recorded."""

ELSEWHERE_SERVED = {
    "kubernetes_healthcheck",
    "kubernetes_healthchecks_total",
    "kube_pod_resource_limit",
    "kube_pod_resource_request",
}
"""Not on /metrics."""


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below *heading*, without backticks."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[2:]]


def listed(heading: str) -> dict[str, list[str]]:
    found = rows(heading)
    names = [name for name, *_ in found]
    assert len(names) == len(set(names)), "listed twice"
    return {name: rest for name, *rest in found}


class Entry(NamedTuple):
    heading: str
    name: str
    state: str
    note: str


def entries() -> Iterator[Entry]:
    for heading in (
        "Flags",
        "Configuration fields",
        "Plugin arguments",
        "Feature gates",
        "Metrics",
        "Events",
        "Endpoints",
    ):
        for name, *rest in rows(heading):
            yield Entry(heading, name, rest[-2], rest[-1])


def test_every_entry_has_a_state_and_whatever_is_not_the_same_a_note() -> None:
    assert {entry.state for entry in entries()} == STATES
    assert not [
        e for e in entries() if e.state in ("differs", "no effect", "absent") and not e.note
    ]


# Flags.


def default_of(option: Field[Any]) -> str:
    value = option.default if option.default_factory is MISSING else option.default_factory()
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(value)
        case dict():
            return ""
        case _:
            return str(value)


def test_flags() -> None:
    wanted = {
        "-v" if option.name == "v" else "--" + option.name.replace("_", "-"): default_of(option)
        for option in flag_fields()
    }
    assert {name: default for name, (default, *_) in listed("Flags").items()} == wanted


# The configuration.


def paths(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """Yield the JSON paths of all fields of *model* that are no objects themselves."""
    for name, field in model.model_fields.items():
        path = prefix + (field.serialization_alias or field.alias or name)
        inner: Any = field.annotation
        arguments = [each for each in typing.get_args(inner) if each is not type(None)]
        if typing.get_origin(inner) is tuple:
            inner, path = arguments[0], f"{path}[]"
        elif len(arguments) == 1:
            inner = arguments[0]
        if isinstance(inner, type) and issubclass(inner, BaseModel) and inner is not PluginSet:
            yield from paths(inner, f"{path}.")
        else:
            yield path.removesuffix("[]")


def test_configuration_fields() -> None:
    assert set(listed("Configuration fields")) == set(paths(KubeSchedulerConfiguration, ""))


def test_plugin_arguments() -> None:
    arguments = {
        path
        for plugin, model in args_models(IN_TREE).items()
        for path in paths(model, f"{plugin}.")
        if path.rpartition(".")[2] not in ("apiVersion", "kind")
    }
    found = {name: state for name, (state, _) in listed("Plugin arguments").items()}
    assert {name for name, state in found.items() if state != "absent"} == arguments


def test_feature_gates() -> None:
    stages = {"ALPHA": "alpha", "BETA": "beta", "": "GA", "BERTH": "berth"}
    releases = [default_gates(EffectiveVersion.of(release)) for release in RELEASES]
    wanted = {}
    for name in CONSULTED | TURNABLE:
        gates = [release.get(name) for release in releases]
        cells = [
            "-"
            if gate is None
            else f"{stages[gate.stage]}, {'on' if gate.enabled else 'off'}"
            + (", locked" if gate.locked else "")
            for gate in gates
        ]
        same = name in TURNABLE or all(gate.locked for gate in gates if gate is not None)
        state = "own" if name in OWN else "same" if same else "differs"
        wanted[name] = [*cells, state]
    assert {name: rest[:3] for name, rest in listed("Feature gates").items()} == wanted


# Metrics.


def covers(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def test_every_family_is_declared_where_it_is_looked_for() -> None:
    made = {
        thing.name
        for module in pkgutil.walk_packages(
            berth.scheduler.metrics.__path__, "berth.scheduler.metrics."
        )
        for thing in vars(importlib.import_module(module.name)).values()
        if isinstance(thing, Family)
    }
    assert made - ELSEWHERE_SERVED == {family.name for family in declared()}


def test_metrics() -> None:
    ours = {
        family.name: [str(family.kind), ", ".join(sorted(family.labels))] for family in declared()
    }
    theirs = {
        name: [shape.kind, ", ".join(sorted(shape.labels))]
        for name, shape in (RECORDED | UNSEEN).items()
    } | {name: [*shape] for name, shape in NEVER_SEEN.items()}
    patterns = [name for name in listed("Metrics") if name.endswith("*")]
    told_together = {name for name in theirs for pattern in patterns if covers(pattern, name)}
    table = listed("Metrics")
    found = {
        name: rest[:2]
        for name, rest in table.items()
        if name not in patterns and name not in ELSEWHERE_SERVED
    }
    assert found == {k: v for k, v in (theirs | ours).items() if k not in told_together}
    assert table.keys() >= ELSEWHERE_SERVED


@pytest.mark.parametrize("name", [name for name in listed("Metrics") if name[-1] != "*"])
def test_the_state_of_a_metric(name: str) -> None:
    state, note = listed("Metrics")[name][2:]
    reasons = [reason for pattern, reason in ABSENT.items() if covers(pattern, name)]
    if reasons:
        assert (state, note) == ("absent", reasons[0])
    elif name.startswith("berth_"):
        assert state == "own"
    else:
        assert state in ("same", "differs")


# Events.


def events_of_the_code() -> set[tuple[str, str, str]]:
    """Return reason, action and type wherever an event is made of constants."""
    found: set[tuple[str, str, str]] = set()
    for folder in ("app", "plugins"):
        for file in (ROOT / folder).rglob("*.py"):
            if "cluster" in file.parts:  # the embedded cluster's, not the scheduler's
                continue
            text = file.read_text(encoding="utf-8")
            if "action=" not in text:
                continue  # it takes seconds to parse all of them
            for call in ast.walk(ast.parse(text)):
                if isinstance(call, ast.Call):
                    given = {
                        word.arg: str(word.value.value)
                        for word in call.keywords
                        if isinstance(word.value, ast.Constant)
                    }
                    if given.keys() >= {"reason", "action", "type"}:
                        found.add((given["reason"], given["action"], given["type"]))
    return found


def test_events() -> None:
    about_pods = {(reason, action, type) for reason, action, type, *_ in rows("Events") if action}
    assert about_pods == events_of_the_code()
    assert ["LeaderElection", "", "Normal"] in [row[:3] for row in rows("Events")]


# Endpoints.


async def test_endpoints() -> None:
    clock = FakeClock()
    client = client_of(
        Endpoint("http://127.0.0.1:1"), qps=0, burst=1, user_agent="test", clock=clock
    )
    config = default_configuration(args_models(IN_TREE))
    application = scheduler_application(
        SchedulerService(client, config, clock=clock, rng=random.Random(0)), serves_page=True
    )
    assert isinstance(application, Application)
    served = application.paths | set(application.openapi()["paths"]) | {"/", "/openapi.json"}
    await client.close()

    table = listed("Endpoints")
    with_election = {"/healthz/leaderElection", "/readyz/leaderElection"}
    absent = {path for path, (state, _) in table.items() if state == "absent"}
    assert table.keys() - absent - with_election == served
    assert with_election <= table.keys()
    assert not absent & served
    assert table.keys() >= OF_THE_SPEC
