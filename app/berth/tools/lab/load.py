"""Reading a Lab file and what it names. Raises ConfigError or LabError."""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from berth.kube.objects.pod import Pod
from berth.kube.objects.resources import requested
from berth.runtime.release import version
from berth.scheduler.config import decode
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.load import from_object, load
from berth.scheduler.config.model_errors import model_problems
from berth.scheduler.config.presets import preset
from berth.scheduler.config.types import API_VERSION as CONFIGURATION_VERSION
from berth.scheduler.config.types import KIND as CONFIGURATION_KIND
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.profile.build import check_profiles
from berth.service.plugin_sources import KnownPlugins
from berth.tools.lab.chance import Chance, GoChance, PythonChance
from berth.tools.lab.csv_workload import CsvWorkload
from berth.tools.lab.errors import LabError
from berth.tools.lab.generated_workload import GeneratedWorkload
from berth.tools.lab.manifest_workload import ManifestWorkload
from berth.tools.lab.meters import Meters
from berth.tools.lab.recording_workload import RecordingWorkload
from berth.tools.lab.run import Policy, Terms
from berth.tools.lab.trace import MILLI_PER_GPU, Trace, called
from berth.tools.lab.types import API_VERSION, KIND, Lab, PolicySource
from berth.tools.lab.workload import WHOLE, Arrival, Change, Part, Workload

MEASURED: Final = {"workload", "random", "ties", "waiting_by", "power", "price"}
"""The fields that all results depend on."""


class LabFile:
    """A Lab, and the files beside it."""

    def __init__(self, path: Path, fields: Mapping[str, Any] | None = None) -> None:
        """*path* names it, and what is beside it; *fields* are its content, if they are known."""
        self.path = path
        self.fields = fields = _document(path) if fields is None else fields
        given = fields.get("apiVersion"), fields.get("kind")
        if given != (API_VERSION, KIND):
            shown = f"apiVersion {given[0]!r} and kind {given[1]!r}"
            needed = f"apiVersion {API_VERSION} and kind {KIND} are needed, got {shown}"
            raise ConfigError(str(path), [needed])
        try:
            self.lab = Lab.model_validate_json(json.dumps(fields), by_alias=True, by_name=False)
        except ValidationError as exc:
            raise ConfigError(str(path), model_problems(exc)) from exc
        self._plugins = KnownPlugins.find(
            directories=[path.parent / plugin_dir for plugin_dir in self.lab.plugin_dirs]
        )

    @property
    def name(self) -> str:
        return self.lab.metadata.name or self.path.stem

    def policies(self) -> list[Policy]:
        """Return the policies; all problems of their configurations are errors of this file."""
        return [
            Policy(
                policy.name, self._configuration(policy, f"policies[{i}]"), self._plugins.registry
            )
            for i, policy in enumerate(self.lab.policies)
        ]

    def origins(self) -> dict[str, str]:
        """Return what tells the runs of each policy from those of another file, by its name.

        That is the content of all files that they are made from, and the release of berth.
        """
        lab, beside = self.lab, self.path.parent
        common = blake2b(version().encode(), digest_size=8)
        common.update(lab.model_dump_json(include=MEASURED).encode())
        plugins = (path for name in lab.plugin_dirs for path in (beside / name).rglob("*.py"))
        for path in (*(beside / name for name in lab.workload.files), *sorted(plugins)):
            try:
                common.update(path.read_bytes())
            except OSError as exc:
                raise LabError(f"{path}: {exc.strerror or exc}") from exc
        hashes = {}
        for policy in self.policies():
            own = common.copy()
            own.update(policy.config.model_dump_json().encode())
            hashes[policy.name] = own.hexdigest()
        return hashes

    def workload(self, part: Part = WHOLE) -> Workload:
        """Return the workload, or a part of it; a UserError if it cannot be read."""
        source, beside = self.lab.workload, self.path.parent
        if source.recording is not None:
            return RecordingWorkload(source.recording, beside, part)
        if source.csv is not None:
            return CsvWorkload(source.csv, beside, part)
        if source.trace is not None:
            given = source.trace
            trace = Trace(
                beside / given.nodes,
                beside / given.pods,
                resource=given.resource,
                model_label=given.model_label,
            )
            return TraceWorkload(trace, tune=given.tune, shuffle=given.shuffle, part=part)
        if source.manifests is not None:
            return ManifestWorkload(source.manifests, beside, part)
        assert source.generator is not None, "one of them is given"
        return GeneratedWorkload(source.generator, beside)

    def terms(self) -> Terms:
        lab = self.lab
        return Terms(lab.ties == "nodeOrder", Meters(lab.power, lab.price), lab.waiting_by)

    def chance(self, seed: int) -> Chance:
        return GoChance(seed) if self.lab.random == "go" else PythonChance(seed)

    def _configuration(self, policy: PolicySource, at: str) -> KubeSchedulerConfiguration:
        if policy.preset is not None:
            models = self._plugins.args_models
            return load(preset(policy.preset), source=policy.preset, args_models=models)
        fields, source = policy.config, f"{self.path}: {at}.config"
        if (name := fields.get("file")) is not None:
            path = self.path.parent / str(name)
            fields, source = _document(path), str(path)
        return self.configured(fields, source=source)

    def configured(self, fields: Mapping[str, Any], *, source: str) -> KubeSchedulerConfiguration:
        """Return a configuration of these *fields*, checked with the plugins that there are."""
        config = from_object(
            {"apiVersion": CONFIGURATION_VERSION, "kind": CONFIGURATION_KIND, **fields},
            source=source,
            args_models=self._plugins.args_models,
            known_plugins=self._plugins.registry,
        )
        check_profiles(config, self._plugins.registry, source=source)
        return config


def _document(path: Path) -> dict[str, Any]:
    try:
        document = decode.document(path.read_bytes(), source=str(path))
    except OSError as exc:
        raise ConfigError(str(path), [exc.strerror or str(exc)]) from exc
    if document.duplicates:
        raise ConfigError(str(path), document.duplicates)
    return document.value if isinstance(document.value, dict) else {}


# The pods of a trace in random order, as in published experiments.


class TraceWorkload:
    """All pods of a trace, and then some of them again, up to a share of the capacity."""

    is_timed = False
    interval = 0
    length = 0.0
    changes: Sequence[Change] = ()
    warnings: Sequence[str] = ()
    objects: Sequence[Any] = ()

    def __init__(
        self, trace: Trace, *, tune: float | None, shuffle: bool, part: Part = WHOLE
    ) -> None:
        """With *tune*, pods are added, or left out, until they request so much of all GPUs."""
        self.nodes, self.resource = trace.nodes, trace.resource
        self.pods: Sequence[Pod] = trace.pods[part.number :: part.of]
        self._tune, self._shuffle = tune, shuffle
        self._demand = {pod.metadata.name: self._gpus_of(pod) for pod in self.pods}
        self._capacity = sum(
            int(node.status.allocatable.get(self.resource, "0")) for node in self.nodes
        )

    def arrivals(self, chance: Chance) -> Sequence[Arrival]:
        pods = list(self.pods)
        if self._shuffle:
            chance.shuffle(pods)
        if self._tune is not None:
            wanted = self._tune * self._capacity
            demand = sum(self._demand.values())
            if demand < wanted:
                pods += self._added(demand, wanted, chance)
            while demand > wanted:
                demand -= self._demand[pods.pop(chance.below(len(pods))).metadata.name]
        return [Arrival(pod) for pod in pods]

    def _added(self, demand: int, wanted: float, chance: Chance) -> Iterator[Pod]:
        """Yield pods drawn with replacement; one that would ask for too much is the end.

        As in the published simulator, what is too much goes by the request for each GPU.
        """
        number = 0
        while True:
            pod = self.pods[chance.below(len(self.pods))]
            total = self._demand[pod.metadata.name]
            if demand + min(total, MILLI_PER_GPU) > wanted:
                return
            demand += total
            number += 1
            yield called(pod, f"{pod.metadata.name}-again-{number}")

    def _gpus_of(self, pod: Pod) -> int:
        return requested(pod).scalars.get(self.resource, 0)
