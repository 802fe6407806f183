"""The one writer: files appear whole or not at all, links stay links, and what is no file is never replaced."""

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from exports.cli import main
from pipeline.core.errors import OutputError
from pipeline.core.files import staged_file, write_private
from tests.support.places import ROOT


def write(path: Path, text: str = "new") -> None:
    with staged_file(path) as file:
        file.write(text.encode())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask() -> Iterator[None]:
    earlier = os.umask(0o027)
    yield
    os.umask(earlier)


def device(path: Path, kind: int, major: int, minor: int) -> Path:
    """A device of our own, so that nothing of the machine's is at stake."""
    try:
        os.mknod(path, kind | 0o666, os.makedev(major, minor))
        with open(path, "rb"):
            pass
    except OSError as error:
        pytest.skip(f"no device can be made or opened here: {error.strerror}")
    return path


@pytest.fixture
def null(tmp_path: Path) -> Path:
    return device(tmp_path / "null", stat.S_IFCHR, 1, 3)


def read_pipe(path: Path) -> tuple[threading.Thread, list[bytes]]:
    """A reader at the other end of a named pipe, and what it will have read."""
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    return reader, got


def test_a_new_file_gets_the_rights_of_any_new_file_and_its_folders(tmp_path: Path, umask: None) -> None:
    path = tmp_path / "a" / "b" / "out.txt"
    write(path)
    assert path.read_text() == "new"
    assert mode(path) == 0o640
    assert [entry.name for entry in path.parent.iterdir()] == ["out.txt"]


def test_an_error_leaves_the_earlier_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("earlier")
    with pytest.raises(ZeroDivisionError), staged_file(path) as file:
        file.write(b"half" * (1 // 0))
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_until_the_end_the_earlier_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("earlier")
    with staged_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "earlier"
    assert path.read_text() == "new"


def test_a_private_file_is_its_owners_alone_from_its_first_byte(tmp_path: Path, umask: None) -> None:
    path = tmp_path / "secrets.json"
    path.write_text("earlier")
    with staged_file(path, 0o600) as file:
        (part,) = set(tmp_path.iterdir()) - {path}
        assert mode(part) == 0o600
        file.write(b"new")
    assert mode(path) == 0o600
    write_private(path, "ä")
    assert path.read_bytes() == "ä".encode()
    assert mode(path) == 0o600


def test_a_link_stays_and_its_target_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "there" / "target.txt"
    target.parent.mkdir()
    target.write_text("earlier")
    link = tmp_path / "here" / "link.txt"
    link.parent.mkdir()
    link.symlink_to("../there/target.txt")
    (tmp_path / "again.txt").symlink_to(link)
    with pytest.raises(TypeError), staged_file(tmp_path / "again.txt") as file:
        file.write("no bytes")  # type: ignore[arg-type]  # the error that is wanted
    assert target.read_text() == "earlier"
    inode = target.stat().st_ino
    write(tmp_path / "again.txt")
    assert link.is_symlink()
    assert (tmp_path / "again.txt").is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_ino != inode
    assert [entry.name for entry in target.parent.iterdir()] == ["target.txt"]


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "later" / "target.txt")
    write(link)
    assert link.is_symlink()
    assert (tmp_path / "later" / "target.txt").read_text() == "new"


def test_a_link_to_itself_is_an_error_of_the_system(tmp_path: Path) -> None:
    link = tmp_path / "link.txt"
    link.symlink_to(link)
    with pytest.raises(OSError, match="symbolic links"):
        write(link)
    assert link.is_symlink()


def test_a_device_is_written_to_and_stays(null: Path) -> None:
    before = null.stat()
    write(null)
    assert null.is_char_device()
    assert null.stat().st_ino == before.st_ino
    assert list(null.parent.iterdir()) == [null]


def test_a_link_to_a_device_and_the_device_stay(null: Path) -> None:
    link = null.with_name("link")
    link.symlink_to(null)
    rights = mode(null)
    write_private(link, "secret")
    assert mode(null) == rights
    assert link.is_symlink()
    assert null.is_char_device()


def test_a_device_that_is_full_is_an_error_of_the_system(tmp_path: Path) -> None:
    full = device(tmp_path / "full", stat.S_IFCHR, 1, 7)
    with pytest.raises(OSError, match="No space left"):
        write(full)
    assert full.is_char_device()


def test_a_named_pipe_gets_the_text_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader, got = read_pipe(pipe)
    write(pipe)
    reader.join(20)
    assert got == [b"new"]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("through", ["pipe", "file"])
@pytest.mark.parametrize("name", ["/proc/self/fd/1", "/dev/fd/1", "link", "link-to-link"])
def test_stdout_by_name_is_our_stdout_between_what_others_write_there(tmp_path: Path, name: str, through: str) -> None:
    """Links of our own, never /dev/stdout itself: a writer that breaks again must not break the machine."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc here")
    (tmp_path / "link").symlink_to("/proc/self/fd/1")
    (tmp_path / "link-to-link").symlink_to("link")
    code = (
        "import pathlib, sys; from pipeline.core import files as f; f.write_private(pathlib.Path(sys.argv[1]), 'new ')"
    )
    words = ["sh", "-c", 'echo before; "$@"; echo after', "sh", sys.executable, "-c", code, str(tmp_path / name)]
    with open(tmp_path / "out", "wb") as file:
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE if through == "pipe" else file, check=True)
    assert (done.stdout or (tmp_path / "out").read_bytes()) == b"before\nnew after\n"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "link-to-link").is_symlink()


def test_a_folder_a_socket_and_a_disk_are_refused_and_stay(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a folder"):
        write(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(OutputError, match="neither a file nor a pipe"):
            write(tmp_path / "socket")
    assert (tmp_path / "socket").is_socket()
    try:
        os.mknod(tmp_path / "disk", stat.S_IFBLK | 0o600, os.makedev(7, 250))
    except OSError as error:
        pytest.skip(f"no device can be made here: {error.strerror}")
    with pytest.raises(OutputError, match="neither a file nor a pipe"):
        write(tmp_path / "disk")


def test_verify_writes_to_a_device_and_leaves_it_one(null: Path) -> None:
    report = null.with_name("report.md")
    report.write_text("The sky is blue [1].\n\n## Sources\n\n[1] https://sky.example/\n")
    words = ["pipeline", "verify", str(report), "--offline", "--out", str(null)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert null.is_char_device()
