"""docker-compose.yml: valid, hardened, and every command one that berth understands."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

from berth import cli

REPOSITORY = Path(__file__).parents[2]
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
TEXT = (REPOSITORY / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
BY_DEFAULT = {name for name, service in SERVICES.items() if "profiles" not in service}

every_service = pytest.mark.parametrize("name", sorted(SERVICES))


@pytest.mark.parametrize("digest", ["", f"@sha256:{'0' * 64}"], ids=["version", "digest"])
def test_it_follows_the_compose_specification(digest: str) -> None:
    # Merged first: the reader takes merge keys for fields. Variables are for compose itself.
    given = rf"\1{digest}" if digest else r"\1:\2"
    text = re.sub(r"\$\{[A-Z]+_IMAGE:-(.*?):(.*?)\}", given, yaml.safe_dump(COMPOSE))
    read = PyCompose.from_yaml(text)
    assert set(read.service_names()) == set(SERVICES)


def test_the_default_needs_no_other_image() -> None:
    assert {"cluster", "kubelets", "scheduler-a", "scheduler-b"} == BY_DEFAULT
    assert {SERVICES[name]["image"] for name in BY_DEFAULT} == {OURS["cluster"]["image"]}
    assert set(OURS) >= BY_DEFAULT


def test_profiles() -> None:
    profiles: dict[str, set[str]] = {}
    for name, service in SERVICES.items():
        for profile in service.get("profiles", ()):
            profiles.setdefault(profile, set()).add(name)
    assert profiles == {
        "observability": {"prometheus", "grafana"},
        "real": {
            "real-credentials", "real-etcd", "real-apiserver", "real-kubelets", "real-scheduler",
        },
    }  # fmt: skip


@every_service
def test_hardening(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "devices", "pid", "network_mode"} & set(service)
    assert "docker.sock" not in str(service)
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:"), port


@every_service
def test_files_of_ours_are_there_and_cannot_be_written(name: str) -> None:
    for volume in SERVICES[name].get("volumes", ()):
        source, _, rest = volume.partition(":")
        if source.startswith("."):
            assert (REPOSITORY / source).exists(), source
            assert rest.endswith(":ro"), volume
        else:
            assert source in COMPOSE["volumes"], source


@every_service
def test_images_are_pinned(name: str) -> None:
    """By a version; those of others by a digest, too, if it is given."""
    by_version = r"[\w./-]+:v?\d+\.\d+\.\d+(-\d+)?"
    pattern = by_version if name in OURS else rf"\$\{{[A-Z]+_IMAGE:-{by_version}\}}"
    assert re.fullmatch(pattern, SERVICES[name]["image"])


def test_the_base_image_can_be_pinned_by_its_digest() -> None:
    (default,) = re.findall(r"^ARG PYTHON=(.*)$", DOCKERFILE, re.MULTILINE)
    for service in OURS.values():
        assert service["build"]["args"] == {"PYTHON": f"${{PYTHON_IMAGE:-{default}}}"}


@pytest.mark.parametrize("fails", [False, True])
def test_make_pin_writes_the_digest_of_every_image(tmp_path: Path, *, fails: bool) -> None:
    for name in ("Makefile", "docker-compose.yml"):
        (tmp_path / name).write_bytes((REPOSITORY / name).read_bytes())
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(f"#!/bin/sh\n{'exit 1' if fails else 'echo sha256:of-$6'}\n")
    docker.chmod(0o755)
    path = f"{docker.parent}:{os.environ['PATH']}"
    made = subprocess.run(
        ["make", "pin"], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True
    )
    env = tmp_path / ".env"
    if fails:
        assert (made.returncode != 0, env.exists()) == (True, False)
        return
    assert made.returncode == 0, made.stderr
    found = dict(line.split("=", 1) for line in env.read_text().splitlines())
    images = dict(re.findall(r"\$\{([A-Z]+_IMAGE):-([^}]+)\}", TEXT))
    assert found == {name: f"{image}@sha256:of-{image}" for name, image in images.items()}


WRITERS = {"": "cluster", "real-": "real-credentials"}
"""Who makes the credentials of a profile, by how the names of its volumes begin."""


def test_each_credential_has_one_reader() -> None:
    readers: dict[str, set[str]] = {volume: set() for volume in COMPOSE["volumes"]}
    for name, service in SERVICES.items():
        for volume in service.get("volumes", ()):
            source, target, *options = volume.split(":")
            if source.startswith("."):
                continue
            assert target.endswith(source.removeprefix("real-")), volume  # and nothing beside it
            prefix = "real-" if source.startswith("real-") else ""
            if name != WRITERS[prefix]:
                assert options == ["ro"], volume
                readers[source].add(name)
    assert readers == {
        "admin": set(),
        "scheduler": {"scheduler-a", "scheduler-b"},
        "kubelets": {"kubelets"},
        "monitoring": {"prometheus"},
        "real-admin": {"real-apiserver"},
        "real-apiserver": {"real-apiserver"},
        "real-scheduler": {"real-scheduler"},
        "real-kubelets": {"real-kubelets"},
        "real-monitoring": set(),
    }


def test_volumes_belong_to_berth_from_the_start() -> None:
    """The image has their folders: else they are root's, and nobody can write there."""
    for name in WRITERS.values():
        for volume in SERVICES[name]["volumes"]:
            source, target, *_ = volume.split(":")
            assert source.startswith(".") or target in DOCKERFILE.split(), target


@every_service
def test_it_is_known_whether_they_are_well(name: str) -> None:
    """Or it is written down why that cannot be: who waits for health needs a check."""
    check = SERVICES[name]["healthcheck"]
    assert check == {"disable": True} or check["test"][0] == "CMD"
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        if how["condition"] == "service_healthy":
            assert "test" in SERVICES[needed]["healthcheck"], needed


@pytest.mark.parametrize("name", sorted(OURS))
def test_health_checks_and_commands_are_berth_s(name: str) -> None:
    service = OURS[name]
    if "entrypoint" not in service:
        assert service["command"][0] in cli.COMMANDS
    test = service["healthcheck"].get("test", ["CMD", "berth", "health"])
    assert test[1:3] == ["berth", "health"]


def test_prometheus_scrapes_both_replicas_with_the_alerts() -> None:
    config = yaml.safe_load((REPOSITORY / "compose/prometheus/prometheus.yml").read_bytes())
    (job,) = config["scrape_configs"]
    (targets,) = job["static_configs"]
    assert {target.partition(":")[0] for target in targets["targets"]} == {
        "scheduler-a",
        "scheduler-b",
    }
    mounted = dict(v.split(":")[1::-1] for v in SERVICES["prometheus"]["volumes"])
    (rules,) = config["rule_files"]
    assert (REPOSITORY / mounted[str(Path(rules).parent)] / "alerts.yaml").exists()


def test_grafana_finds_the_dashboard_and_its_data() -> None:
    mounted = dict(v.split(":")[1::-1] for v in SERVICES["grafana"]["volumes"])
    provisioning = REPOSITORY / mounted["/etc/grafana/provisioning"]
    (provider,) = yaml.safe_load((provisioning / "dashboards/berth.yaml").read_bytes())["providers"]
    folder = REPOSITORY / mounted[provider["options"]["path"]]
    assert (folder / "berth.json").exists()
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yaml").read_bytes())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
