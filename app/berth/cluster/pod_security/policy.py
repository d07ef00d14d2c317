"""The Pod Security levels that the labels of a namespace ask for."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from berth.cluster.pod_security import baseline, restricted
from berth.cluster.pod_security.violations import Check
from berth.cluster.resources import Object
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

PREFIX: Final = "pod-security.kubernetes.io/"
MODES: Final = ("enforce", "audit", "warn")
LABELS: Final = frozenset(
    f"{PREFIX}{mode}{suffix}" for mode in MODES for suffix in ("", "-version")
)

LEVELS: Final[Mapping[str, tuple[Check, ...]]] = {
    "privileged": (),
    "baseline": baseline.CHECKS,
    "restricted": restricted.CHECKS,
}
"""From all is allowed to little is. The version does not matter: all are evaluated as the latest.
"""

VERSION: Final = re.compile(r"latest|v1\.(?:0|[1-9][0-9]{0,8})")


class Standard(NamedTuple):
    """A level in a version."""

    level: str = "privileged"
    version: str = "latest"

    @property
    def strictness(self) -> int:
        return list(LEVELS).index(self.level)

    def violations(self, metadata: Object, spec: Object) -> str:
        """Return how a pod violates it; empty when it does not."""
        found = (check(metadata, spec) for check in LEVELS[self.level])
        return ", ".join(str(each) for each in found if each is not None)

    def reasons(self, metadata: Object, spec: Object) -> str:
        """Return the same without its details."""
        found = (check(metadata, spec) for check in LEVELS[self.level])
        return ", ".join(each.reason for each in found if each is not None)

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"


class Policy(NamedTuple):
    """What is refused, and what is warned of. Audit logs are not kept."""

    enforce: Standard = Standard()
    warn: Standard = Standard()


NOTHING: Final = Policy()


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[FieldError]]:
    """Return the policy and what is wrong with the labels.

    Where the enforced level cannot be read it is the strictest; nothing is warned of then.
    Without a level to warn of, that is what is enforced.
    """
    if LABELS.isdisjoint(labels):
        return NOTHING, []
    errors: list[FieldError] = []
    found: dict[str, Standard] = {}
    for mode in MODES:
        label = PREFIX + mode
        level, version = labels.get(label), labels.get(f"{label}-version")
        fallback = "restricted" if mode == "enforce" else "privileged"
        if level is not None and level not in LEVELS:
            why = f"must be one of {', '.join(LEVELS)}"
            errors.append(field_errors.invalid(f"metadata.labels[{label}]", level, why))
            level = fallback
        elif level is None and mode == "warn" and not errors:
            level = found["enforce"].level
            version = version or found["enforce"].version
        if version is not None and not VERSION.fullmatch(version):
            path = f"metadata.labels[{label}-version]"
            errors.append(field_errors.invalid(path, version, 'must be "latest" or "v1.x"'))
            version = None
        found[mode] = Standard(level or "privileged", version or "latest")
    return Policy(found["enforce"], found["warn"]), errors
