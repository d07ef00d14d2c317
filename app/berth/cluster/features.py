"""The feature gates that the embedded cluster acts on and that are on by default in 1.36.

Each part is told which gates are on. Those of kinds and fields that are off by default are named
where they are acted on.
"""

from typing import Final

CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING: Final = "ClearingNominatedNodeNameAfterBinding"
MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD: Final = "MatchLabelKeysInPodTopologySpread"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
POD_LEVEL_RESOURCES: Final = "PodLevelResources"

DEFAULT_FEATURES: Final = frozenset(
    {
        CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING,
        MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD,
        NODE_DECLARED_FEATURES,
        POD_LEVEL_RESOURCES,
    }
)
