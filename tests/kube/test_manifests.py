"""Files of manifests that cannot be read: the message says which file, and why."""

from pathlib import Path

import pytest

from berth.kube.manifests import ManifestError, read


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"a: [", id="cut off"),
        pytest.param(b"\xff\xfe\xff", id="no text"),
        pytest.param(b"a: " + b"[" * 100_000 + b"]" * 100_000, id="deep"),
        pytest.param(b"a: " + b"9" * 5_000, id="a number of 5,000 digits"),
        pytest.param(b"? [a]\n: b", id="a list as a name"),
        pytest.param(b"a: !!python/object/apply:os.getpid []", id="a call"),
    ],
)
def test_what_is_no_yaml_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "it.yaml"
    path.write_bytes(content)
    with pytest.raises(ManifestError, match=r"it\.yaml: not YAML: "):
        list(read(path))
