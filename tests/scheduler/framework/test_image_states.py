"""Which rows have an image: what is kept as nodes change is what a look at all of them gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.node import ContainerImage
from berth.scheduler.framework.image_states import ImageStates

ROWS = 4
NAMES = "abc"
images = st.lists(
    st.builds(
        ContainerImage, st.lists(st.sampled_from(NAMES), max_size=2).map(tuple), st.just(1_000)
    ),
    max_size=3,
).map(tuple)


@given(st.lists(st.tuples(st.integers(0, ROWS - 1), images), max_size=20))
def test_rows_are_those_of_the_nodes_that_have_the_image(
    history: list[tuple[int, tuple[ContainerImage, ...]]],
) -> None:
    states = ImageStates()
    on: list[tuple[ContainerImage, ...]] = [()] * ROWS
    for row, new in history:
        states.set_row(row, on[row], new)
        on[row] = new
    for name in NAMES:
        sizes = np.zeros(ROWS, np.int64)
        states.add_scaled_sizes(name, ROWS, sizes)
        having = [any(name in image.names for image in found) for found in on]
        assert sizes.tolist() == [1_000 * sum(having) // ROWS if has else 0 for has in having]
