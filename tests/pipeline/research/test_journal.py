import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.core.errors import InputError
from pipeline.models.structured import Spent
from pipeline.research.journal import JOURNAL, Journal

MOST = Spent(1, 900, 4096, 0.5, 0)
TOOK = Spent(1, 800, 100, 0.09, 0)


def test_a_call_counts_as_what_it_took_and_one_that_was_cut_off_as_what_it_could_take(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert [journal.begin(MOST) for _ in range(3)] == [1, 2, 3]
    journal.settle(2, TOOK)
    journal.keep_answer("key", ["payload"])
    journal.settle(3, Spent())
    again = Journal(tmp_path)
    assert (journal.settled, journal.cut_off) == (again.settled, again.cut_off) == (TOOK, MOST)
    assert (again.answers, again.unmetered, again.begin(MOST)) == ({"key": ["payload"]}, [], 4)


def test_a_kill_before_the_answer_is_kept_leaves_what_it_took_and_a_torn_end_a_call_that_is_cut_off(
    tmp_path: Path,
) -> None:
    journal, path = Journal(tmp_path), tmp_path / JOURNAL
    number = journal.begin(MOST)
    before = path.stat().st_size
    journal.settle(number, TOOK)
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"entry": "answer", "key": "key", "payl')
    again = Journal(tmp_path)
    assert (again.settled, again.cut_off, again.answers) == (TOOK, Spent(), {})
    with open(path, "ab") as file:
        file.truncate(before + 20)
    again = Journal(tmp_path)
    assert (again.settled, again.cut_off) == (Spent(), MOST)


def test_answers_of_earlier_versions_are_to_be_counted_and_a_settled_call_that_nobody_began_is_no_journal(
    tmp_path: Path,
) -> None:
    path = tmp_path / JOURNAL
    path.parent.mkdir()
    path.write_text(json.dumps({"entry": "answer", "key": "key", "payloads": ["a", "b"], "seconds": 1.0}) + "\n")
    journal = Journal(tmp_path)
    assert (journal.answers, journal.unmetered, journal.settled) == ({"key": ["a", "b"]}, ["a", "b"], Spent())
    path.write_text(path.read_text() + json.dumps({"entry": "settled", "call": 7, "took": TOOK, "seconds": 0}) + "\n")
    with pytest.raises(InputError, match="Line 2"):
        Journal(tmp_path)


FULL_DISK = """
import resource, signal, sys
from pathlib import Path

from pipeline.models.structured import Spent
from pipeline.research.journal import Journal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(Path(sys.argv[1]))
journal.keep_setup({}, "now")
journal.keep_answer("first", ["paid"])
room = journal.path.stat().st_size + 30
resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
try:
    journal.keep_answer("second", ["paid" * 100])
except OSError:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    journal.settle(journal.begin(Spent(1)), Spent(1))
"""


def test_a_full_disk_leaves_no_half_entry_before_those_of_other_calls(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], check=True)
    again = Journal(tmp_path)
    assert (set(again.answers), again.calls, again.cut_off) == ({"first"}, 1, Spent())
