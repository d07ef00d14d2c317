"""``docs/reference/embedded-api.md``: the kinds that the embedded API server serves."""

from berth.cluster.kinds.builtin import RESOURCES, resources
from berth.cluster.resources import VERBS, ResourceType
from berth.runtime.release import RELEASES
from docs.generate import markdown

INTRODUCTION = """\
The API server of `berth up` and `berth cluster` serves these kinds, with the verbs of the
Kubernetes API. [Embedded cluster](../embedded.md) says what acts on them and what does not."""


def page() -> str:
    return markdown.page(
        "Embedded API",
        INTRODUCTION,
        markdown.table(
            ("Kind", "API version", "Namespaced", "Verbs", "Subresources", "Not in"),
            [
                (
                    markdown.code(each.kind),
                    markdown.code(f"{each.group}/{each.version}".lstrip("/")),
                    "yes" if each.namespaced else "no",
                    "all" if set(each.verbs) == set(VERBS) else ", ".join(each.verbs),
                    ", ".join(map(markdown.code, each.subresources)),
                    ", ".join(_without(each)),
                )
                for each in sorted(RESOURCES, key=lambda each: (each.group, each.kind))
            ],
        ),
        f"*All* verbs are {', '.join(VERBS[:-1])} and {VERBS[-1]}.",
        source="berth.cluster.kinds",
    )


def _without(resource: ResourceType) -> list[str]:
    """Return the releases that do not serve a kind by default."""
    url = resource.collection_path()
    return [
        release
        for release in RELEASES
        if all(each.collection_path() != url for each in resources(release))
    ]
