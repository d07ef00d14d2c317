"""What is kept for a template, and how long."""

from itertools import count

import pytest

from berth.scheduler.framework.pod_info import PodInfo, PodTemplate
from berth.scheduler.framework.template_cache import TemplateCache
from tests.builders import pod

A, B, C = (PodInfo(pod(cpu=cpu)).template for cpu in (1, 2, 3))


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        pytest.param([(A, 1), (B, 1), (A, 1)], [0, 1, 0], id="as long as nothing changes"),
        pytest.param([(A, 1), (A, 2), (A, 2)], [0, 1, 1], id="not if what it depends on changes"),
        pytest.param([(A, 1), (A, 2), (A, 1)], [0, 1, 2], id="nor if that changes back"),
        pytest.param(
            [(A, 1), (B, 1), (A, 1), (C, 1), (A, 1), (B, 1)],
            [0, 1, 0, 2, 0, 3],
            id="the one that was asked about least recently makes room",
        ),
    ],
)
def test_an_entry_is_kept(asked: list[tuple[PodTemplate, int]], want: list[int]) -> None:
    cache: TemplateCache[int] = TemplateCache(2)
    numbers = count()
    found = [
        cache.get(template, depends_on=value, build=lambda: next(numbers))
        for template, value in asked
    ]
    assert found == want
