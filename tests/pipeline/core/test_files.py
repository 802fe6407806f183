import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
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


def device(path: Path, major: int, minor: int, kind: int = stat.S_IFCHR | 0o666) -> Path:
    """A device of our own, so that nothing of the machine's is at stake."""
    try:
        os.mknod(path, kind, os.makedev(major, minor))
        with open(path, "rb") if stat.S_ISCHR(kind) else nullcontext():
            pass
    except OSError as error:
        pytest.skip(f"no device can be made or opened here: {error.strerror}")
    return path


def test_a_file_appears_whole_with_the_rights_of_any_new_file_or_its_owners_alone(tmp_path: Path, umask: None) -> None:
    path = tmp_path / "secrets.json"
    path.write_text("earlier")
    with staged_file(path, 0o600) as file:
        (part,) = set(tmp_path.iterdir()) - {path}
        assert mode(part) == 0o600
        file.write(b"new")
    assert mode(path) == 0o600
    write_private(path, "ä")
    assert (path.read_bytes(), mode(path)) == ("ä".encode(), 0o600)
    path = tmp_path / "a" / "b" / "out.txt"
    write(path, "earlier")
    assert (path.read_text(), mode(path)) == ("earlier", 0o640)
    with pytest.raises(ZeroDivisionError), staged_file(path) as file:
        file.write(b"half" * (1 // 0))
    assert path.read_text() == "earlier"
    with staged_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "earlier"
    assert (path.read_text(), list(path.parent.iterdir())) == ("new", [path])


def test_a_link_stays_and_its_target_is_made_or_replaced_whole(tmp_path: Path) -> None:
    target, link, again = tmp_path / "there" / "target.txt", tmp_path / "here" / "link.txt", tmp_path / "again.txt"
    link.parent.mkdir()
    link.symlink_to("../there/target.txt")
    again.symlink_to(link)
    write(again, "earlier")
    with pytest.raises(TypeError), staged_file(again) as file:
        file.write("no bytes")  # type: ignore[arg-type]  # the error that is wanted
    assert target.read_text() == "earlier"
    inode = target.stat().st_ino
    write(again)
    assert (link.is_symlink(), again.is_symlink(), target.read_text()) == (True, True, "new")
    assert target.stat().st_ino != inode
    assert list(target.parent.iterdir()) == [target]
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(OSError, match="symbolic links"):
        write(circle)
    assert circle.is_symlink()


def test_a_device_is_written_to_also_through_a_link_and_by_a_command_and_stays(tmp_path: Path) -> None:
    null = device(tmp_path / "null", 1, 3)
    link, before = tmp_path / "link", null.stat()
    link.symlink_to(null)
    write(null)
    write_private(link, "secret")
    (tmp_path / "report.md").write_text("The sky is blue [1].\n\n## Sources\n\n[1] https://sky.example/\n")
    words = ["pipeline", "verify", str(tmp_path / "report.md"), "--offline", "--out", str(null)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert (null.stat().st_ino, null.stat().st_mode, link.is_symlink()) == (before.st_ino, before.st_mode, True)
    full = device(tmp_path / "full", 1, 7)
    with pytest.raises(OSError, match="No space left"):
        write(full)
    assert full.is_char_device()


def test_a_named_pipe_gets_the_text_and_a_folder_a_socket_and_a_disk_are_refused_and_stay(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join(20)
    assert (got, pipe.is_fifo(), list(tmp_path.iterdir())) == ([b"new"], True, [pipe])
    with pytest.raises(OutputError, match="is a folder"):
        write(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(OutputError, match="neither a file nor a pipe"):
            write(tmp_path / "socket")
    assert (tmp_path / "socket").is_socket()
    with pytest.raises(OutputError, match="neither a file nor a pipe"):
        write(device(tmp_path / "disk", 7, 250, stat.S_IFBLK | 0o600))


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
