"""Files that berth writes: complete or not at all, for their owner only, never through a link."""

import os
import ssl
import stat
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from berth.runtime.certificates import KeyPair, load_pair, self_signed, server_context
from berth.runtime.files import PUBLIC, SECRET, file_in_memory, write_file

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def no_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make any attempt to write to the temporary folder fail: nothing can be left there, then."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))


@pytest.mark.parametrize("wanted", [SECRET, PUBLIC])
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_mode_is_as_asked_whatever_was_there(tmp_path: Path, wanted: int, umask: int) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o666)
    before = os.umask(umask)
    try:
        write_file(path, "new", mode=wanted)
    finally:
        os.umask(before)
    assert (path.read_text(), mode(path)) == ("new", wanted)
    assert list(tmp_path.iterdir()) == [path]


def test_who_reads_meanwhile_goes_on_with_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_file(path, b"old")
    with path.open("rb") as reading:
        write_file(path, b"new")
        assert reading.read() == b"old"
    assert path.read_bytes() == b"new"


def test_what_fails_on_the_way_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    write_file(path, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_file(path, "new")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


@pytest.mark.parametrize("is_there", [True, False], ids=["to a file", "to nothing"])
def test_a_link_is_not_followed(tmp_path: Path, is_there: bool) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    if is_there:
        target.write_text("somebody else's")
    link.symlink_to(target)
    with pytest.raises(OSError, match="is a symbolic link, which is not followed"):
        write_file(link, "secret")
    assert link.is_symlink()
    assert target.exists() == is_there
    assert not is_there or target.read_text() == "somebody else's"


def test_a_hard_link_keeps_its_content(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_text("old")
    other.hardlink_to(path)
    write_file(path, "secret")
    assert other.read_text() == "old"


def test_a_name_that_could_be_guessed_is_of_no_use(tmp_path: Path) -> None:
    path, victim = tmp_path / "file", tmp_path / "victim"
    victim.write_text("somebody else's")
    (tmp_path / f".file.{os.getpid()}").symlink_to(victim)
    write_file(path, "secret")
    assert victim.read_text() == "somebody else's"


def test_devices_and_pipes_stay_what_they_are(tmp_path: Path) -> None:
    write_file(Path(os.devnull), "nobody")
    assert stat.S_ISCHR(os.lstat(os.devnull).st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "told")
    reader.join()
    assert (read, stat.S_ISFIFO(pipe.lstat().st_mode)) == (["told"], True)


def test_errors_name_the_file_that_was_asked_for(tmp_path: Path) -> None:
    nowhere = tmp_path / "nobody" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        write_file(nowhere, "")
    assert caught.value.filename == str(nowhere)
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path, "")


@pytest.mark.usefixtures("no_temporary_files")
def test_a_key_reaches_tls_without_a_file_on_a_disk() -> None:
    pair = self_signed(["localhost"], now=NOW, name="a")
    server_context(pair)
    load_pair(ssl.create_default_context(), pair)
    with pytest.raises(ssl.SSLError):
        server_context(KeyPair(pair.certificate, self_signed(["b"], now=NOW, name="b").key))


def test_a_file_in_memory_is_gone_afterwards() -> None:
    descriptors = os.listdir("/proc/self/fd")
    with file_in_memory(b"x" * 100_000) as path:
        assert Path(path).read_bytes() == b"x" * 100_000
        assert Path(path).read_bytes() == b"x" * 100_000  # as often as a library wants
    assert os.listdir("/proc/self/fd") == descriptors


def test_a_system_without_files_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with file_in_memory(b"secret") as path:
        assert Path(path).read_bytes() == b"secret"
        assert (Path(path).parent, mode(Path(path))) == (tmp_path, 0o600)
    assert list(tmp_path.iterdir()) == []
