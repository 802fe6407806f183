"""The journal of a run, `.state/journal.jsonl`: every answered call and every stage's result, kept before it is used.

A killed run is resumed from it. Each call to the model is there before it is sent, with what it takes at the most, and
what it took before its answer is used. A last line that a kill tore never happened.
"""

import json
import os
import time
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from pipeline.core.errors import InputError
from pipeline.core.files import append_line
from pipeline.models.structured import Spent, added
from pipeline.research.contracts import ToolCall, put_trace
from pipeline.research.values import Stage
from pipeline.sources.store import Store

Value = TypeVar("Value")

JOURNAL = Path(".state") / "journal.jsonl"


class _StageResult(NamedTuple):
    value: Any
    notes: tuple[str, ...]


class Journal:
    """An open journal; for one process at a time, which holds the run's folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.setup: dict[str, Any] | None = None
        self.created_at = ""
        self.stages: dict[tuple[Stage, int], _StageResult] = {}
        self.answers: dict[str, list[str]] = {}
        self.unmetered: list[str] = []
        self.begun: dict[int, Spent] = {}
        self.calls = 0
        self.settled = Spent()
        self.seconds_before = 0.0
        self.began = self.written = time.monotonic()
        with open(self.path, "a+b") as file:
            file.seek(0)
            read = 0
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                self._read_entry(line, number)
                read += len(line)
            os.ftruncate(file.fileno(), read)

    def _read_entry(self, line: bytes, number: int) -> None:
        try:
            entry = json.loads(line)
            self.seconds_before += float(entry["seconds"])
            self._remember(entry)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(
                f"Line {number} of {str(self.path)!r} is no entry of a run's journal, so the run cannot go on. Delete "
                "it with `citejury pipeline research --run-id RUN_ID --delete`, or research under another `--run-id`."
            ) from error

    def _remember(self, entry: Mapping[str, Any]) -> None:
        if entry["entry"] == "setup":
            self.setup, self.created_at = entry["setup"], entry["created_at"]
        elif entry["entry"] == "stage":
            self.stages[entry["stage"], entry["round"]] = _StageResult(entry["value"], tuple(entry["notes"]))
        elif entry["entry"] == "call":
            self.calls = entry["call"]
            self.begun[self.calls] = Spent(*entry["most"])
        elif entry["entry"] == "settled":
            del self.begun[entry["call"]]
            self.settled = added(self.settled, Spent(*entry["took"]))
        else:
            self.answers[entry["key"]] = entry["payloads"]
            if not entry.get("metered"):
                self.unmetered += entry["payloads"]

    def _keep(self, **entry: Any) -> None:
        now = time.monotonic()
        append_line(self.path, json.dumps({**entry, "seconds": round(now - self.written, 3)}))
        self.written = now
        self._remember(entry)

    def keep_setup(self, setup: Mapping[str, Any], created_at: str) -> None:
        self._keep(entry="setup", setup=setup, created_at=created_at)

    def keep_answer(self, key: str, payloads: list[str]) -> None:
        self._keep(entry="answer", key=key, payloads=list(payloads), metered=True)

    def begin(self, most: Spent) -> int:
        """The number of a call that begins, kept with what it takes at the most."""
        number = self.calls + 1
        self._keep(entry="call", call=number, most=most)
        return number

    def settle(self, number: int, took: Spent) -> None:
        self._keep(entry="settled", call=number, took=took)

    @property
    def cut_off(self) -> Spent:
        """What the calls took at the most of which nobody knows how they ended: those that a kill cut off."""
        return reduce(added, self.begun.values(), Spent())

    def keep_stage(self, stage: Stage, round_: int, value: Any, kind: type[Any], notes: tuple[str, ...]) -> None:
        dumped = TypeAdapter(kind).dump_python(value, mode="json")
        self._keep(entry="stage", stage=stage, round=round_, value=dumped, notes=notes)

    def stage_value(self, stage: Stage, round_: int, kind: type[Value]) -> Value:
        try:
            return TypeAdapter(kind).validate_python(self.stages[stage, round_].value)
        except ValidationError as error:
            ending = f"in {str(self.path)!r} has another form than this citejury's. Research under another `--run-id`."
            raise InputError(f"What the stage {stage!r} left {ending}") from error

    def seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.began


def read_setup(folder: Path) -> dict[str, Any] | None:
    """What the run in this folder was begun with; None where it has not begun, or its journal is none."""
    try:
        with open(folder / JOURNAL, "rb") as file:
            setup = json.loads(file.readline())["setup"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return setup if isinstance(setup, dict) else None


class JournaledAnswers(NamedTuple):
    """The model's answered calls as `Model` keeps them, those of earlier starts included; the trace hears of each."""

    journal: Journal
    store: Store
    run_id: str

    def get(self, key: str, /) -> list[str] | None:
        held = self.journal.answers.get(key)
        return None if held is None else list(held)

    def __setitem__(self, key: str, payloads: list[str], /) -> None:
        self.journal.keep_answer(key, payloads)
        call = ToolCall(tool="model", params={"request_sha256": key, "payloads": len(payloads)})
        put_trace(self.store, self.run_id, call)
