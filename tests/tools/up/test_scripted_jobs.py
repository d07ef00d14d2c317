"""Containers that do something, in Jobs and StatefulSets, on a clock that does not wait."""

from typing import Any, Final

import pytest

from tests.tools.up.test_gang_jobs import JOBS, PODS, Object, World, on_a_virtual_clock

CRON_JOBS: Final = "/apis/batch/v1/namespaces/default/cronjobs"
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
INDEX: Final = "batch.kubernetes.io/job-completion-index"


def template(*command: str, policy: str = "Never", **container: Any) -> Object:
    main = {"name": "c", "image": "busybox", "command": list(command), **container}
    return {"spec": {"restartPolicy": policy, "containers": [main]}}


def job(name: str, *command: str, policy: str = "Never", **spec: Any) -> Object:
    spec.setdefault("template", template(*command, policy=policy))
    return {"metadata": {"name": name}, "spec": spec}


def condition_of(job: Object) -> str:
    """Return the type and the reason of the condition that says how a Job ended."""
    for condition in (job.get("status") or {}).get("conditions") or []:
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return f"{condition['type']} {condition['reason']}"
    return ""


async def ended(world: World) -> Object:
    [job] = await world.until(JOBS, lambda jobs: bool(condition_of(jobs[0])))
    return job


async def pods_are_active_until_they_finish(world: World) -> None:
    before = world.clock.monotonic()
    await world.ask("POST", JOBS, job("j", "sleep", "90", completions=2, parallelism=2))
    await world.until(PODS, lambda pods: [p["status"]["phase"] for p in pods] == ["Running"] * 2)
    await world.clock.sleep(80)
    [job_] = await world.items(JOBS)
    assert (job_["status"]["active"], job_["status"]["ready"]) == (2, 2)
    assert condition_of(await ended(world)) == "Complete CompletionsReached"
    assert 90 <= world.clock.monotonic() - before < 100


async def an_index_that_fails_is_tried_again(world: World) -> None:
    script = "if [ $(expr ${JOB_COMPLETION_INDEX} % 2) -ne 0 ]; then exit 1; else exit 0; fi"
    body = job(
        "j",
        *("sh", "-c", script),
        completions=4,
        parallelism=2,
        completionMode="Indexed",
        backoffLimitPerIndex=1,
    )
    await world.ask("POST", JOBS, body)
    found = await ended(world)
    assert condition_of(found) == "Failed FailedIndexes"
    assert (found["status"]["completedIndexes"], found["status"]["failedIndexes"]) == ("0,2", "1,3")
    assert found["status"]["failed"] == 4


async def a_job_that_fails_reaches_its_limit(world: World) -> None:
    await world.ask("POST", JOBS, job("j", "sh", "-c", "echo no >&2; exit 3", backoffLimit=1))
    assert condition_of(await ended(world)) == "Failed BackoffLimitExceeded"
    pods = await world.items(PODS)
    ends = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in pods]
    assert [end["exitCode"] for end in ends] == [3, 3]


async def a_container_that_is_restarted_finds_its_volume(world: World) -> None:
    script = "if [[ -r /data/foo ]]\nthen exit 0\nelse touch /data/foo; exit 1; fi"
    spec = template("/bin/sh", "-c", policy="OnFailure", args=[script])
    spec["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    spec["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    await world.ask("POST", JOBS, job("j", template=spec))
    assert condition_of(await ended(world)) == "Complete CompletionsReached"
    [pod] = await world.items(PODS)
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1


async def pods_on_a_node_share_a_folder_of_it(world: World) -> None:
    script = "[ -e /data/done ] || { touch /data/done; exit 1; }"
    spec = template("sh", "-c", script)
    spec["spec"]["volumes"] = [{"name": "data", "hostPath": {"path": "/tmp/e2e"}}]
    spec["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    await world.ask("POST", JOBS, job("j", template=spec))
    found = await ended(world)
    assert (found["status"]["succeeded"], found["status"]["failed"]) == (1, 1)


async def what_a_pod_names_is_read(world: World) -> None:
    await world.ask("POST", CONFIG_MAPS, {"metadata": {"name": "m"}, "data": {"code": "4"}})
    spec = template(
        "sh", "-c", 'echo -n "$WHO $(cat /etc/m/code)" > /dev/termination-log; exit $CODE'
    )
    ref = {"configMapKeyRef": {"name": "m", "key": "code"}}
    spec["spec"]["containers"][0] |= {
        "env": [
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "WHO", "value": "in $(NAME)"},
            {"name": "CODE", "valueFrom": ref},
        ],
        "volumeMounts": [{"name": "m", "mountPath": "/etc/m"}],
    }
    spec["spec"]["volumes"] = [{"name": "m", "configMap": {"name": "m"}}]
    await world.ask("POST", JOBS, job("j", template=spec, backoffLimit=0))
    await ended(world)
    [pod] = await world.items(PODS)
    end = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (end["exitCode"], end["message"]) == (4, "in default 4")


async def a_cron_job_whose_jobs_take_longer_than_its_period(world: World) -> None:
    body = {
        "metadata": {"name": "c"},
        "spec": {
            "schedule": "* * * * *",
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": {"template": template("sleep", "100")}},
        },
    }
    await world.ask("POST", CRON_JOBS, body)
    [first] = await world.until(JOBS, lambda jobs: len(jobs) == 1)
    await world.clock.sleep(70)
    assert [job["metadata"]["name"] for job in await world.items(JOBS)] == [
        first["metadata"]["name"]
    ]
    jobs = await world.until(JOBS, lambda jobs: len(jobs) == 2)
    assert condition_of(jobs[0]) == "Complete CompletionsReached"


async def an_annotation_brings_a_script(world: World) -> None:
    before = world.clock.monotonic()
    spec = template(image="registry.example.com/train:1")
    spec["metadata"] = {"annotations": {"berth.dev/script": "echo step 1; sleep 30; exit 2"}}
    await world.ask("POST", JOBS, job("j", template=spec, backoffLimit=0))
    assert condition_of(await ended(world)) == "Failed BackoffLimitExceeded"
    assert 30 <= world.clock.monotonic() - before < 40


async def a_container_that_says_goodbye(world: World) -> None:
    script = "trap 'sleep 5; exit 0' TERM; while true; do sleep 1; done"
    spec = template("sh", "-c", script)["spec"]
    await world.ask("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    await world.until(PODS, lambda pods: pods[0]["status"]["phase"] == "Running")
    before = world.clock.monotonic()
    await world.ask("DELETE", f"{PODS}/p")
    await world.until(PODS, lambda pods: not pods)
    assert 5 <= world.clock.monotonic() - before < 7


async def probes_read_files(world: World) -> None:
    before = world.clock.monotonic()
    script = "cd /tmp; touch live; sleep 5; touch ok; sleep 5; rm ok; sleep 5; rm live; sleep 99"
    readiness, liveness = (
        {"exec": {"command": ["cat", f"/tmp/{name}"]}, "periodSeconds": 1}
        for name in ("ok", "live")
    )
    spec = template("sh", "-c", script, readinessProbe=readiness, livenessProbe=liveness)["spec"]
    await world.ask(
        "POST", PODS, {"metadata": {"name": "p"}, "spec": {**spec, "restartPolicy": "Always"}}
    )

    def ready(pods: list[Object]) -> bool:
        return bool(pods[0]["status"].get("containerStatuses", [{}])[0].get("ready"))

    await world.until(PODS, ready)
    assert 5 <= world.clock.monotonic() - before < 7
    await world.until(PODS, lambda pods: not ready(pods))
    [pod] = await world.until(
        PODS, lambda pods: pods[0]["status"]["containerStatuses"][0]["restartCount"] == 1
    )
    last = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert last["exitCode"] == 137


@pytest.mark.parametrize(
    "story",
    [
        pods_are_active_until_they_finish,
        an_index_that_fails_is_tried_again,
        a_job_that_fails_reaches_its_limit,
        a_container_that_is_restarted_finds_its_volume,
        pods_on_a_node_share_a_folder_of_it,
        what_a_pod_names_is_read,
        a_cron_job_whose_jobs_take_longer_than_its_period,
        an_annotation_brings_a_script,
        a_container_that_says_goodbye,
        probes_read_files,
    ],
    ids=lambda story: story.__name__,
)
def test_on_a_virtual_clock(story: Any) -> None:
    on_a_virtual_clock(story)
