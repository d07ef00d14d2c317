"""Kubeconfigs of embedded clusters: in files of their own, and merged into the user's."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.kube.kubeconfig import (
    Access,
    KubeconfigError,
    merged,
    path_beside,
    scheduler_in,
    usual_path,
    write_kubeconfig,
    written,
)

ACCESS = Access("https://127.0.0.1:6443", "berth-admin", b"CA", "secret", "https://127.0.0.1:10261")

THEIRS = """\
apiVersion: v1
kind: Config
preferences: {colors: true}
clusters:
- name: work
  cluster: {server: "https://work.example"}
users:
- name: me
  user: {exec: {command: aws, interactiveMode: Never}}
contexts:
- name: work
  context: {cluster: work, user: me, namespace: shop}
current-context: work
"""


@pytest.fixture
def ended() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def of(process: int, *, server: str = "https://127.0.0.1:1") -> Access:
    return Access(server, "berth-admin", process=process)


def content(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def names(path: Path) -> dict[str, list[str]]:
    config = content(path)
    lists = ("clusters", "users", "contexts")
    return {list_: [entry["name"] for entry in config[list_] or []] for list_ in lists}


def test_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, ACCESS)
    assert content(path) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "berth",
                "cluster": {
                    "server": "https://127.0.0.1:6443",
                    "certificate-authority-data": "Q0E=",
                },
            }
        ],
        "users": [{"name": "berth-admin", "user": {"token": "secret"}}],
        "contexts": [
            {
                "name": "berth",
                "context": {
                    "cluster": "berth",
                    "user": "berth-admin",
                    "extensions": [
                        {"name": "berth", "extension": {"scheduler": "https://127.0.0.1:10261"}}
                    ],
                },
            }
        ],
        "current-context": "berth",
    }
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        pytest.param("", False, id="as it was written"),
        pytest.param("# mine\n", True, id="changed by somebody"),
    ],
)
def test_a_file_of_its_own_goes_with_the_cluster(tmp_path: Path, change: str, stays: bool) -> None:
    path = tmp_path / "kubeconfig"
    with written(path, ACCESS):
        assert content(path)["current-context"] == "berth"
        with path.open("a", encoding="utf-8") as file:
            file.write(change)
    assert path.exists() == stays


def test_a_file_that_somebody_removed_is_no_matter(tmp_path: Path) -> None:
    with written(tmp_path / "kubeconfig", ACCESS):
        (tmp_path / "kubeconfig").unlink()


def test_a_merged_cluster_comes_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(THEIRS, encoding="utf-8")
    with merged(path, ACCESS) as context:
        assert context == "berth"
        assert names(path) == {
            "clusters": ["work", "berth"],
            "users": ["me", "berth"],
            "contexts": ["work", "berth"],
        }
        assert content(path)["current-context"] == "berth"
        assert scheduler_in(str(path)) == "https://127.0.0.1:10261"
        assert scheduler_in(str(path), context="work") == ""
    assert content(path) == yaml.safe_load(THEIRS)
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


def test_two_clusters_have_names_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "config"
    with merged(path, of(os.getppid())) as first:
        with merged(path, of(os.getpid())) as second:
            assert (first, second) == ("berth", "berth-2")
            assert names(path)["contexts"] == ["berth", "berth-2"]
        assert content(path)["current-context"] == "berth"
    assert names(path) == {"clusters": [], "users": [], "contexts": []}


def test_a_name_that_somebody_else_has_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(THEIRS.replace("name: me", "name: berth"), encoding="utf-8")
    with merged(path, ACCESS) as context:
        assert context == "berth-2"
        assert names(path)["users"] == ["berth", "berth-2"]


def test_a_cluster_that_was_killed_is_replaced(tmp_path: Path, ended: int) -> None:
    path = tmp_path / "config"
    merging = merged(path, of(ended, server="https://127.0.0.1:2"))
    merging.__enter__()
    with merged(path, ACCESS) as context:
        assert context == "berth"
        assert names(path)["contexts"] == ["berth"]
        assert content(path)["clusters"][0]["cluster"]["server"] == ACCESS.server


def test_who_chooses_another_context_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(THEIRS, encoding="utf-8")
    with merged(path, ACCESS):
        changed = content(path)
        changed["contexts"].append({"name": "home", "context": {"cluster": "work", "user": "me"}})
        changed["current-context"] = "home"
        path.write_text(yaml.safe_dump(changed), encoding="utf-8")
    assert (content(path)["current-context"], names(path)["contexts"]) == ("home", ["work", "home"])


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "config"
    target.write_text(THEIRS, encoding="utf-8")
    link = tmp_path / "config"
    link.symlink_to(target)
    with merged(link, ACCESS):
        assert names(target)["contexts"] == ["work", "berth"]
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("a: [", "not YAML", id="no YAML"),
        pytest.param("- 1", "it is not a kubeconfig", id="no object"),
        pytest.param("clusters: {}\nusers: x", "it is not a kubeconfig", id="another shape"),
    ],
)
def test_what_is_no_kubeconfig_is_not_touched(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(KubeconfigError, match=f"{path}: {said}"), merged(path, ACCESS):
        pass
    assert path.read_text(encoding="utf-8") == text
    assert scheduler_in(str(path)) == ""
    assert path_beside(path) == path


@pytest.mark.parametrize(
    "context",
    ["x", None, {"extensions": "x"}, {"extensions": [1, {"name": "berth", "extension": [1]}]}],
)
def test_a_context_of_another_shape_is_not_ours(tmp_path: Path, context: object) -> None:
    path = tmp_path / "config"
    config = {"contexts": [1, {"name": "c", "context": context}], "current-context": "c"}
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    assert scheduler_in(str(path)) == ""
    assert path_beside(path) == path


def test_a_lock_of_kubectl_is_respected(tmp_path: Path) -> None:
    path, lock = tmp_path / "config", tmp_path / "config.lock"
    lock.touch()
    with pytest.raises(KubeconfigError, match=f"delete {lock}"), merged(path, ACCESS):
        pass
    assert lock.exists()


def test_a_cluster_beside_another_gets_a_file_of_its_own(tmp_path: Path, ended: int) -> None:
    path = tmp_path / "berth.kubeconfig"
    assert path_beside(path) == path
    write_kubeconfig(path, of(ended))
    assert path_beside(path) == path
    write_kubeconfig(path, of(os.getppid()))
    assert path_beside(path) == tmp_path / "berth-2.kubeconfig"
    write_kubeconfig(tmp_path / "berth-2.kubeconfig", of(os.getppid()))
    assert path_beside(path) == tmp_path / "berth-3.kubeconfig"


def test_the_scheduler_of_several_files(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.write_text(THEIRS, encoding="utf-8")
    write_kubeconfig(ours, ACCESS)
    both = f"{theirs}{os.pathsep}{tmp_path / 'absent'}{os.pathsep}{ours}"
    assert scheduler_in(both) == ""
    assert scheduler_in(both, context="berth") == ACCESS.scheduler


def test_the_file_that_kubectl_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert usual_path() == tmp_path / ".kube" / "config"
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(["", f"{tmp_path}/a", f"{tmp_path}/b"]))
    assert usual_path() == tmp_path / "a"
    (tmp_path / "b").touch()
    assert usual_path() == tmp_path / "b"
