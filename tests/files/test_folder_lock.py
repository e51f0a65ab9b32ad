import errno
import signal
import socket
from unittest import mock

import filelock
import pytest

from luong_keras.files.folder_lock import FolderInUseError, lock_folder
from tests.programs import start_program

HOLDER = (
    "import sys, time\n"
    "from luong_keras.files.folder_lock import lock_folder\n"
    "with lock_folder(sys.argv[1]):\n"
    "    print('locked', flush=True)\n"
    "    input()\n"
)


@pytest.fixture
def holder(tmp_path):
    """Start another process that holds the lock."""
    with start_program(HOLDER, tmp_path) as process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_folders_locked_by_another_process_are_refused(tmp_path, holder):
    message = f"{tmp_path} is in use by another .* remove {tmp_path}/.lock"
    with pytest.raises(FolderInUseError, match=message), lock_folder(tmp_path):
        pass
    holder.communicate("\n", timeout=30)
    assert holder.returncode == 0
    with lock_folder(tmp_path):
        pass


def test_locks_of_killed_processes_are_released(tmp_path, holder):
    (tmp_path / f".partial-{socket.gethostname()}@{holder.pid}-a").touch()
    holder.send_signal(signal.SIGKILL)
    holder.wait(30)
    with lock_folder(tmp_path):
        assert not list(tmp_path.glob(".partial-*"))
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    "error",
    [NotImplementedError("flock"), OSError(errno.ENOLCK, "No locks available")],
    ids=["older filelock", "system"],
)
def test_file_systems_without_locks_are_explained(tmp_path, monkeypatch, error):
    acquire = mock.Mock(side_effect=error)
    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    message = f"{tmp_path}.* cannot lock or replace files. .* local disk"
    with pytest.raises(OSError, match=message):
        lock_folder(tmp_path).__enter__()


def test_errors_release_the_lock(tmp_path):
    with pytest.raises(KeyError), lock_folder(tmp_path / "new" / "run"):
        raise KeyError
    with lock_folder(tmp_path / "new" / "run"):
        pass


def test_files_are_locked_separately(tmp_path):
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    prefix = f".partial-{socket.gethostname()}@{2**22 + 1}-"
    for path in (one, other):
        (tmp_path / (prefix + path.name)).touch()
    with lock_folder(tmp_path), lock_folder(tmp_path, one.name):
        # Locking the folder removed the partial files of all names.
        assert not list(tmp_path.glob(".partial-*"))
        (tmp_path / (prefix + one.name)).touch()
        with lock_folder(tmp_path, other.name):
            assert (tmp_path / (prefix + one.name)).exists()
        message = f"{one} is in use by another process.*one.npz.lock"
        with pytest.raises(FolderInUseError, match=message):
            lock_folder(tmp_path, one.name).__enter__()
    with lock_folder(tmp_path, one.name):
        assert not list(tmp_path.glob(".partial-*"))


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.touch()
    with pytest.raises(FileExistsError, match=r"pairs\.tsv, which is a file"):
        lock_folder(path).__enter__()


def test_errors_of_permissions_say_what_to_do(tmp_path, monkeypatch):
    def refuse(lock, **_):
        raise PermissionError(errno.EACCES, "denied", lock.lock_file)

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    with pytest.raises(PermissionError, match="make the folder writable"):
        lock_folder(tmp_path).__enter__()
