"""The run folder: who may write to it, its manifest and errors, and how a run that was begun in it goes on.

Source: pipeline/contracts/run_folder.md#resuming.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import UUID, uuid4

from pydantic import Field, ValidationError

from pipeline.asking.index import IndexLine, begin_packed, cited_urls, pack_file, sync_index, whole_ids
from pipeline.asking.narratives import NarrativesFile
from pipeline.asking.questions import Arm, ArmAsked, Call, Questions, Tell, plan_calls, what_changed
from pipeline.asking.run_state import LastStart
from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import read_records, staged_file, time_now
from pipeline.core.lines import PACKED, is_packed
from pipeline.core.prompts import DEFAULT_PROMPTS, PromptsAsked
from pipeline.core.schema import PROVIDERS, AskOptions, ErrorLine, Frozen, ProviderName
from pipeline.csv.file import answers_file, error_bytes, read_answers
from pipeline.csv.rows import find_place

MANIFEST = "manifest.json"
ERRORS = "errors.jsonl"


class ProviderCounts(Frozen):
    """What one provider answered in this run."""

    model_asked: str = ""
    """The model asked for by option or setting; empty where the payloads alone tell, or arms name theirs."""
    models_answered: dict[str, int] = Field(default_factory=dict)
    """Answers by `model_version`."""
    answers: int = 0
    """Answers in the provider's CSV."""
    citations: int = 0
    """Distinct cited URLs of each answer, summed."""
    cut_short: dict[str, int] = Field(default_factory=dict)
    """Answers that were truncated, refused or blocked, by the provider's own reason."""
    unread: dict[str, int] = Field(default_factory=dict)
    """What looks like a citation in the answers and is none, counted: the provider's own tokens that were cut from
    texts, citations that are no URL, marks without a source, sources that an answer's own list contradicts, and fields
    that no rule reads."""
    input_tokens: int = 0
    """Tokens that went in, as the bodies state them; those of search results and of caches included."""
    output_tokens: int = 0
    """Tokens that came out, as the bodies state them, thinking included."""
    searches: int = 0
    """Web searches that the bodies count or list."""
    cost: float = 0.0
    """What all that cost as far as it is known: stated by the body, else by the price table of the settings."""
    unpriced: int = 0
    """Answers, bad replies and paused bodies whose cost is not known, and which `cost` leaves out."""
    bad_replies: int = 0
    """Replies that were paid for and cannot be read, those of calls put again included; tokens and cost count them."""
    paused_bodies: int = 0
    """Bodies of paused turns that no answer holds, of turns begun anew included; tokens and cost count them."""


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
    stopped: Literal["", "SIGINT", "SIGTERM", "max_cost", "batch"] = ""
    """Why the run was ended before every call was settled, `batch` where batches were ended or could not be collected;
    empty where it was not."""
    unsettled: int = 0
    """Calls asked for that have neither an answer nor an error, because the run was stopped."""
    repeats: int = 1
    """The most often that a narrative was put to a provider."""
    options: AskOptions | None = None
    """What was asked of search and model last; null for answers from stored payloads."""
    prompts: PromptsAsked | None = None
    """Prompts of the calls without an arm; null where every call has one, and in old folders, which had the default."""
    arms: dict[str, ArmAsked] = Field(default_factory=dict)
    """The arms by name, in the order in which they were first asked."""
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
    """Known cost of all that was paid for, in USD; what a provider counts as `unpriced` is left out."""
    last: LastStart | None = None
    """What the last start did; null where it did not come to its end."""

    def asked_arms(self) -> dict[str, ArmAsked]:
        """Every way in which calls of the run were put, that without an arm under an empty name."""
        prompts = self.prompts or PromptsAsked.of(DEFAULT_PROMPTS)  # old runs had these
        return ({} if self.prompts is None and self.arms else {"": ArmAsked(prompts=prompts)}) | self.arms

    def model_of(self, line: IndexLine, provider: ProviderName) -> str:
        question = (provider, line.narrative_id, line.prompt)
        place = find_place(line.answer_id, question, self.run_id, self.repeats, tuple(self.arms)) if self.arms else None
        if place and place.arm:
            return self.arms[place.arm].models.get(provider, "")
        return self.providers.get(provider, ProviderCounts()).model_asked


def read_manifest(out: Path) -> RunManifest:
    """The manifest in the folder; an OutputError where it is none of a run."""
    try:
        return RunManifest.model_validate_json((out / MANIFEST).read_bytes())
    except ValidationError as error:
        raise OutputError(
            f"`{MANIFEST}` in {str(out)!r} is not the manifest of a run; name another folder with `--out`."
        ) from error


def begun_run(out: Path) -> RunManifest | None:
    return read_manifest(out) if (out / MANIFEST).is_file() else None


def write_manifest(out: Path, manifest: RunManifest) -> None:
    with staged_file(out / MANIFEST) as file:
        file.write((json.dumps(manifest.model_dump(), ensure_ascii=False, indent=2) + "\n").encode())


def read_errors(out: Path) -> list[ErrorLine]:
    """The errors so far; a line torn by a kill is passed over, for its call is asked again."""
    return [error for error, _ in read_records(out / ERRORS, ErrorLine, "an error of a run; remove it.")]


def write_errors(out: Path, errors: Iterable[ErrorLine]) -> None:
    with staged_file(out / ERRORS) as file:
        file.writelines(map(error_bytes, errors))


class OpenRun(NamedTuple):
    """A run that may go on: its folder, manifest and questions, and the ids of the calls that are answered."""

    out: Path
    manifest: RunManifest
    questions: Questions
    answered: Mapping[ProviderName, set[str]]

    def every_call(self, provider: ProviderName) -> Iterator[Call]:
        """Every call that may ever have been put to the provider in this run, in order; made one by one."""
        manifest = self.manifest
        arms = [_arm_of(name, asked) for name, asked in manifest.asked_arms().items()]
        return plan_calls(manifest.run_id, provider, self.questions.narratives, arms, manifest.repeats)


def open_run(out: Path, questions: Questions, compress: bool = False, tell: Tell = lambda line: None) -> OpenRun:
    """Open the run in this folder, a new one or one to go on with, and note in its manifest that it is not finished.

    What a killed run left half-written is removed. With `compress`, or where some are so already, answers are kept
    under zstd from now on, those that are there too. Raises OutputError where the folder holds something else,
    InputError where its answers are to other narratives or prompts, of another model, or damaged.
    """
    leftovers = [path for path in out.iterdir() if path.name.startswith(".") and path.name.endswith(".part")]
    if (out / MANIFEST).is_file():
        manifest = read_manifest(out)
    elif len(leftovers) == len(list(out.iterdir())):
        manifest = _new_manifest(questions, questions.run_id or str(uuid4()))
    else:
        raise OutputError(
            f"{str(out)!r} is not empty and holds no `{MANIFEST}` of a run; name another folder with `--out`."
        )
    for path in leftovers:
        path.unlink()
    manifest = manifest.model_copy(update={"repeats": max(manifest.repeats, questions.repeats)})
    for provider in PROVIDERS:  # a kill may have left a packed copy beside the plain file, which its index still fits
        plain, packed = out / f"{provider}.csv", out / f"{provider}.csv{PACKED}"
        if packed.is_file() and plain.is_file() and cited_urls(plain):
            packed.unlink()
    answered = {provider: sync_index(answers_file(out, provider), tell) for provider in PROVIDERS}
    run = _with_arms(OpenRun(out, manifest, questions, answered))
    manifest = run.manifest
    if compress or any(is_packed(answers_file(out, provider)) for provider in PROVIDERS):
        _pack_answers(run, tell)
    changes = {
        "narratives": questions.narratives.file,
        "finished": None,
        "stopped": "",
        "unsettled": 0,
        "last": None,
        "options": questions.options or manifest.options,
        "providers": _models_asked(manifest, questions),
        "version": version("citejury"),
    }
    manifest = manifest.model_copy(update=changes)
    write_manifest(out, manifest)
    return run._replace(manifest=manifest)


def look_into(out: Path, questions: Questions) -> OpenRun:
    """The run in the folder as it would go on, or a new one; nothing is touched. Errors as `open_run`."""
    if (out / MANIFEST).is_file():
        manifest = read_manifest(out)
    elif out.is_dir() and any(not path.name.startswith(".") for path in out.iterdir()):
        raise OutputError(f"{str(out)!r} is not empty and holds no `{MANIFEST}` of a run; name another `--out`.")
    else:
        manifest = _new_manifest(questions, str(UUID(int=0)))
    manifest = manifest.model_copy(update={"repeats": max(manifest.repeats, questions.repeats)})
    answered = {each: whole_ids(answers_file(out, each)) for each in PROVIDERS}
    return _with_arms(OpenRun(out, manifest, questions, answered))


def _new_manifest(questions: Questions, run_id: str) -> RunManifest:
    return RunManifest(
        version=version("citejury"), run_id=run_id, started=time_now(), narratives=questions.narratives.file
    )


def _pack_answers(run: OpenRun, tell: Tell) -> None:
    for provider in PROVIDERS:
        file = answers_file(run.out, provider)
        if file.is_file() and not is_packed(file):
            tell(f"{file.name}: {len(run.answered[provider]):,} answers are put under zstd.")
            pack_file(file)
        elif not file.is_file() and provider in run.questions.providers:
            begin_packed(file.with_name(file.name + PACKED))


def _arm_of(name: str, asked: ArmAsked) -> Arm:
    return Arm(name, asked.models, asked.prompts, asked.options)


def _with_arms(run: OpenRun) -> OpenRun:
    manifest, earlier = run.manifest, run.manifest.asked_arms()
    arms = dict(earlier) if any(run.answered.values()) else {name: arm for name, arm in earlier.items() if name}
    for arm in run.questions.asked_arms():
        asked = ArmAsked.of(arm) if arm.name else ArmAsked(prompts=PromptsAsked.of(arm.prompts))
        before = earlier.get(arm.name)
        alike = next((name for name in earlier if name != arm.name and name.lower() == arm.name.lower()), None)
        if alike and not before:
            ending = f"from which {arm.name!r} differs only by case. Give the new one another name."
            raise InputError(f"{str(run.out)!r} has an arm {alike!r}, {ending}")
        changed = what_changed(before, asked) if before else ""
        if before and changed and _is_answered(run, _arm_of(arm.name, before)):
            whose = f"of the arm {arm.name!r} that were" if arm.name else "that were"
            advice = "Give the earlier one back, or name another `--out`."
            raise InputError(f"{str(run.out)!r} holds answers {whose} asked for with {changed}. {advice}")
        arms[arm.name] = before.joined(asked) if before and not changed else asked
    plain = arms.pop("", None)
    changes = {"prompts": plain.prompts if plain else None, "arms": arms}
    run = run._replace(manifest=manifest.model_copy(update=changes))
    for provider in PROVIDERS:
        if run.answered[provider]:
            _refuse_others(run, provider)
    return run


def _is_answered(run: OpenRun, arm: Arm) -> bool:
    run_id, repeats, narratives = run.manifest.run_id, run.manifest.repeats, run.questions.narratives
    return any(
        call.answer_id in answered
        for provider, answered in run.answered.items()
        if answered
        for call in plan_calls(run_id, provider, narratives, [arm], repeats)
    )


def _models_asked(manifest: RunManifest, questions: Questions) -> dict[ProviderName, ProviderCounts]:
    known: dict[ProviderName, ProviderCounts] = {}
    models = {} if questions.arms else questions.models
    for provider in PROVIDERS:
        is_asked = provider in questions.providers
        counts = manifest.providers.get(provider, ProviderCounts())
        if is_asked or provider in manifest.providers:
            model = models.get(provider, "") if is_asked else ""
            known[provider] = counts.model_copy(update={"model_asked": model or counts.model_asked})
    return known


def _refuse_others(run: OpenRun, provider: ProviderName) -> None:
    """Refuse narratives that lack one that was answered, and another model, which would mix two in one file."""
    questions = run.questions
    strange = run.answered[provider] - {call.answer_id for call in run.every_call(provider)}
    if strange:
        stored = next(each for each in read_answers(answers_file(run.out, provider)) if each.answer_id in strange)
        line = next((each.line for each in questions.narratives if each.narrative_id == stored.narrative_id), None)
        found = f"has another text now (line {line})" if line else "is no longer among the narratives"
        others = f", and so it is with {len(strange) - 1} more" if len(strange) > 1 else ""
        raise InputError(
            f"{str(run.out)!r} holds answers to other narratives: {stored.narrative_id!r} {found}, it was asked as "
            f"{stored.narrative_prompt[:60]!r}{others}. Give the narratives back as they were, or name another `--out`."
        )
    earlier = run.manifest.providers.get(provider, ProviderCounts()).model_asked
    model = questions.models.get(provider, "")
    if provider in questions.providers and not questions.arms and earlier and model and model != earlier:
        ending = f"and {model!r} is asked for now. Ask with `--model {provider}={earlier}`, or name another `--out`."
        raise InputError(f"{str(run.out)!r} holds answers of {provider} from the model {earlier!r}, {ending}")


def standing_errors(errors: Sequence[ErrorLine], questions: Questions) -> list[ErrorLine]:
    """The earlier errors of calls that are neither put again now nor answered since, the latest of each."""
    arms = {arm.name for arm in questions.asked_arms()}
    latest = {
        (error.provider, error.row, error.arm, error.repeat): error
        for error in errors
        if error.provider not in questions.providers
        or error.arm not in arms
        or error.row > questions.rows()
        or error.repeat > questions.repeats
    }
    rows = {error.row for error in latest.values()}
    # The narratives are read through only where an error needs it: the file may be large.
    narratives = enumerate(questions.narratives, start=1) if rows else ()
    ids = {row: each.narrative_id for row, each in narratives if row in rows}
    return [error for error in latest.values() if ids.get(error.row) == error.narrative_id]
