"""Debian's Prometheus on this machine, in place of the image that the compose file names."""

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.packaging.test_compose_runs import free_port

START_SECONDS = 60
SCRAPE_INTERVAL = "1s"
"""Instead of ten: what a rate is made of is there sooner."""


class Prometheus:
    """Answers queries. Made by :func:`prometheus`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, **parameters: str) -> Any:
        """Return the ``data`` of an answer of its API."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self._url}/api/v1/{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def series(self, expression: str) -> list[dict[str, Any]]:
        """Return what *expression* has now."""
        found: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return found


def moved(
    config: Mapping[str, Any], *, rules: Path, token: Path, targets: Mapping[str, str]
) -> dict[str, Any]:
    """Return the configuration of the compose file with the files and the ports of this machine."""
    made: dict[str, Any] = yaml.safe_load(yaml.safe_dump(dict(config)))
    made["global"] = {"scrape_interval": SCRAPE_INTERVAL, "evaluation_interval": SCRAPE_INTERVAL}
    made["rule_files"] = [str(rules / Path(name).name) for name in made["rule_files"]]
    for job in made["scrape_configs"]:
        job["authorization"]["credentials_file"] = str(token)
        for group in job["static_configs"]:
            group["targets"] = [targets[target] for target in group["targets"]]
    return made


@contextmanager
def prometheus(config: Path, folder: Path) -> Iterator[Prometheus]:
    """Run Prometheus with *config* on a free port, its data in *folder*."""
    address = f"127.0.0.1:{free_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus", f"--config.file={config}", f"--web.listen-address={address}",
                f"--storage.tsdb.path={folder / 'data'}",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        url = f"http://{address}"
        end = time.monotonic() + START_SECONDS
        while not _is_ready(url):
            assert process.poll() is None, (folder / "prometheus.log").read_text("utf-8")
            assert time.monotonic() < end, (folder / "prometheus.log").read_text("utf-8")
            time.sleep(0.2)
        yield Prometheus(url)
    finally:
        process.terminate()
        process.wait()


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
