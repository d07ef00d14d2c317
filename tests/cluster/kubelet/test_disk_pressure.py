"""What hollow nodes do when their disks fill."""

from tests.cluster.kubelet.pressed_machine import (
    Machine,
    configured,
    pod,
)


def test_finished_pods_and_unused_images_go_before_pods_do() -> None:
    machine = Machine()
    gib = 2**30
    done = pod("done", ephemeral_storage="40Gi")
    done["spec"]["restartPolicy"] = "Never"
    done["metadata"]["annotations"]["berth.dev/run-seconds"] = "1"
    machine.bind(
        done,
        pod("works", ephemeral_storage="30Gi"),
    )
    machine.node.pulled("old", 20 * gib)
    machine.node.pulled("image-of-works", 5 * gib)
    machine.run(30)

    assert machine.phases()["works"] == "Running"
    assert machine.node.images == {"image-of-works": 5 * gib}
    assert ("n", "EvictionThresholdMet", "Attempting to reclaim ephemeral-storage") in (
        machine.events("EvictionThresholdMet")
    )
    assert machine.node.pressure == ("DiskPressure",)


def test_a_pod_that_stores_more_than_its_volume_may_hold_is_evicted() -> None:
    machine = Machine()
    volume = {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}
    machine.bind(pod("p", volume_data="1025Mi", volumes=[volume]))
    machine.run(20)

    assert machine.events("Evicted") == [
        ("p", "Evicted", 'Usage of EmptyDir volume "data" exceeds the limit "1Gi". ')
    ]
    assert machine.phases() == {"p": "Evicted"}
    assert machine.node.pressure == ()


def test_limits_of_local_storage_can_be_switched_off() -> None:
    machine = Machine(configured(localStorageCapacityIsolation=False))
    volume = {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}
    machine.bind(pod("p", volume_data="1025Mi", volumes=[volume]))
    machine.run(20)
    assert machine.phases() == {"p": "Running"}


def test_images_are_collected_when_the_disk_is_rather_full() -> None:
    machine = Machine(configured(evictionHard={"memory.available": "100Mi"}))
    gib = 2**30
    for name in ("a", "b", "image-of-p"):
        machine.node.pulled(name, 10 * gib)
    machine.bind(pod("p", ephemeral_storage="55Gi"))
    machine.run(290)
    before = dict(machine.node.images)
    machine.run(20)
    after = dict(machine.node.images)
    machine.annotate(usage_ephemeral_storage="40Gi")
    machine.run(300)

    assert list(before) == ["a", "b", "image-of-p"]
    assert list(after) == ["b", "image-of-p"]
    [(_, _, message)] = machine.events("FreeDiskSpaceFailed")
    assert message.startswith("Failed to garbage collect required amount of images. Attempted to")
    assert list(machine.node.images) == ["image-of-p"]


def test_a_file_system_for_images_is_watched_by_itself() -> None:
    machine = Machine()
    machine.annotate(imagefs_capacity="20Gi")
    volume = {"name": "data", "emptyDir": {}}
    machine.bind(
        pod("writes", ephemeral_storage="18Gi"),
        pod("stores", volume_data="80Gi", volumes=[volume]),
    )
    machine.run(20)
    assert machine.phases() == {"writes": "Evicted", "stores": "Running"}


def test_a_file_system_that_is_told_later_counts_too() -> None:
    machine = Machine()
    machine.bind(pod("p", ephemeral_storage="18Gi"))
    machine.run(20)
    before = machine.phases()
    machine.annotate(imagefs_capacity="20Gi")
    machine.run(20)
    assert (before, machine.phases()) == ({"p": "Running"}, {"p": "Evicted"})
