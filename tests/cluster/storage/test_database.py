"""The file: what is in it, who may open it, and what is said of one that cannot be used."""

import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from berth.cluster.storage.database import FILE, Database, DatabaseError, Record
from berth.cluster.storage.log import ChangeType


def record(
    version: int, name: str = "p", change: ChangeType = ChangeType.MODIFIED, **labels: str
) -> Record:
    body = b'{"metadata":{"name":"%s","resourceVersion":"%d"}}' % (name.encode(), version)
    return Record("pods", change, "default", name, f"uid-{name}", version, labels, body)


def test_changes_come_back_in_order(tmp_path: Path) -> None:
    with closing(Database(tmp_path)) as database:
        database.append([record(2, app="web"), record(3, "q")])
        database.append([record(4)])
    with closing(Database(tmp_path)) as database:
        assert list(database.changes()) == [record(2, app="web"), record(3, "q"), record(4)]
        assert (database.compacted, list(database.objects())) == (0, [])


def test_a_long_journal_goes_into_the_objects(tmp_path: Path) -> None:
    with closing(Database(tmp_path, kept_changes=2)) as database:
        database.append([record(2, "a"), record(3, "b", app="web")])
        database.append([record(4, "a", ChangeType.DELETED), record(5, "b", app="shop")])
        assert database.compacted == 3
        assert [stored.key[1] for _, stored in database.objects()] == ["a", "b"]
        database.append([record(6, "c"), record(7, "c")])
        assert database.compacted == 5
        [(resource, stored)] = database.objects()
        assert (resource, stored.key, stored.version) == ("pods", ("default", "b"), 5)
        assert (stored.uid, stored.labels) == ("uid-b", {"app": "shop"})
        assert stored.decode() == {"metadata": {"name": "b", "resourceVersion": "5"}}
        assert [change.version for change in database.changes()] == [6, 7]


def test_as_many_changes_stay_as_should(tmp_path: Path) -> None:
    with closing(Database(tmp_path, kept_changes=100)) as database:
        for number in range(50):
            database.append([record(2 + 7 * number + each) for each in range(7)])
            stay = len(list(database.changes()))
            assert min(100, 7 * (number + 1)) <= stay < 100 + 7 + 5
            assert database.compacted in (0, 1 + 7 * (number + 1) - stay)


def test_what_is_too_large_for_a_row_is_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("berth.cluster.storage.database.GROUP_BYTES", 100)
    records = [record(version) for version in range(2, 12)]
    with closing(Database(tmp_path)) as database:
        database.append(records)
        assert list(database.changes()) == records
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        assert connection.execute("SELECT count(*), sum(changes) FROM journal").fetchone() == (
            4,
            10,
        )


def test_secrets_are_kept_and_replaced(tmp_path: Path) -> None:
    with closing(Database(tmp_path)) as database:
        assert database.secret("token") is None
        database.keep_secret("token", b"old")
        database.keep_secret("token", b"new")
    with closing(Database(tmp_path)) as database:
        assert database.secret("token") == b"new"


def test_only_the_owner_may_read_what_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    with closing(Database(folder)) as database:
        database.append([record(2)])
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_two_processes_cannot_have_it(tmp_path: Path) -> None:
    with closing(Database(tmp_path)):
        with pytest.raises(DatabaseError) as refusal:
            Database(tmp_path)
        assert str(refusal.value) == f"{tmp_path / FILE}: another process uses it"
    Database(tmp_path).close()


def of_a_newer_berth(path: Path) -> None:
    Database(path.parent).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")


def of_somebody_else(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")


def no_database(path: Path) -> None:
    path.write_bytes(b"apiVersion: v1\n" * 1000)


def with_a_damaged_page(path: Path) -> None:
    with closing(Database(path.parent)) as database:
        database.append([record(version, app="x" * 1000) for version in range(2, 40)])
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)


def with_a_damaged_row(path: Path) -> None:
    with closing(Database(path.parent)) as database:
        database.append([record(2)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE journal SET records = x'93ff'")
        connection.commit()


def a_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(
            of_a_newer_berth,
            "another version of berth wrote it (its schema has version 7, this berth reads 1)",
            id="a file of a newer berth",
        ),
        pytest.param(
            of_somebody_else, "it is a SQLite file, but not one of berth", id="another's file"
        ),
        pytest.param(no_database, "file is not a database", id="a file of another kind"),
        pytest.param(with_a_damaged_page, "database disk image is malformed", id="damaged pages"),
        pytest.param(with_a_damaged_row, "it is damaged: ", id="a damaged row"),
        pytest.param(a_folder, "Is a directory", id="a folder of that name"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, make: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / FILE
    make(path)

    def read() -> None:
        with closing(Database(tmp_path)) as database:
            list(database.objects())
            list(database.changes())

    with pytest.raises(DatabaseError) as refusal:
        read()
    assert str(refusal.value).startswith(f"{path}: {said}")


def test_a_file_of_another_kind_stays_as_it_is(tmp_path: Path) -> None:
    of_somebody_else(tmp_path / FILE)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(DatabaseError):
        Database(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseError, match=r"file/data: Not a directory"):
        Database(tmp_path / "file" / "data")
