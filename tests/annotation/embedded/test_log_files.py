"""Logs turn while the server runs, and hold no megabytes of what a client sends."""

import logging
import os
import sys
import threading
from pathlib import Path
from typing import NoReturn

from annotation.embedded.home.logs import LogPipe, ShortEntries, following, tell

LARGEST = 2_000
LINES = [f"line {number:04}" for number in range(300)]


def test_a_full_log_is_turned_while_its_part_writes_on(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    log = LogPipe(path, LARGEST)
    for line in LINES:
        os.write(log.writing, f"{line}\n".encode())
    os.close(log.writing)
    log.thread.join()
    now, before = (each.read_text(encoding="utf-8") for each in (path, Path(f"{path}.1")))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["web.log", "web.log.1"]
    assert max(len(now), len(before)) <= LARGEST + 2**16
    kept = (before + now).splitlines()
    assert kept == LINES[-len(kept) :], "what is kept is whole lines, the newest, in order"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_without_end_fills_no_disk(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    log = LogPipe(path, LARGEST)
    for _ in range(50):
        os.write(log.writing, b"x" * 60_000)
    os.close(log.writing)
    log.thread.join()
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) <= 2 * (LARGEST + 2**16)


def test_events_of_several_parts_turn_and_each_is_shown_once(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    shown: list[str] = []

    def write(part: str) -> None:
        for line in LINES:
            tell(f"{part} {line}", path, 8 * LARGEST)

    followed = threading.Event()

    def show(line: str) -> None:
        shown.append(line)
        followed.set()

    with following(path, show):
        tell("first", path)
        followed.wait()  # two turns before the first look would be one too many
        parts = [threading.Thread(target=write, args=(part,)) for part in "ab"]
        for each in parts:
            each.start()
        for each in parts:
            each.join()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["events.log", "events.log.1"]
    assert max(each.stat().st_size for each in tmp_path.iterdir()) <= 8 * LARGEST
    assert sorted(line.partition(" ")[2] for line in shown) == [
        *(f"{part} {line}" for part in "ab" for line in LINES),
        "first",
    ]


def test_an_entry_is_cut_and_says_by_how_much() -> None:
    def fail() -> NoReturn:
        raise ValueError("y" * 5_000_000)

    formatter = ShortEntries("%(message)s")
    try:
        fail()
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, "", 1, "sent: " + "x" * 5_000_000, (), sys.exc_info())
    text = formatter.format(record)
    assert len(text) < 5_000
    assert text.startswith("sent: xxx")
    assert "(4,999,006 characters left out)" in text
    assert "ValueError: yyy" in text
    many = logging.LogRecord("a", logging.ERROR, "", 1, "z\n" * 1_000_000, (), None)
    assert len(formatter.format(many)) < 101_000
    short = logging.LogRecord("a", logging.ERROR, "", 1, "one\ntwo", (), None)
    assert formatter.format(short) == "one\ntwo"
