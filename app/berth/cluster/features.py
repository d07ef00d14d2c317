"""The feature gates that the embedded cluster acts on and that are on by default.

Each part is told which gates are on. Those of kinds and fields that are off by default are named
where they are acted on.
"""

from collections.abc import Mapping
from typing import Final

from berth.runtime.release import RELEASE

CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING: Final = "ClearingNominatedNodeNameAfterBinding"
DEVICE_TAINT_RULES: Final = "DRADeviceTaintRules"
MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD: Final = "MatchLabelKeysInPodTopologySpread"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
POD_LEVEL_RESOURCES: Final = "PodLevelResources"
VOLUME_LIMIT_SCALING: Final = "VolumeLimitScaling"

_IN_1_36: Final = frozenset(
    {
        CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING,
        MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD,
        NODE_DECLARED_FEATURES,
        POD_LEVEL_RESOURCES,
    }
)
_BY_DEFAULT: Final[Mapping[str, frozenset[str]]] = {
    "1.36": _IN_1_36,
    "1.37": _IN_1_36 | {DEVICE_TAINT_RULES, VOLUME_LIMIT_SCALING},
}


def default_features(release: str) -> frozenset[str]:
    """Return the gates that are on by default in *release*."""
    return _BY_DEFAULT[release]


DEFAULT_FEATURES: Final = default_features(RELEASE)
