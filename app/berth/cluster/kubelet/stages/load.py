"""Reading stages: a profile by name, or a file."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import ValidationError

from berth.cluster.kubelet.stages.types import API_VERSION, KIND, Profile, Rule, Stages
from berth.cluster.kubelet.usage import RESOURCES
from berth.kube import manifests
from berth.runtime.errors import UserError

PROFILES: Final[Sequence[str]] = get_args(Profile)


class StagesError(UserError):
    """Stages that cannot be used; names the file, and each field with its value."""


def load(told: str) -> Stages:
    """Return the stages of a profile, or of the file *told*. Raises StagesError."""
    if told in PROFILES:
        return Stages.model_validate({"profile": told})
    return read(Path(told))


def read(path: Path) -> Stages:
    """Return what a file says, in YAML or JSON. Raises StagesError."""
    try:
        documents = list(manifests.read(path))
    except manifests.ManifestError as exc:
        hint = "" if path.exists() else f"; profiles are {', '.join(PROFILES)}"
        raise StagesError(f"{exc}{hint}") from exc
    found = [f"{document.get('apiVersion')} {document.get('kind')}" for document in documents]
    if found != [f"{API_VERSION} {KIND}"]:
        raise StagesError(
            f"{path}: exactly one {API_VERSION} {KIND} is needed, "
            f"got {', '.join(found) or 'nothing'}"
        )
    return from_object(documents[0], source=str(path))


def from_object(obj: Mapping[str, Any], *, source: str) -> Stages:
    """Return what an object says; *source* names it in errors. Raises StagesError."""
    try:
        stages = Stages.model_validate(obj)
    except ValidationError as exc:
        problems = [_problem(error) for error in exc.errors()]
        raise StagesError("\n".join(f"{source}: {problem}" for problem in problems)) from exc
    problems = list(_unknown_usages(stages))
    if problems:
        raise StagesError("\n".join(f"{source}: {problem}" for problem in problems))
    return stages


def rules_of(stages: Stages) -> tuple[Rule, ...]:
    """Return all rules of *stages*, those of its profile first."""
    return (*_profile(stages.profile), *stages.rules)


def _profile(name: str) -> tuple[Rule, ...]:
    if name == "fast":
        return ()
    source = f"{name}.yaml"
    text = (resources.files(__package__) / "profiles" / source).read_text(encoding="utf-8")
    (document,) = manifests.parse(text, source=source)
    return rules_of(from_object(document, source=source))


def _problem(error: Any) -> str:
    """Return the line for an error of pydantic: the field, its value, and what is wrong."""
    path = ""
    for part in error["loc"]:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else str(part)
    match error["type"]:
        case "extra_forbidden":
            return f"{path}: unknown field"
        case "missing":
            return f"{path}: Required value"
    message = error["msg"].removeprefix("Value error, ")
    if "Invalid value" not in message:
        message = f"Invalid value: {_shown(error['input'])}: {message[0].lower()}{message[1:]}"
    return f"{path}: {message}" if path else message


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _unknown_usages(stages: Stages) -> Iterator[str]:
    for index, rule in enumerate(stages.rules):
        for number, outcome in enumerate(rule.outcomes):
            for name in outcome.usage:
                if name not in RESOURCES:
                    yield (
                        f"rules[{index}].outcomes[{number}].usage: Unsupported value: {name!r}: "
                        f"supported values: {', '.join(RESOURCES)}"
                    )
