"""The run folder: who may write to it, its manifest, and its errors (pipeline/contracts/run_folder.md#resuming)."""

import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import Literal
from uuid import uuid4

from pydantic import Field, ValidationError

from pipeline.csv_v2.file import error_bytes
from pipeline.errors import OutputError
from pipeline.schema import AskOptions, ErrorLine, Frozen, ProviderName
from pipeline.staging import staged_file

MANIFEST = "manifest.json"
ERRORS = "errors.jsonl"
CITATIONS = "citations.jsonl"

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)
"""What the system says of a disk that takes no more."""


class NarrativesFile(Frozen):
    """The narratives that were asked."""

    file: str
    """Base name of the file."""
    sha256: str
    """Digest of its bytes."""
    rows: int
    """How many narratives it holds."""


class ProviderCounts(Frozen):
    """What one provider answered in this run."""

    model_asked: str = ""
    """The model asked for by option or setting; empty where the payloads alone tell."""
    models_answered: dict[str, int] = Field(default_factory=dict)
    """Answers by `model_version`."""
    answers: int = 0
    """Answers in the provider's CSV."""
    citations: int = 0
    """Distinct cited URLs of each answer, summed."""
    cut_short: dict[str, int] = Field(default_factory=dict)
    """Answers that were truncated, refused or blocked, by the provider's own reason."""
    input_tokens: int = 0
    """Tokens that went in, as the bodies state them; those of search results and of caches included."""
    output_tokens: int = 0
    """Tokens that came out, as the bodies state them, thinking included."""
    searches: int = 0
    """Web searches that the bodies count or list."""
    cost: float = 0.0
    """What the answers cost as far as it is known: stated by the body, else by the price table of the settings."""
    unpriced: int = 0
    """Answers whose cost is not known, and which `cost` leaves out."""


class RunManifest(Frozen):
    """What a run is and holds; written at its start and again at its end."""

    kind: Literal["citejury run"] = "citejury run"
    """Says whose manifest this is."""
    version: str
    """Version of citejury that wrote it."""
    run_id: str = Field(pattern=r"^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$")
    """UUID of the run; every `answer_id` is derived from it."""
    started: str
    """When the run was first started: ISO 8601, UTC."""
    finished: str | None = None
    """When it last came to its end; null while it runs or after it was killed."""
    stopped: Literal["", "SIGINT", "SIGTERM", "max_cost"] = ""
    """Why the run was ended before every call was settled; empty where it was not."""
    unsettled: int = 0
    """Calls asked for that have neither an answer nor an error, because the run was stopped."""
    repeats: int = 1
    """The most often that a narrative was put to a provider."""
    options: AskOptions | None = None
    """What was asked of search and model last; null for answers from stored payloads."""
    narratives: NarrativesFile
    """The narratives asked last."""
    providers: dict[ProviderName, ProviderCounts] = Field(default_factory=dict)
    """What each provider answered, in the fixed order."""
    answers: int = 0
    """Answers of all providers."""
    citations: int = 0
    """Citations of all answers."""
    errors: dict[str, int] = Field(default_factory=dict)
    """Calls in `errors.jsonl` by kind."""
    cost: float = 0.0
    """Known cost of all answers; those that a provider counts as `unpriced` are left out."""


def describe_file(narratives: Path, rows: int) -> NarrativesFile:
    """What the manifest keeps of the narratives' file: no path, which may name a person."""
    with open(narratives, "rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    return NarrativesFile(file=narratives.name, sha256=digest, rows=rows)


def csv_file(out: Path, provider: ProviderName) -> Path:
    """The provider's CSV v2 in the run folder."""
    return out / f"{provider}.csv"


@contextmanager
def locked_folder(out: Path, command: str = "pipeline ask") -> Iterator[Path]:
    """The folder, made where it is missing, for this process alone until the block ends or the process does.

    Raises:
        OutputError: `out` is a file, cannot be made, or another process is writing to it.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise OutputError(f"{str(out)!r} is not a folder, and none can be made there; name another one.") from error
    if sys.platform == "win32":  # no fcntl there; a second process on the same folder is on its own
        yield out
        return
    import fcntl

    descriptor = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise OutputError(
            f"Another `{command}` is writing to {str(out)!r}; wait for it or name another folder."
        ) from error
    try:
        yield out
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise OutputError(
            f"{str(out)!r} cannot be written to: {error.strerror}. Mend that and give the same command again; "
            "what was answered before is kept."
        ) from error
    finally:
        os.close(descriptor)


def open_manifest(out: Path, narratives: NarrativesFile, version: str, now: str) -> RunManifest:
    """The manifest of the run in this folder; a new one, not yet written, where the folder is empty.

    What a killed run left half-written beside its files is removed.

    Raises:
        OutputError: the folder holds something else.
    """
    leftovers = [path for path in out.iterdir() if path.name.startswith(".") and path.name.endswith(".part")]
    if (out / MANIFEST).is_file():
        manifest = read_manifest(out)
    elif len(leftovers) == len(list(out.iterdir())):
        manifest = RunManifest(version=version, run_id=str(uuid4()), started=now, narratives=narratives)
    else:
        raise OutputError(
            f"{str(out)!r} is not empty and holds no `{MANIFEST}` of a run; name another folder with `--out`."
        )
    for path in leftovers:
        path.unlink()
    return manifest


def read_manifest(out: Path) -> RunManifest:
    """The manifest in the folder.

    Raises:
        OutputError: it is not a manifest of a run.
    """
    try:
        return RunManifest.model_validate_json((out / MANIFEST).read_bytes())
    except ValidationError as error:
        raise OutputError(
            f"`{MANIFEST}` in {str(out)!r} is not the manifest of a run; name another folder with `--out`."
        ) from error


def write_manifest(out: Path, manifest: RunManifest) -> None:
    """Nothing; the manifest stands in the folder, whole."""
    with staged_file(out / MANIFEST) as file:
        file.write((json.dumps(manifest.model_dump(), ensure_ascii=False, indent=2) + "\n").encode())


def read_errors(out: Path) -> list[ErrorLine]:
    """The errors so far; a line torn by a kill is passed over, for its call is asked again.

    Raises:
        OutputError: a line before the last is not one of ours.
    """
    path = out / ERRORS
    if not path.is_file():
        return []
    lines = path.read_bytes().split(b"\n")
    errors = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            errors.append(ErrorLine.model_validate_json(line))
        except ValidationError as error:
            if number == len(lines):
                break
            raise OutputError(
                f"`{ERRORS}` in {str(out)!r}, line {number} is not an error of a run; remove it."
            ) from error
    return errors


def append_error(out: Path, error: ErrorLine) -> None:
    """Nothing; the error stands at the end of the file."""
    with open(out / ERRORS, "ab") as file:
        file.write(error_bytes(error))


def write_errors(out: Path, errors: Iterable[ErrorLine]) -> None:
    """Nothing; the file holds exactly these errors."""
    with staged_file(out / ERRORS) as file:
        for error in errors:
            file.write(error_bytes(error))
