"""What of a wave can be done now, command by command, and what it waits for then."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.client import Argilla, open_argilla
from annotation.campaign.file import Campaign, read_campaign
from annotation.campaign.routing import standing_workspaces
from annotation.quality.schema import Status
from annotation.quality.summary import read_status
from exports.adjudicate.adjudication import ROUND, adjudication_workspace, find_homes
from exports.reading.read import export_files, read_tables
from exports.reading.study import read_weights
from exports.report.sections import REPORT_FILE
from exports.statistics.disagreements import find_disagreements
from exports.study.file import CommandFailedError, StudyFile, Wave, Words, command_words, has_adjudicators, people_of
from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.run_folder import MANIFEST, read_errors, read_manifest
from pipeline.core.errors import CitejuryError
from pipeline.core.files import sha256_of
from pipeline.core.terminal import counted
from pipeline.settings import Settings, read_settings

WAITS = 3  # the exit code where people are needed
_SHOWN = 20  # units that are named


class Incomplete(NamedTuple):
    said: str
    as_is: str
    next_step: str
    exit_code: int = 0


def work_at(
    study: StudyFile,
    wave: Wave,
    run: Callable[[Words], None],
    as_is: bool = False,
    tell: Callable[[str], object] = lambda line: None,
) -> Incomplete | None:
    """Do all that can be done for a wave now; what it waits for then, None where it has its results.

    Killed at any moment and called again, it goes on: a sample that is there ends the asking, results of all work end
    the wave, and every command before them may be given again. With `as_is` it waits neither for calls that failed nor
    for people. `run` raises what stops the wave, `CommandFailedError` where only the exit code says so.
    """
    campaign = people_of(study)
    if wave.finished:
        why = _opens_again(wave, campaign, _status_of(wave, campaign))
        if not why:
            return None
        tell(f"{wave.name} opens again, as its report is interim: {why}.")
    if unasked := _sample(study, wave, run, as_is):
        return unasked
    run(command_words(study, "setup", wave))
    run(command_words(study, "push", wave))
    run(command_words(study, "share", wave))
    status = _status_of(wave, campaign)
    if _waited_for(status) and not as_is:
        return _people_needed(wave, status, "send each annotator their sheet in `sheets`")
    if not any(each.done for each in status.datasets):
        said = f"{wave.name}: nobody has submitted anything, and nobody is waited for: there is nothing to report."
        return Incomplete(said, "", "name further annotators in citejury.toml; the same command goes on")
    for line in _closed(wave, status):
        tell(line)
    run(command_words(study, "csv", wave))
    incomplete = _settle(study, wave, campaign, run, as_is)
    if incomplete is None:
        run(command_words(study, "results", wave))
    return incomplete


def _sample(study: StudyFile, wave: Wave, run: Callable[[Words], None], as_is: bool) -> Incomplete | None:
    """Ask and draw the sample, where there is none; why not, if it cannot."""
    if _takes_added(study, wave) and _added_narratives(study, wave):
        earlier = len(list(wave.path.glob("plan-*")))
        wave.sample.parent.rename(wave.path / f"plan-{earlier + 1}")
    if wave.sample.exists():
        return None
    try:
        run(command_words(study, "ask", wave))
    except CommandFailedError:
        if not (wave.answers / MANIFEST).is_file() or not (as_is or _is_incomplete(wave)):
            raise
    wanting = _unanswered(wave, as_is)
    if wanting:
        return Incomplete(wanting, "`--as-is` takes the answers that are there.", "the same command goes on", 1)
    run(command_words(study, "sources", wave))
    run(command_words(study, "plan", wave))
    return None


def _opens_again(wave: Wave, campaign: Campaign | None, status: Status) -> str:
    """What changed since an interim report was written, in words; empty where nothing did."""
    told = wave.work.values()
    wanting, nobody = sum(each.wanting for each in told), sum(each.nobody_left for each in told)
    if not wave.interim or not any(each.records for each in status.datasets):  # it may be in Argilla no longer
        return ""
    if status.needed < wanting:
        return f"{counted(wanting - status.needed, 'submission')} came in"
    if status.needed > wanting:
        return f"{counted(status.needed - wanting, 'more submission')} are wanted"
    members = {each.annotator for each in status.annotators if each.is_member}
    jury = (each.name for locale in campaign.locales for each in campaign.jury(locale)) if campaign else ()
    if new := sorted(set(jury) - members):
        return f"{', '.join(new)} may answer now"
    left = nobody - sum(each.unreachable for each in status.datasets)
    return f"somebody may answer {counted(left, 'further unit')} now" if left > 0 else ""


def _added_narratives(study: StudyFile, wave: Wave) -> list[str]:
    """The ids of narratives that came into the file after the wave's sample was drawn."""
    narratives = Path(study.narratives)
    if not (wave.sample.exists() and wave.records.exists() and (wave.answers / MANIFEST).is_file()):
        return []
    asked = read_manifest(wave.answers).narratives
    if sha256_of(narratives) == asked.sha256:
        return []
    given = {option.name: option.values[0] for option in study.options.get("ask", ()) if option.values}
    columns = given.get("id-column", "narrative_id"), given.get("text-column")
    found = NarrativesCsv(narratives, *columns, given.get("encoding", asked.encoding), given.get("sheet", ""))
    rows = islice(found, int(given["max-rows"]) if "max-rows" in given else None)
    with wave.records.open(encoding="utf-8") as lines:
        known = {json.loads(line)["provenance"].get("narrative_id") for line in lines}
    known |= {each.narrative_id for each in read_errors(wave.answers)}
    return list(dict.fromkeys(each.narrative_id for each in rows if each.narrative_id not in known))


def added_said(study: StudyFile, wave: Wave) -> str:
    """How many these are, their names and what includes them, in sentences; empty where there are none."""
    added = _added_narratives(study, wave)
    if not added:
        return ""
    names = ", ".join(added[:_SHOWN]) + ", …" * (len(added) > _SHOWN)
    if wave.month:
        how = "The next month asks them; this one stays as it was drawn."
    elif _takes_added(study, wave):
        how = "`citejury study run` asks them and adds them to the sample."
    else:
        gone = f"`{wave.sample.parent}`" + f" and `{wave.results}`" * wave.finished
        how = f"They are not asked. Move {gone} elsewhere, and `citejury study run` asks them and draws a new sample."
    return f"{counted(len(added), 'narrative')} came into {study.narratives} after the sample: {names}. {how}"


def _takes_added(study: StudyFile, wave: Wave) -> bool:
    """Whether a sample drawn anew holds the one that is there, as it is of everything, and nothing rests on it."""
    return not (wave.month or wave.finished or any(study.gives("plan", name) for name in ("hours", "power")))


def _is_incomplete(wave: Wave) -> bool:
    told = read_manifest(wave.answers)
    return bool(told.unsettled or (told.last and told.last.missing))


def _unanswered(wave: Wave, as_is: bool) -> str:
    """Why the asking is not at its end, in a sentence; empty where it is."""
    told = read_manifest(wave.answers)
    if told.stopped == "max_cost":
        left = counted(told.unsettled, "call")
        needed = "a price in citejury.toml" if told.last and told.last.priceless else "a higher one in `[ask]`"
        return "" if as_is else f"{wave.name}: asking stopped at `max-cost`, with {left} left; {needed} lets it go on."
    if told.finished is None or told.stopped or told.unsettled:
        return f"{wave.name}: not every call is answered yet."
    errors = told.last.errors if told.last else told.errors  # not those of calls that nobody asks for any more
    # These two the same command does not ask again by itself.
    failed = {kind: count for kind, count in errors.items() if kind not in ("bad_response", "not_recorded")}
    if failed and not as_is:
        kinds = ", ".join(f"{count} {kind}" for kind, count in failed.items())
        return f"{wave.name}: {counted(sum(failed.values()), 'call')} failed ({kinds}) and may succeed later."
    return ""


def steps_of(study: StudyFile, wave: Wave) -> list[tuple[str, str]]:
    """Each step of the wave with how far it is; empty for one that has not begun.

    Argilla is looked at where annotators are to be at work; what keeps it from answering stands for how far they are.
    """
    answers = read_manifest(wave.answers) if (wave.answers / MANIFEST).is_file() else None
    failed = sum(answers.errors.values()) if answers else 0
    kept = sum(each.answers for each in answers.providers.values()) if answers else 0
    asked = [f"{counted(kept, 'answer')}", *([f"{failed:,} failed"] if failed else [])]
    settled = _unanswered(wave, as_is=True).partition(": ")[2] if answers else ""
    sampled = len(read_weights(wave.sample, ()).sampled) if wave.sample.exists() else None
    people = again = ""
    if wave.sample.exists() and (wave.interim or not wave.finished):
        try:
            campaign = people_of(study)
            status = _status_of(wave, campaign)
        except CitejuryError as error:
            people = f"not known: {error}"
        else:
            done, units = (
                sum(getattr(each, name) for each in status.datasets) for name in ("overlap_reached", "records")
            )
            people = f"{done:,} of {counted(units, 'unit')} done"
            people += f"; waits for {_people_words(status)}" if _waited_for(status) else ""
            nobody = status.needed - _waited_for(status)
            people += f"; nobody is left for {counted(nobody, 'submission')}" if nobody else ""
            why = _opens_again(wave, campaign, status)
            again = f"; opens again: {why}" if why else ""
    steps = {
        "ask": ", ".join([*asked, *filter(None, [settled])]) if answers else "",
        "sources": "read" if wave.records.exists() else "",
        "plan": "" if sampled is None else f"{counted(sampled, 'answer')} in the sample",
        "people": people or "done" * wave.finished,
        "settle": "decisions of adjudicators are there" if wave.decisions.exists() else "",
        "results": f"{wave.results / REPORT_FILE}{wave.interim}{again}" if wave.finished else "",
    }
    if not has_adjudicators(read_campaign()):
        del steps["settle"]
    return list(steps.items())


def _status_of(wave: Wave, campaign: Campaign | None) -> Status:
    """How far the annotators are."""

    def places(argilla: Argilla, settings: Settings) -> Sequence[str]:
        return standing_workspaces(argilla, campaign, settings.workspace)

    return _status(places, (wave.month,) if wave.month else (), campaign)


def _status(
    places: Callable[[Argilla, Settings], Sequence[str]], rounds: Sequence[str], campaign: Campaign | None
) -> Status:
    settings = read_settings()
    languages = campaign.labelled_languages if campaign else {}
    with open_argilla(settings) as argilla:
        where = places(argilla, settings)
        return read_status(argilla, where, datetime.now(UTC), rounds=rounds, languages=languages)


def _waited_for(status: Status) -> int:
    """Submissions for which there is somebody, once they have passed their practice."""
    return status.reachable + sum(each.kept_out for each in status.datasets)


def _people_words(status: Status) -> str:
    """Who has how many units to do, such as `anna 12, ben 3`."""
    return ", ".join(f"{each.annotator} {each.pending:,}" for each in status.annotators if each.pending)


def _people_needed(wave: Wave, status: Status, step: str) -> Incomplete:
    nobody = status.needed - _waited_for(status)
    left = f" For {nobody:,} of them nobody is left who may give it." if nobody else ""
    said = (
        f"{wave.name}: people are needed: {counted(sum(each.pending for each in status.datasets), 'unit')} wait for "
        f"{counted(status.needed, 'submission')} ({_people_words(status)}).{left}"
    )
    following = f"{step}; when they are done, the same command goes on"
    return Incomplete(said, "`--as-is` takes the labels that are there.", following, WAITS)


def _closed(wave: Wave, status: Status) -> list[str]:
    """What nobody is left for, in lines; none where everything was labelled."""
    stuck = [f"  {each.task} {unit}" for each in status.datasets for unit in each.stuck]
    if not status.needed:
        return []
    more = [f"  … and {len(stuck) - _SHOWN:,} more; `citejury annotation status --json` has all"] * (
        len(stuck) > _SHOWN
    )
    said = f"{wave.name} closes without {counted(status.needed, 'submission')}, and its report is interim."
    return [
        said,
        *(["Nobody is left who may answer these units:"] if stuck else []),
        *stuck[:_SHOWN],
        *more[: len(stuck) > _SHOWN],
    ]


def _settle(
    study: StudyFile, wave: Wave, campaign: Campaign | None, run: Callable[[Words], None], as_is: bool
) -> Incomplete | None:
    """Bring back what adjudicators decided, where there are some; what they are waited for."""
    if not has_adjudicators(campaign) or not any(
        find_disagreements(ratings, ()) for ratings in read_tables(export_files([wave.export])).tables
    ):
        return None
    run(command_words(study, "adjudicate", wave))

    def places(argilla: Argilla, settings: Settings) -> list[str]:
        homes = [each for each in find_homes(argilla, campaign, settings.workspace) if each.adjudicators]
        votes = study.gives("adjudicate", "votes")
        return [adjudication_workspace(home.workspace, "votes" if votes else "blind") for home in homes]

    status = _status(places, (ROUND,), campaign)
    if _waited_for(status) and not as_is:
        return _people_needed(wave, status, "tell the adjudicators that there is something to settle")
    run(command_words(study, "decisions", wave))
    return None
