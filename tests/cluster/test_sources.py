"""What ``berth up --load`` takes."""

import io
from pathlib import Path

import pytest

from berth import cli
from berth.cluster.sources import gather


def manifest(name: str) -> str:
    return f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}"}}}}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.yaml", "a/z.yml", "a/c/d.json", "README.md", "a/c.yaml.bak"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(manifest(name.replace("/", "-")), encoding="utf-8")
    return tmp_path


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def names(*sources: str) -> list[tuple[str, str]]:
    gathered = gather(sources)
    assert gathered.problems == []
    return [(name, obj["metadata"]["name"]) for name, obj in gathered.objects]


def test_a_folder_is_read_with_all_below_it(folder: Path) -> None:
    assert names(str(folder)) == [
        (f"{folder}/b.yaml", "b.yaml"),
        (f"{folder}/a/z.yml", "a-z.yml"),
        (f"{folder}/a/c/d.json", "a-c-d.json"),
    ]


def test_a_file_that_is_named_may_have_any_name(folder: Path) -> None:
    assert names(f"{folder}/README.md") == [(f"{folder}/README.md", "README.md")]


def test_standard_input_is_read_in_its_turn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, f"{manifest('one')}\n---\n{manifest('two')}".encode())
    assert names("-", f"{folder}/b.yaml") == [
        ("standard input", "one"),
        ("standard input", "two"),
        (f"{folder}/b.yaml", "b.yaml"),
    ]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        pytest.param("Chart.yaml", "helm template", id="a chart"),
        pytest.param("kustomization.yaml", "kubectl kustomize", id="a kustomization"),
    ],
)
def test_a_folder_that_has_to_be_built_is_not_loaded(folder: Path, name: str, command: str) -> None:
    (folder / "a" / name).write_text("resources: []", encoding="utf-8")
    gathered = gather([str(folder), f"{folder}/b.yaml"])
    assert [name for name, _ in gathered.objects] == [f"{folder}/b.yaml"]
    assert gathered.problems == [
        f"{folder}/a/{name}: manifests are built from this folder;"
        f" use `{command} {folder}/a | berth up --load -`"
    ]


def test_what_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"\xff")
    (tmp_path / "half.yaml").write_text(f"{manifest('x')}\n---\n- 1", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    gathered = gather(["-", f"{tmp_path}/half.yaml", f"{tmp_path}/empty", f"{tmp_path}/absent"])
    assert gathered.objects == []
    assert [problem.replace(str(tmp_path), "") for problem in gathered.problems] == [
        "standard input: not YAML: 'utf-8' codec can't decode byte 0xff in position 0: invalid"
        " start byte",
        "/half.yaml, document 2: an object is needed, got list [1]",
        "/empty: there is no *.yaml, *.yml or *.json in this folder",
        "/absent: No such file or directory",
    ]


def test_a_url_is_refused_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    url = "https://example.com/install.yaml"
    with pytest.raises(SystemExit) as end:
        cli.main(["up", "--load", url])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert f"argument --load: {url}: manifests are not downloaded" in said
    assert f"use `curl -L {url} | berth up --load -`" in said
