import errno
import os
import socket
import subprocess
import sys

import pytest

from luong_keras.files import atomic_file
from luong_keras.files.atomic_file import (
    atomic_path,
    read_json,
    write_json,
    write_text,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_old_file_stays_where_the_writing_fails(tmp_path):
    path = tmp_path / "note.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("ne")
        assert temporary.suffix == ".txt" and temporary.parent == tmp_path
        raise RuntimeError
    assert path.read_text() == "old" and names(tmp_path) == ["note.txt"]


def test_two_processes_never_write_into_one_file(tmp_path):
    path = tmp_path / "note.txt"
    program = (
        "import sys\n"
        "from luong_keras.files.atomic_file import atomic_path\n"
        "with atomic_path(sys.argv[1]) as temporary:\n"
        "    temporary.write_text('theirs')\n"
        "    print(temporary.name, flush=True)\n"
        "    input()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        env={**os.environ, "LUONG_KERAS_LAZY": "1"},  # without Keras
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    theirs = other.stdout.readline().strip()
    with atomic_path(path) as temporary:
        assert temporary.name != theirs
        temporary.write_text("ours")
    assert path.read_text() == "ours"
    assert (tmp_path / theirs).read_text() == "theirs"  # It still runs.
    other.communicate("\n", timeout=30)
    assert path.read_text() == "theirs" and names(tmp_path) == ["note.txt"]


def test_what_a_killed_process_left_goes_away(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    host = socket.gethostname()
    left = {
        f".partial-{host}-{ended.pid}-a.txt": False,
        f".partial-{host}-{ended.pid}-b.txt": True,  # Of another file.
        f".partial-{host}-{os.getppid()}-a.txt": True,  # Running.
        f".partial-elsewhere-{ended.pid}-a.txt": True,
    }
    for name in left:
        (tmp_path / name).write_text("half")
    write_text(tmp_path / "a.txt", "whole")
    stays = {name for name, kept in left.items() if kept}
    assert set(names(tmp_path)) == stays | {"a.txt"}


@pytest.mark.parametrize(
    "number, said",
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "read-only"),
        (errno.EDQUOT, "quota"),
    ],
)
@pytest.mark.parametrize("place", ["write", "replace", "sync"])
def test_a_disk_that_takes_no_more_is_named(
    tmp_path, monkeypatch, number, said, place
):
    path = tmp_path / "note.txt"
    write_text(path, "old")

    def fail(*arguments):
        raise OSError(number, os.strerror(number), str(arguments[0]))

    if place == "replace":
        monkeypatch.setattr(os, "replace", fail)
    elif place == "sync":
        monkeypatch.setattr(os, "fsync", fail)
    with (
        pytest.raises(OSError, match=said) as raised,
        atomic_path(path) as temporary,
    ):
        temporary.write_text("new")
        if place == "write":
            fail(temporary)
    assert raised.value.errno == number
    assert f"{path} is as it was" in str(raised.value)
    assert path.read_text() == "old" and names(tmp_path) == ["note.txt"]


def test_another_error_stays_what_it_is(tmp_path):
    with pytest.raises(IsADirectoryError), atomic_path(tmp_path / "a"):
        raise IsADirectoryError(errno.EISDIR, "a folder")


def test_processes_are_told_apart():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert atomic_file.is_running(os.getppid())
    assert not atomic_file.is_running(ended.pid)


@pytest.mark.parametrize(
    "content", [b"{", b"[1]", b'"a"', b"\xff{}", b"", b'{"a": 1'], ids=repr
)
def test_damaged_json_is_named(tmp_path, content):
    path = tmp_path / "data.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a seed in .*data\.json.*Do this\."):
        read_json(path, "a seed", "Do this.")


def test_json_has_no_nan(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "data.json", {"loss": float("nan")})
    assert names(tmp_path) == []
