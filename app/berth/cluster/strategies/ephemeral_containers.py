"""Ephemeral containers: added to a pod that runs, to look at it, and never changed again."""

from collections.abc import Sequence
from typing import Final

from berth.cluster.resources import Object
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

PATH: Final = "spec.ephemeralContainers"

ALLOWED: Final = frozenset(
    {
        "name", "image", "command", "args", "workingDir", "env", "envFrom", "volumeMounts",
        "volumeDevices", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy",
        "securityContext", "stdin", "stdinOnce", "tty", "targetContainerName", "resources",
        "resizePolicy",
    }
)  # fmt: skip
EMPTY_ONLY: Final = ("resources", "resizePolicy")
"""Fields that may be there, but say nothing."""


def validate(new: Object, old: Object) -> list[FieldError]:
    """Evaluate the ephemeral containers of the pod *new*, which was *old*."""
    spec = new["spec"]
    containers: Sequence[Object] = spec.get("ephemeralContainers") or []
    others = {
        each["name"] for field in ("containers", "initContainers") for each in spec.get(field) or []
    }
    found: list[FieldError] = []
    for index, container in enumerate(containers):
        found += _validate_one(container, f"{PATH}[{index}]", others)
    now = {each.get("name"): each for each in containers}
    for ephemeral_container in old["spec"].get("ephemeralContainers") or []:
        name = ephemeral_container["name"]
        if name not in now:
            why = f'existing ephemeral containers "{name}" may not be removed\n'
            found.append(field_errors.forbidden(PATH, why))
        elif now[name] != ephemeral_container:
            why = f'existing ephemeral containers "{name}" may not be changed\n'
            found.append(field_errors.forbidden(PATH, why))
    return found


def _validate_one(container: Object, path: str, targets: set[str]) -> list[FieldError]:
    """Evaluate what is particular to an ephemeral container."""
    found: list[FieldError] = []
    target = container.get("targetContainerName")
    if target and target not in targets:
        found.append(field_errors.not_found(f"{path}.targetContainerName", target))
    found += [
        field_errors.forbidden(f"{path}.{field}", "cannot be set for an Ephemeral Container")
        for field, value in container.items()
        if field not in ALLOWED or (field in EMPTY_ONLY and value)
    ]
    return found
