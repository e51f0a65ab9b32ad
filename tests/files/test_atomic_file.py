import contextlib
import errno
import os
import socket
import stat

import pytest

from luong_keras.files.atomic_file import (
    atomic_path,
    read_json,
    write_json,
    write_text,
)
from tests.programs import start_program


def file_names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_failed_writes_keep_the_old_file(tmp_path):
    path = tmp_path / "note.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("ne")
        assert path.read_text() == "old"
        assert temporary.suffix == ".txt" and temporary.parent == tmp_path
        raise RuntimeError
    assert path.read_text() == "old" and file_names(tmp_path) == ["note.txt"]


def test_processes_write_to_different_temporary_files(tmp_path):
    path = tmp_path / "note.txt"
    program = (
        "import sys\n"
        "from luong_keras.files.atomic_file import atomic_path\n"
        "with atomic_path(sys.argv[1]) as temporary:\n"
        "    temporary.write_text('theirs')\n"
        "    print(temporary.name, flush=True)\n"
        "    input()\n"
    )
    other = start_program(program, path)
    theirs = other.stdout.readline().strip()
    with atomic_path(path) as temporary:
        assert temporary.name != theirs
        temporary.write_text("ours")
    assert path.read_text() == "ours"
    assert (tmp_path / theirs).read_text() == "theirs"  # not renamed yet
    other.communicate("\n", timeout=30)
    assert path.read_text() == "theirs" and file_names(tmp_path) == ["note.txt"]


def test_temporary_files_of_killed_processes_are_removed(tmp_path):
    ended = start_program("")
    ended.communicate()
    host = socket.gethostname()
    keeps = {
        f".partial-{host}@{ended.pid}-a [1].txt": False,
        f".partial-{host}@{ended.pid}-a 1.txt": True,  # of another file
        f".partial-{host}@{os.getppid()}-a [1].txt": True,  # still running
        f".partial-elsewhere@{ended.pid}-a [1].txt": True,
        # The name of another machine begins as that of this one.
        f".partial-{host}-{ended.pid}-x@{os.getppid()}-a [1].txt": True,
    }
    for name in keeps:
        (tmp_path / name).write_text("half")
    folder = tmp_path / f".partial-{host}@{ended.pid}-b-a [1].txt"
    (folder / "of an earlier version").mkdir(parents=True)
    write_text(tmp_path / "a [1].txt", "whole")
    kept = {name for name, keep in keeps.items() if keep}
    assert set(file_names(tmp_path)) == kept | {"a [1].txt"}


@pytest.mark.parametrize(
    "number, reason",
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "read-only"),
        (errno.EDQUOT, "quota"),
        (errno.ENOSYS, "cannot lock or replace files. .* on a local disk"),
    ],
)
@pytest.mark.parametrize("place", ["write", "replace", "sync"])
def test_disk_errors_name_the_file_and_the_reason(
    tmp_path, monkeypatch, number, reason, place
):
    path = tmp_path / "note.txt"
    write_text(path, "old")

    def fail(*arguments):
        # As in Python, an error of `fsync` names no file.
        file = None if place == "sync" else str(arguments[0])
        raise OSError(number, os.strerror(number), file)

    if place == "replace":
        monkeypatch.setattr(os, "replace", fail)
    elif place == "sync":
        monkeypatch.setattr(os, "fsync", fail)
    raised = pytest.raises(OSError, match=reason)
    with raised as error, atomic_path(path) as temporary:
        temporary.write_text("new")
        if place == "write":
            fail(temporary)
    assert error.value.errno == number
    assert f"{path} is as it was" in str(error.value)
    assert path.read_text() == "old" and file_names(tmp_path) == ["note.txt"]


@pytest.mark.parametrize("name", ["EINVAL", "EACCES", "EBADF", "EIO"])
def test_unsynced_folders_are_no_error(tmp_path, monkeypatch, name):
    number = getattr(errno, name)

    def sync_files(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", sync_files)
    path = tmp_path / "note.txt"
    expected = pytest.raises(OSError, match="the disk has failed")
    with expected if number == errno.EIO else contextlib.nullcontext():
        write_text(path, "new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("file", ["in.txt", "other/in.txt", "outputs", "."])
def test_disk_errors_here_but_not_elsewhere_are_explained(tmp_path, file):
    error = PermissionError(errno.EACCES, "no", str(tmp_path / file))
    raised = pytest.raises(PermissionError)
    with raised as caught, atomic_path(tmp_path / "outputs" / "out.txt"):
        raise error
    explained = "out.txt was not written: there" in str(caught.value)
    assert explained == (file in ("outputs", "."))
    assert explained or caught.value is error


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_only_files_are_replaced(tmp_path, make):
    make(tmp_path / "a")
    with pytest.raises(ValueError, match="which is a folder, a device"):
        write_text(tmp_path / "a", "new")
    assert file_names(tmp_path) == ["a"]


def test_other_errors_are_raised_unchanged(tmp_path):
    with pytest.raises(IsADirectoryError), atomic_path(tmp_path / "a"):
        raise IsADirectoryError(errno.EISDIR, "a folder")


@pytest.mark.parametrize(
    "content", [b"{", b"[1]", b'"a"', b"\xff{}", b"", b'{"a": 1'], ids=repr
)
def test_errors_of_damaged_json_name_the_file(tmp_path, content):
    path = tmp_path / "data.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a seed in .*data\.json.*Do this\."):
        read_json(path, "a seed", "Do this.")


def test_nan_is_not_written_as_json(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "data.json", {"loss": float("nan")})
    assert file_names(tmp_path) == []
