"""Reading a scenario file; what is wrong with it is said with file, line, field and value."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from berth.cluster.controllers.options import ControllerOptions
from berth.cluster.kubelet import configuration as kubelet
from berth.cluster.kubelet.configuration import KubeletConfiguration
from berth.cluster.kubelet.hollow_kubelets import Settings
from berth.cluster.kubelet.stages import load as stages
from berth.cluster.kubelet.stages.types import Stages
from berth.kube import documents, field_errors, manifests
from berth.kube.field_errors import join
from berth.kube.manifests import Manifest, ManifestError
from berth.runtime.errors import UserError
from berth.scheduler.config import decode, errors
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.feature_gates import Features, server_features
from berth.scheduler.config.load import from_object
from berth.scheduler.config.types import API_VERSION as CONFIGURATION_VERSION
from berth.scheduler.config.types import KIND as CONFIGURATION_KIND
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.profile.build import check_profiles
from berth.service.plugin_sources import KnownPlugins
from berth.tools.autoscaler import node_groups
from berth.tools.autoscaler.node_groups import NodeGroups
from berth.tools.up.scenario.actions import Manifests
from berth.tools.up.scenario.types import API_VERSION, KIND, Scenario

MOST_SHOWN: Final = 120
"""Characters of a value that a message repeats."""

Step = str | int


class ScenarioError(ConfigError):
    """A scenario file that cannot be used; ``str()`` has one line per problem."""


class ScenarioFile:
    """A scenario that was read, and the files beside it. Raises ScenarioError."""

    def __init__(self, path: Path, plugins: KnownPlugins | None = None) -> None:
        """*plugins* are those that scheduler configurations may enable; in-tree ones by default."""
        self._path = path
        self._plugins = plugins or KnownPlugins()
        try:
            text = path.read_bytes()
        except OSError as exc:
            raise ScenarioError(str(path), [exc.strerror or str(exc)]) from exc
        document = decode.document(text, source=str(path))
        self._lines = _Lines(text)
        if document.duplicates:
            raise ScenarioError(str(path), document.duplicates)
        self.scenario = self._decoded(document.value)
        self._check_beside()

    @property
    def name(self) -> str:
        return self.scenario.metadata.name or self._path.stem

    def objects(self, given: Manifests) -> list[tuple[str, Manifest]]:
        """Return manifests with where they come from."""
        sourced: list[tuple[str, Manifest]] = []
        for source in given:
            if isinstance(source, str):
                path = self._path.parent / source
                sourced += [(str(path), obj) for obj in manifests.read(path)]
            else:
                text = json.dumps(source)
                sourced += [(str(self._path), o) for o in manifests.parse(text, source="manifest")]
        return sourced

    def controller_options(self) -> ControllerOptions:
        """Return the settings of the controllers."""
        given = self.scenario.cluster.controller_manager
        return ControllerOptions(
            node_monitor_period=given.node_monitor_period.seconds,
            node_monitor_grace_period=given.node_monitor_grace_period.seconds,
            terminated_pod_gc_threshold=given.terminated_pod_gc_threshold,
        )

    def kubelets(self) -> Settings:
        """Return how all nodes behave. Raises KubeletConfigurationError and StagesError."""
        return Settings(
            configuration=self.kubelet_configuration(),
            stages=self.stages(),
            release=self.release,
        )

    def kubelet_configuration(self) -> KubeletConfiguration:
        """Return the configuration of all nodes. Raises KubeletConfigurationError."""
        fields, source = self._fields(self.scenario.cluster.kubelet_configuration)
        return kubelet.from_object(fields, source=source)

    def node_groups(self) -> NodeGroups:
        """Return what the autoscaler scales. Raises UserError."""
        names = self.scenario.cluster.node_groups
        return node_groups.read(self._path.parent / name for name in names)

    def stages(self) -> Stages:
        """Return how pods live. Raises StagesError."""
        fields, source = self._fields(self.scenario.cluster.stages)
        return stages.from_object(fields, source=source)

    def _fields(self, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
        """Return a configuration that *given* has or names, and what it is called in errors."""
        name = given.get("file")
        if name is None:
            return given, str(self._path)
        path = self._path.parent / str(name)
        try:
            value = decode.document(path.read_bytes(), source=str(path)).value
        except OSError as exc:
            raise ScenarioError(str(path), [exc.strerror or str(exc)]) from exc
        return value if isinstance(value, dict) else {}, str(path)

    def configuration(self, given: Mapping[str, Any]) -> KubeSchedulerConfiguration:
        """Return the scheduler's configuration that *given* stands for."""
        fields, source = self._fields(given)
        head = {"apiVersion": CONFIGURATION_VERSION, "kind": CONFIGURATION_KIND}
        config = from_object(
            {**head, **fields},
            source=source,
            args_models=self._plugins.args_models,
            known_plugins=self._plugins.registry,
        )
        check_profiles(config, self._plugins.registry, source=source)
        return config

    @property
    def release(self) -> str:
        """Which release of Kubernetes the cluster serves."""
        return self.features.version.emulation

    @cached_property
    def features(self) -> Features:
        """What is on in the API server: by the scheduler's configuration at the start."""
        cluster = self.scenario.cluster
        config = self.configuration(cluster.scheduler_configuration)
        return server_features(config, cluster.kubernetes_version)

    def _decoded(self, value: object) -> Scenario:
        fields = value if isinstance(value, dict) else {}
        given = fields.get("apiVersion"), fields.get("kind")
        if given != (API_VERSION, KIND):
            shown = f"apiVersion {given[0]!r} and kind {given[1]!r}"
            raise self._error(
                [((), f"apiVersion {API_VERSION} and kind {KIND} are needed, got {shown}")]
            )
        try:
            return Scenario.model_validate_json(json.dumps(fields), by_alias=True, by_name=False)
        except ValidationError as exc:
            raise self._error(_problems(exc)) from exc

    def _check_beside(self) -> None:
        """Read what the scenario embeds or names, so that it does not end in the middle."""
        scenario = self.scenario
        problems: list[tuple[tuple[Step, ...], str]] = []

        def check_objects(place: tuple[Step, ...], given: Manifests) -> None:
            for index, source in enumerate(given):
                try:
                    self.objects((source,))
                except ManifestError as exc:
                    problems.append(((*place, index), f"{join('', *place, index)}: {exc}"))

        def check_configuration(place: tuple[Step, ...], given: Mapping[str, Any]) -> None:
            try:
                self.configuration(given)
            except ConfigError as exc:
                where = join("", *place)
                problems.extend((place, f"{where}: {problem}") for problem in exc.problems)

        cluster = ("cluster", "schedulerConfiguration")
        check_configuration(cluster, scenario.cluster.scheduler_configuration)
        for name, read in (
            ("kubeletConfiguration", self.kubelet_configuration),
            ("stages", self.stages),
            ("nodeGroups", self.node_groups),
        ):
            try:
                read()
            except UserError as exc:
                at = ("cluster", name)
                problems += [(at, f"{join('', *at)}: {line}") for line in str(exc).splitlines()]
        check_objects(("cluster", "objects"), scenario.cluster.objects)
        for number, step in enumerate(scenario.steps):
            for index, action in enumerate(step.do):
                place = ("steps", number, "do", index)
                for name, given in (("create", action.create), ("apply", action.apply)):
                    if given is not None:
                        check_objects((*place, name), given)
                if action.configure_scheduler is not None:
                    check_configuration((*place, "configureScheduler"), action.configure_scheduler)
        if problems:
            raise self._error(problems)

    def _error(self, problems: Iterable[tuple[tuple[Step, ...], str]]) -> ScenarioError:
        located = [f"line {self._lines.of(place)}: {problem}" for place, problem in problems]
        return ScenarioError(str(self._path), located)


def _problems(error: ValidationError) -> Iterator[tuple[tuple[Step, ...], str]]:
    for detail in error.errors(include_url=False):
        place, value = detail["loc"], detail["input"]
        where = join("", *place)
        match detail["type"]:
            case "extra_forbidden":
                yield place, errors.unknown_field(where)
            case "missing":
                yield place, errors.required(where)
            case "literal_error":
                supported = str(detail["ctx"]["expected"]).replace("'", '"')
                shown = errors.shown(value, where)
                yield place, f"{where}: Unsupported value: {shown}: supported: {supported}"
            case "value_error":
                yield place, _invalid(where, value, str(detail["ctx"]["error"]))
            case "too_short" if len(value) >= detail["ctx"]["min_length"]:
                pass  # a consequence: what is wrong in them was said
            case _:
                yield place, _invalid(where, value, detail["msg"][0].lower() + detail["msg"][1:])


def _invalid(where: str, value: object, why: str) -> str:
    if isinstance(value, dict | list):
        return f"{where}: {why}"
    shown = field_errors.quoted(value)
    if len(shown) > MOST_SHOWN:
        shown = f"{shown[:MOST_SHOWN]}..."
    return f"{where}: Invalid value: {shown}: {why}"


class _Lines:
    """On which line of a YAML text the value at a path begins."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def of(self, place: Iterable[Step]) -> int:
        """Return the line of the innermost value of *place* that the text has, from 1."""
        documents.check(self._text)
        node: Any = yaml.compose(self._text, Loader=documents.SafeLoader)
        line = 0 if node is None else node.start_mark.line
        for step in place:
            inner = _inside(node, step)
            if inner is None:
                break
            line, node = inner
        return int(line) + 1


def _inside(node: Any, step: Step) -> tuple[int, Any] | None:
    """Return the line and the value of *step* into a YAML node; None if there is none."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark.line, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        value = node.value[step]
        return value.start_mark.line, value
    return None
