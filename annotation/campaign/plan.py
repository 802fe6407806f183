"""Records, hours or a difference to be found in; which narratives to judge, how long it takes and what it finds out.

Source: annotation/contracts/planning.md.
"""

import csv
import hashlib
import io
import math
import os
import shutil
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations, product
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Literal, NamedTuple
from uuid import uuid4

from pydantic import Field

from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.campaign.file import Campaign
from annotation.campaign.hours import FEWEST_TIMED, Jury, Times, votes_of_answers
from annotation.campaign.narratives import (
    ALL,
    Draw,
    PlannedNarrative,
    PlannedRecord,
    Population,
    Stratification,
    draw,
    stratifications,
)
from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import staged_file
from pipeline.core.schema import Frozen
from pipeline.core.sentences import sentences
from pipeline.core.tables import Table, spreadsheet_cell
from pipeline.core.terminal import counted

_say = sentences(__file__)


class Hours(Frozen):
    """Hours of work of all annotators together."""

    low: float = Field(ge=0)
    """Nine of ten campaigns or more end between this and `high`, if those whose pace was measured do the rest."""
    expected: float = Field(ge=0)
    """What is to be expected."""
    high: float = Field(ge=0)
    """See `low`."""


class PlannedPace(Frozen):
    """How long one task takes in one language."""

    task: TaskName
    """The task."""
    language: str
    """Language of the questions."""
    units: int
    """Units of the sample."""
    judgements: int
    """Submissions that they wait for."""
    seconds: float
    """Expected seconds a submission."""
    basis: Literal["measured", "assumed"]
    """`measured` in this task, or `assumed` from reading speed and the texts' lengths alone."""
    timed: int
    """How many units of the task were timed, of all languages."""
    annotators: int
    """How many people worked on these."""


class Stratum(Frozen):
    """One part of the narratives, from which some are drawn."""

    stratum: str
    """Language and type of the narratives, the language, or `all`."""
    narratives: int
    """How many there are."""
    sampled: int
    """How many of them are in the sample."""
    inclusion_probability: float
    """How likely each of them was to be drawn."""


class Plan(Frozen):
    """What `plan.json` holds."""

    version: Literal[1] = 1
    """Version of this form."""
    seed: int
    """Seed of the sample."""
    units: dict[TaskName, int]
    """Units of the sample by task."""
    judgements: int
    """Submissions that they wait for, of all annotators together."""
    hours: Hours
    """How long these take."""
    detectable_difference: float | None
    """The smallest difference between two providers' rates that a single planned comparison finds with power .8; None
    where there is none."""
    detectable_corrected: float | None
    """The same after a correction for all `comparisons` of a report, without which nothing there stands out."""
    comparisons: int
    """Comparisons of a report: all pairs of providers on all labels and on a finding."""
    shared_narratives: float
    """Narratives that two providers share, on average over pairs, as many as unequal probabilities leave."""
    narratives: int
    """Narratives in the sample."""
    records: int
    """Answers in the sample."""
    all_narratives: int
    """Narratives in the records that were given."""
    all_records: int
    """Answers in them."""
    overlap: dict[TaskName, int]
    """How many annotators a unit of production waits for."""
    calibration: dict[str, int]
    """Answers that go to calibration, by language; they wait for its overlap instead."""
    paces: tuple[PlannedPace, ...]
    """Seconds, units and submissions by task and language."""
    strata: tuple[Stratum, ...]
    """Where the narratives were drawn."""
    sample_sha256: str
    """Of `sample.csv`."""
    remarks: tuple[str, ...] = ()
    """Plain sentences about what is assumed, and what does not count."""


_POWER = 0.8  # how often the difference is to be found
LEVEL = 0.05  # level of the two-sided test
_MOST_NARRATIVES = 10_000_000


class Likeness(NamedTuple):
    """How much alike votes are, as correlations at a rate of one half; what nobody has measured is assumed."""

    agreement: float = 0.667  # of two votes on a unit
    narrative: float = 0.3  # of votes on two providers' answers to one narrative


ASSUMED = Likeness()


def _finds_difference(
    difference: float, narratives: float, votes: int, comparisons: int = 1, likeness: Likeness = ASSUMED
) -> bool:
    """Whether four of five studies of so many narratives find the difference between two rates, both as far from half.

    The mean of the narratives' differences is taken to be normal, and tested as by exchanges: against the
    differences' mean square, with half a step between two means for continuity. The level is divided by `comparisons`.
    """
    apart = (1 + (votes - 1) * likeness.agreement) / votes - likeness.narrative
    variance = (0.5 - difference**2 / 2) * max(0.0, apart)
    level, power = NormalDist().inv_cdf(1 - LEVEL / comparisons / 2), NormalDist().inv_cdf(_POWER)
    needed = level * math.sqrt(narratives * (variance + difference**2)) + power * math.sqrt(narratives * variance)
    return narratives * difference - 1 / votes >= needed


def detectable_difference(
    narratives: float, votes: int, comparisons: int = 1, likeness: Likeness = ASSUMED
) -> float | None:
    """The smallest difference that is found, in thousandths; None where none is."""
    found = bisect_left(
        range(1001), True, key=lambda each: _finds_difference(each / 1000, narratives, votes, comparisons, likeness)
    )
    return found / 1000 if found <= 1000 else None


def _narratives_needed(difference: float, votes: int) -> int:
    """How many narratives that two providers answer find the difference."""
    return bisect_left(range(_MOST_NARRATIVES), True, key=lambda each: _finds_difference(difference, each, votes))


PLAN_FILE, SAMPLE_FILE = "plan.json", "sample.csv"


class PlanOptions(NamedTuple):
    hours: float | None = None  # hours that may be used; None with `power`, or for all narratives
    power: float | None = None  # difference that is to be found; None with `hours`, or for all narratives
    overlap: int | None = None  # how many annotators a unit waits for; None for the campaign's, or one
    seed: int = 0


class PlannedSample(NamedTuple):
    plan: Plan
    sample: bytes


def make_plan(
    population: Population, options: PlanOptions, campaign: Campaign | None = None, times: Times | None = None
) -> PlannedSample:
    """The plan for these records; the same arguments give the same bytes.

    Without hours and difference it is for all narratives. Calibration is counted with the campaign's overlap there.
    """
    jury = Jury(population, campaign, options.overlap, times or {})
    votes = votes_of_answers(jury.overlap)
    ways = list(stratifications(population.narratives, options.seed))
    strata, number = _sample(ways, population, jury, options, votes)
    draws = draw(strata, number)
    sample = _sample_csv(draws)
    records = [record for each in draws for record in each.narrative.records]
    calibrating = jury.calibration(records)
    planned, hours = _planned_paces(records, calibrating, jury)
    calibration = Counter(record.locale for record in records if record.record_uuid in calibrating)
    sizes = [(name, len(strata.members[name]), count) for name, count in strata.sizes(number).items()]
    shared, pairs = _shared(draws)
    comparisons = pairs * (sum(len(LABELS[task]) for task in jury.tasks) + 1)
    plan = Plan(
        seed=options.seed,
        units={task: sum(each.units for each in planned if each.task == task) for task in jury.tasks},
        judgements=sum(each.judgements for each in planned),
        hours=hours,
        detectable_difference=detectable_difference(shared, votes),
        detectable_corrected=detectable_difference(shared, votes, comparisons or 1),
        comparisons=comparisons,
        shared_narratives=round(shared, 1),
        narratives=number,
        records=len(records),
        all_narratives=len(population.narratives),
        all_records=len(population.records),
        overlap=jury.overlap,
        calibration=dict(sorted(calibration.items())),
        paces=planned,
        strata=[
            Stratum(stratum=name, narratives=size, sampled=count, inclusion_probability=count / size)
            for name, size, count in sizes
        ],
        sample_sha256=hashlib.sha256(sample).hexdigest(),
    )
    remarks = _remarks(plan, population, options, is_coarser=strata is not ways[0])
    return PlannedSample(plan.model_copy(update={"remarks": tuple(remarks)}), sample)


def _sample(
    ways: Sequence[Stratification], population: Population, jury: Jury, options: PlanOptions, votes: int
) -> tuple[Stratification, int]:
    """The finest way to divide the narratives of which the sample has one each, and how many the sample has."""
    hours, wanted, everything = options.hours, options.power, len(population.narratives)
    if hours is not None:
        for strata in ways:
            number = narratives_within(strata, hours, jury.hours_of)
            if number >= len(strata.members):
                return strata, number
        each = sum(jury.hours_of(narrative, 1.0) for narrative in population.narratives) / everything
        raise InputError(_say("few_hours", hours=hours, one=each))
    if wanted is None:
        return ways[0], everything
    there, pairs = _shared(draw(ways[-1], everything))
    if not pairs:
        raise InputError(f"`--power {wanted:g}` compares two providers, and the records name {_providers(population)}.")
    if not _finds_difference(wanted, there, votes):
        raise InputError(_say("too_few", points=100 * wanted, needed=_narratives_needed(wanted, votes), there=there))
    for strata in ways:
        sizes = range(len(strata.members), everything)
        place = bisect_left(sizes, True, key=lambda n: _finds_difference(wanted, _shared(draw(strata, n))[0], votes))
        if place:
            break
    return strata, len(strata.members) + place


def narratives_within(strata: Stratification, hours: float, taking: Callable[[PlannedNarrative, float], float]) -> int:
    """How many narratives fit into the hours on average, where each takes what `taking` says.

    The number does not depend on which narratives are drawn, so that every narrative keeps its probability.
    """
    everything = len(strata.turns)

    def takes(number: int) -> float:
        part, sizes = number / everything, strata.sizes(number)
        return sum(size * fmean(taking(each, part) for each in strata.members[name]) for name, size in sizes.items())

    return bisect_left(range(1, everything + 1), True, key=lambda number: takes(number) > hours)


def _providers(population: Population) -> str:
    return counted(len({record.provider for record in population.records} - {""}), "provider")


def _shared(draws: Sequence[Draw]) -> tuple[float, int]:
    """How many narratives two providers share, on average over pairs, and the pairs.

    That is as many of equal weight as tell as much: (Σw)² ÷ Σw², w being 1 ÷ probability (Kish 1965).
    """
    weights: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for place, each in enumerate(draws):
        for provider in {record.provider for record in each.narrative.records} - {""}:
            weights[provider][place] = 1 / each.probability
    told = []
    for a, b in combinations(sorted(weights), 2):
        common = [weights[a][place] for place in weights[a].keys() & weights[b].keys()]
        told.append(math.fsum(common) ** 2 / math.fsum(each**2 for each in common) if common else 0.0)
    return (fmean(told), len(told)) if told else (0.0, 0)


def _planned_paces(
    records: Sequence[PlannedRecord], calibrating: Collection[str], jury: Jury
) -> tuple[tuple[PlannedPace, ...], Hours]:
    """And how long all of it takes; all paces are taken to be too long or too short together."""
    found = []
    low = expected = high = 0.0
    for task, locale in product(jury.tasks, sorted(jury.locales)):
        pace = jury.paces[task]
        loads = [(record.record_uuid, record.loads[task]) for record in records if record.locale == locale]
        units = sum(load.units for _, load in loads)
        early = sum(load.units for record_uuid, load in loads if record_uuid in calibrating)
        if not units:
            continue
        each = PlannedPace(
            task=task,
            language=locale,
            units=units,
            judgements=early * jury.judges_calibration(locale) + (units - early) * jury.overlap[task],
            seconds=round(sum(load.seconds for _, load in loads) / units * pace.factor, 1),
            basis="measured" if pace.timed else "assumed",
            timed=pace.timed,
            annotators=pace.annotators,
        )
        found.append(each)
        hours = each.judgements * each.seconds / 3600
        low, expected, high = low + hours / pace.spread, expected + hours, high + hours * pace.spread
    return tuple(found), Hours(low=round(low, 2), expected=round(expected, 2), high=round(high, 2))


def _sample_csv(draws: Sequence[Draw]) -> bytes:
    """Cells that a spreadsheet would run begin with an apostrophe."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("record_uuid", "narrative_id", "stratum", "inclusion_probability"))
    for each in draws:
        for record in each.narrative.records:
            told = (record.record_uuid, each.narrative.narrative_id, each.stratum, repr(each.probability))
            rows.writerow([spreadsheet_cell(cell) for cell in told])
    return text.getvalue().encode("utf-8", "surrogatepass")


def _remarks(plan: Plan, population: Population, options: PlanOptions, is_coarser: bool) -> Iterator[str]:
    if options.hours is not None and plan.hours.expected > options.hours:
        yield _say("more_hours", hours=options.hours)
    if options.hours is not None and plan.narratives == plan.all_narratives and plan.hours.expected < options.hours:
        yield f"All narratives are in, and take less than the {options.hours:g} hours given."
    if is_coarser:
        kept = "by language only" if plan.strata[0].stratum != ALL else "neither by language nor by type"
        yield f"The narratives are divided {kept}: so few do not fill all languages and types."
    guessed = sorted({each.task for each in plan.paces if each.basis == "assumed"}, key=TASKS.index)
    if guessed:
        yield _say("assumed", tasks=", ".join(guessed), fewest_timed=FEWEST_TIMED)
    if any(plan.calibration.values()):
        told = ", ".join(f"{locale} {count:,}" for locale, count in plan.calibration.items())
        yield f"Answers in calibration, counted with its overlap: {told}."
    if not plan.comparisons:
        yield f"The records name {_providers(population)}, so there is no difference to be found between two."
    if population.repeated:
        yield f"Counted once though there more than once: {counted(population.repeated, 'record')}."
    if population.nameless:
        yield f"Told apart by their queries: {counted(population.nameless, 'narrative')} without an id."


def check_plan_folder(folder: Path) -> None:
    """Raise OutputError for a folder that holds anything: a plan in use must not change under its study."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise OutputError(f"`{folder}` is a file. Name a new folder for the plan.")
    if folder.is_dir() and any(folder.iterdir()):
        held = "holds a plan already" if (folder / PLAN_FILE).exists() else "is not empty"
        raise OutputError(f"`{folder}` {held}. Name a new folder for this one.")


def write_plan(planned: PlannedSample, folder: Path) -> None:
    """Write `plan.json` and `sample.csv`; the folder appears with both, or not at all."""
    check_plan_folder(folder)
    target = folder.absolute()
    work = target.with_name(f".{target.name}.{uuid4().hex}.part")
    files = {SAMPLE_FILE: planned.sample, PLAN_FILE: planned.plan.model_dump_json(indent=2).encode() + b"\n"}
    try:
        for name, content in files.items():
            with staged_file(work / name) as file:
                file.write(content)
        os.replace(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def plan_lines(plan: Plan) -> Iterator[str]:
    whole = "all" if plan.narratives == plan.all_narratives else f"of {plan.all_narratives:,}"
    yield f"{counted(plan.narratives, 'narrative')} ({whole}) with {counted(plan.records, 'answer')}"
    yield ""
    heading = ("task", "language", "units", "judgements", "seconds", "hours", "pace")
    rows = [
        (
            *(each.task, each.language, f"{each.units:,}", f"{each.judgements:,}", f"{each.seconds:.0f}"),
            f"{each.judgements * each.seconds / 3600:,.1f}",
            f"{each.basis} ({each.timed})" if each.timed else each.basis,
        )
        for each in sorted(plan.paces, key=lambda each: (TASKS.index(each.task), each.language))
    ]
    units = f"{sum(plan.units.values()):,}"
    total = ("together", "", units, f"{plan.judgements:,}", "", f"{plan.hours.expected:,.1f}", "")
    yield Table([heading, *rows, total], left=2).terminal()
    yield ""
    hours = plan.hours
    yield f"Hours of all annotators together: {hours.expected:,.1f} (from {hours.low:,.1f} to {hours.high:,.1f})"
    if plan.comparisons:
        votes = votes_of_answers(plan.overlap)
        yield f"Difference between two providers found with power .8: {_shown(plan.detectable_difference)}"
        yield f"  corrected for all {plan.comparisons:,} comparisons of a report: {_shown(plan.detectable_corrected)}"
        yield f"  two-sided .05, rates around .5, paired on {plan.shared_narratives:,.0f} narratives"
        needed = "; of ".join(f"{100 * d:g}: {_narratives_needed(d, votes):,}" for d in (0.2, 0.1, 0.05))
        yield f"  for a difference of {needed.replace(':', ' points:', 1)} narratives"


def people_lines(plan: Plan, campaign: Campaign) -> Iterator[str]:
    """How many hours each person has if all do the same, and where a unit waits for more people than there are."""
    hours: defaultdict[str, float] = defaultdict(float)
    for each in plan.paces:
        jury = campaign.jury(each.language)
        for person in jury:
            hours[person.name] += each.judgements * each.seconds / 3600 / len(jury)
        if (votes := plan.overlap[each.task]) > len(jury):
            few = f"{len(jury)} of the campaign {'labels' if len(jury) == 1 else 'label'} in {each.language!r}"
            yield f"! {each.task} waits for {counted(votes, 'annotator')}, and {few}: name more, or lower `overlap`."
    told = ", ".join(f"{name} {taken:,.1f}" for name, taken in hours.items())
    yield f"Hours of each person, if all do as much: {told}"


def _shown(difference: float | None) -> str:
    return "none" if difference is None else f"{100 * difference:.1f} points"
