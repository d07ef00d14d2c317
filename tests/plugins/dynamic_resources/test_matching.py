"""Whether there are devices enough: against trying every combination."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.devices import DeviceId
from berth_plugins.dynamic_resources.matching import Demand, are_enough

DEVICES = [DeviceId("driver", "pool", name) for name in "abcde"]


def all_combinations(demands: list[Demand]) -> bool:
    wants = [demand.devices for demand in demands for _ in range(demand.needed)]
    return any(
        all(device in devices for device, devices in zip(chosen, wants, strict=True))
        for chosen in permutations(DEVICES, len(wants))
    )


@given(
    st.lists(
        st.builds(Demand, st.integers(0, 3), st.frozensets(st.sampled_from(DEVICES))), max_size=4
    )
)
def test_it_is_what_all_combinations_say(demands: list[Demand]) -> None:
    assert are_enough(demands, on_step=lambda: None) is all_combinations(demands)
