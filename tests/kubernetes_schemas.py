"""Objects held against the schemas that Kubernetes publishes, each of which is read once."""

from functools import cache
from typing import Any

import kubernetes_validate
from kubernetes_validate import utils

utils.schema_contents = cache(utils.schema_contents)  # megabytes of JSON for each object otherwise


def validate(obj: dict[str, Any], release: str) -> None:
    """Raise kubernetes_validate.ValidationError if *release* (as "1.36") would not know *obj*."""
    kubernetes_validate.validate(obj, release, strict=True)
