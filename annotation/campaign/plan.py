"""Records, hours or a difference to be found in; which narratives to judge, how long it takes and what it finds out.

Source: annotation/contracts/planning.md.
"""

import csv
import hashlib
import io
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import uuid4

from pydantic import Field

from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.campaign import power as sample_power
from annotation.campaign.file import Campaign
from annotation.campaign.hours import FEWEST_TIMED, Jury, Work, measured_likeness
from annotation.campaign.narratives import (
    ALL,
    Draw,
    PlannedRecord,
    Population,
    Stratification,
    draw,
    narratives_within,
    stratifications,
)
from annotation.campaign.power import detectable_difference
from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import staged_file
from pipeline.core.schema import Frozen
from pipeline.core.tables import Table, spreadsheet_cell
from pipeline.core.terminal import counted


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
    basis: Literal["measured", "other languages", "assumed"]
    """`measured` in this task and language; in the task's `other languages`, beside what the texts' lengths say; or
    `assumed` from reading speed and lengths alone."""
    timed: int
    """How many units of it were timed."""
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


class Difference(Frozen):
    """What `detectable_difference` rests on."""

    power: float = sample_power.POWER
    """How often a difference of that size is found."""
    level: float = sample_power.LEVEL
    """Level of the two-sided test."""
    share: float = sample_power.SHARE
    """Mean of the two rates."""
    votes: int
    """Votes on each answer."""
    narratives: float
    """Narratives that two providers share, on average over pairs, as many as unequal probabilities leave."""
    pairs: int
    """Pairs of providers."""
    comparisons: int
    """Comparisons of a report: all pairs on all labels and on a finding."""
    agreement: float
    """Correlation of two votes on a unit."""
    narrative_correlation: float
    """Correlation of votes on two providers' answers to one narrative."""
    units_measured: int
    """Units with two votes or more behind `agreement`, which is assumed where there are none."""
    narratives_measured: int
    """Narratives behind `narrative_correlation`, which is assumed where there are none."""


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
    """The same after a correction for all comparisons of a report, without which nothing there stands out."""
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
    difference: Difference | None
    """What the detectable difference rests on; None where nothing can be compared."""
    paces: tuple[PlannedPace, ...]
    """Seconds, units and submissions by task and language."""
    strata: tuple[Stratum, ...]
    """Where the narratives were drawn."""
    sample_sha256: str
    """Of `sample.csv`."""
    remarks: tuple[str, ...] = ()
    """Plain sentences about what is assumed, and what does not count."""


PLAN_FILE, SAMPLE_FILE = "plan.json", "sample.csv"
_LEAST_USE = 0.6  # the share of its hours that a plan uses at least
_WEIGHT_OF_ASSUMED = 20.0  # units or narratives that the assumed correlations count like, beside the measured ones


class PlanOptions(NamedTuple):
    hours: float | None = None  # hours that may be used; None with `power`, or for all narratives
    power: float | None = None  # difference that is to be found; None with `hours`, or for all narratives
    overlap: int | None = None  # how many annotators a unit waits for; None for the campaign's, or one
    seed: int = 0


class PlannedSample(NamedTuple):
    plan: Plan
    sample: bytes


def make_plan(
    population: Population, options: PlanOptions, campaign: Campaign | None = None, work: Work | None = None
) -> PlannedSample:
    """The plan for these records; the same arguments give the same bytes.

    Without hours and difference it is for all narratives. Calibration is counted with the campaign's overlap there.
    """
    jury = Jury(population, campaign, options.overlap, work)
    likeness, counts = sample_power.Likeness(), (0, 0)
    if work:
        found, counts = measured_likeness(
            population, work, (sample_power.AGREEMENT, sample_power.LIKENESS), _WEIGHT_OF_ASSUMED
        )
        likeness = sample_power.Likeness(round(found[0], 3), round(found[1], 3))
    ways = list(stratifications(population.narratives, options.seed))
    strata, number = ways[0], len(population.narratives)
    if options.hours is not None:
        strata, number = _within_hours(ways, population, jury, options.hours)
    elif options.power is not None:
        strata, number = _with_power(ways, population, jury, options.power, likeness)
    draws = draw(strata, number)
    comparable = _comparable(draws, jury, likeness)
    sample = _sample_csv(draws)
    records = [record for each in draws for record in each.narrative.records]
    calibrating = jury.calibration(records)
    planned, hours = _planned_paces(records, calibrating, jury)
    calibration = Counter(record.locale for record in records if record.record_uuid in calibrating)
    sizes = [(name, len(strata.members[name]), count) for name, count in strata.sizes(number).items()]
    plan = Plan(
        seed=options.seed,
        units={task: sum(each.units for each in planned if each.task == task) for task in TASKS},
        judgements=sum(each.judgements for each in planned),
        hours=hours,
        detectable_difference=comparable.detectable(),
        detectable_corrected=comparable.detectable(comparable.comparisons),
        narratives=number,
        records=len(records),
        all_narratives=len(population.narratives),
        all_records=len(population.records),
        overlap=jury.overlap,
        calibration=dict(sorted(calibration.items())),
        difference=_difference(comparable, counts),
        paces=planned,
        strata=[
            Stratum(stratum=name, narratives=size, sampled=count, inclusion_probability=count / size)
            for name, size, count in sizes
        ],
        sample_sha256=hashlib.sha256(sample).hexdigest(),
    )
    remarks = _remarks(plan, population, options, is_coarser=strata is not ways[0])
    return PlannedSample(plan.model_copy(update={"remarks": tuple(remarks)}), sample)


def _within_hours(
    ways: Sequence[Stratification], population: Population, jury: Jury, hours: float
) -> tuple[Stratification, int]:
    """The finest way to divide the narratives of which the hours take one each, and how many they take."""
    everything = len(population.narratives)
    costs = _costs(population, jury, everything)
    total = sum(costs.values())
    if total <= hours:
        if total < _LEAST_USE * hours:
            raise InputError(
                f"All {counted(everything, 'narrative')} take {_shown_hours(total)}, and `--hours` gives {hours:g}. "
                "Leave `--hours` out to plan for all of them, or raise `--overlap`."
            )
        return ways[0], everything
    for strata in ways:
        number = narratives_within(strata, hours, costs)
        for _ in range(3):  # calibration of a fixed number of records is a larger part of a smaller sample
            number = narratives_within(strata, hours, _costs(population, jury, number))
        if number >= len(strata.members):
            return strata, number
    raise InputError(
        f"`--hours {hours:g}` is less than one narrative with all its answers takes: "
        f"{_shown_hours(total / everything)} on average. Give more hours, or lower `--overlap`."
    )


def _costs(population: Population, jury: Jury, narratives: int) -> dict[str, float]:
    everything = len(population.narratives)
    shares = jury.shares({locale: round(count * narratives / everything) for locale, count in jury.locales.items()})
    return {each.key: jury.hours_of(each, shares) for each in population.narratives}


def _with_power(
    ways: Sequence[Stratification], population: Population, jury: Jury, wanted: float, likeness: sample_power.Likeness
) -> tuple[Stratification, int]:
    """The finest way to divide the narratives, and the fewest of them with which the difference is found."""
    everything = len(population.narratives)
    best = _comparable(draw(ways[-1], everything), jury, likeness)
    if not best.pairs:
        raise InputError(f"`--power {wanted:g}` compares two providers, and the records name {_providers(population)}.")
    least = best.detectable()
    if least is None or least > wanted:
        they = "find no difference at all" if least is None else f"find one of {least:.3f} or more"
        raise InputError(
            f"A difference of {wanted:g} needs more narratives than there are: all {everything:,} {they}. Give more "
            "records, a larger `--power`, or raise `--overlap`."
        )
    for strata in ways:
        low, high = len(strata.members) - 1, everything
        while high - low > 1:
            middle = (low + high) // 2
            found = _comparable(draw(strata, middle), jury, likeness)
            low, high = (low, middle) if found.finds(wanted) else (middle, high)
        while high < everything and (_comparable(draw(strata, high), jury, likeness).detectable() or 1.0) > wanted:
            high += 1
        if high > len(strata.members):
            break
    return strata, high


def _providers(population: Population) -> str:
    return counted(len({record.provider for record in population.records} - {""}), "provider")


class _Comparable(NamedTuple):
    """What two providers can be compared on."""

    shared: sample_power.Shared
    votes: int
    likeness: sample_power.Likeness
    pairs: int

    @property
    def comparisons(self) -> int:
        return self.pairs * (sum(map(len, LABELS.values())) + 1)

    def detectable(self, comparisons: int = 1) -> float | None:
        """The difference that is found among so many comparisons; None where none is."""
        return detectable_difference(self.shared, self.votes, self.likeness, comparisons) if self.pairs else None

    def finds(self, wanted: float) -> bool:
        return bool(self.pairs) and sample_power.finds_difference(wanted, self.shared, self.votes, self.likeness)


def _comparable(draws: Sequence[Draw], jury: Jury, likeness: sample_power.Likeness) -> _Comparable:
    weights: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for place, each in enumerate(draws):
        for record in each.narrative.records:
            if record.provider:
                weights[record.provider][place] = 1 / each.probability
    pairs = list(combinations(sorted(weights), 2))
    counts = Counter(weights[a][place] for a, b in pairs for place in weights[a].keys() & weights[b].keys())
    shared = sample_power.shared_narratives({weight: count / len(pairs) for weight, count in counts.items()})
    return _Comparable(shared, min(jury.overlap["grounding"], jury.overlap["generation"]), likeness, len(pairs))


def _difference(found: _Comparable, counts: tuple[int, int]) -> Difference | None:
    if not found.pairs:
        return None
    return Difference(
        votes=found.votes,
        narratives=round(found.shared.effective, 1),
        pairs=found.pairs,
        comparisons=found.comparisons,
        agreement=found.likeness.agreement,
        narrative_correlation=found.likeness.narrative,
        units_measured=counts[0],
        narratives_measured=counts[1],
    )


def _planned_paces(
    records: Sequence[PlannedRecord], calibrating: Collection[str], jury: Jury
) -> tuple[tuple[PlannedPace, ...], Hours]:
    """And how long all of it takes; all paces are taken to be too long or too short together."""
    found = []
    low = expected = high = 0.0
    for (task, locale), pace in jury.paces.items():
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
            basis="assumed" if not pace.is_measured else "measured" if pace.timed else "other languages",
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
        yield (
            f"This sample takes more than the {options.hours:g} hours given: how many narratives there are goes by "
            "what they take on average, so that each keeps its probability, and these are longer."
        )
    if is_coarser:
        kept = "by language only" if plan.strata[0].stratum != ALL else "neither by language nor by type"
        yield f"The narratives are divided {kept}: so few do not fill all languages and types."
    guessed = sorted({each.task for each in plan.paces if each.basis == "assumed"}, key=TASKS.index)
    if guessed:
        yield (
            f"The pace of {', '.join(guessed)} is assumed from the length of the texts, and may be half or twice as "
            f"long. Plan again with `--from SERVER` once {FEWEST_TIMED} units of a task are done."
        )
    if any(plan.calibration.values()):
        told = ", ".join(f"{locale} {count:,}" for locale, count in plan.calibration.items())
        yield f"Answers in calibration, counted with its overlap: {told}."
    if plan.difference is None:
        yield f"The records name {_providers(population)}, so there is no difference to be found between two."
    elif plan.detectable_difference is None:
        yield "So few narratives find no difference between two providers, however large."
    if population.repeated:
        yield f"Counted once though there more than once: {counted(population.repeated, 'record')}."
    if population.nameless:
        yield f"Told apart by their queries: {counted(population.nameless, 'narrative')} without an id."


def _shown_hours(hours: float) -> str:
    return f"{hours:,.1f} hours" if hours < 99.95 else f"{hours:,.0f} hours"


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
    if (found := plan.difference) is not None and plan.detectable_difference is not None:
        yield f"Difference between two providers found with power .8: {plan.detectable_difference:.3f}"
        corrected = "none" if plan.detectable_corrected is None else f"{plan.detectable_corrected:.3f}"
        yield f"  corrected for all {found.comparisons:,} comparisons of a report: {corrected}"
        yield f"  two-sided {found.level:g}, rates around {found.share:g}, paired on {found.narratives:,.0f} narratives"
        units, narratives = _source(found.units_measured, "unit"), _source(found.narratives_measured, "narrative")
        yield f"  correlation of two votes on a unit: {found.agreement:.2f} ({units})"
        yield f"  of votes on two answers to a narrative: {found.narrative_correlation:.2f} ({narratives})"


def _source(count: int, what: str) -> str:
    return f"from {counted(count, what)}" if count else "assumed"
