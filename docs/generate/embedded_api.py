"""``docs/reference/embedded-api.md``: the kinds that the embedded API server serves."""

from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.resources import VERBS
from docs.generate import markdown

INTRODUCTION = """\
The API server of `berth up` and `berth cluster` serves these kinds, with the verbs of the
Kubernetes API. [Embedded cluster](../embedded.md) says what acts on them and what does not."""


def page() -> str:
    return markdown.page(
        "Embedded API",
        INTRODUCTION,
        markdown.table(
            ("Kind", "API version", "Namespaced", "Verbs", "Subresources"),
            [
                (
                    markdown.code(each.kind),
                    markdown.code(f"{each.group}/{each.version}".lstrip("/")),
                    "yes" if each.namespaced else "no",
                    "all" if set(each.verbs) == set(VERBS) else ", ".join(each.verbs),
                    ", ".join(map(markdown.code, each.subresources)),
                )
                for each in sorted(RESOURCES, key=lambda each: (each.group, each.kind))
            ],
        ),
        f"*All* verbs are {', '.join(VERBS[:-1])} and {VERBS[-1]}.",
        source="berth.cluster.kinds",
    )
