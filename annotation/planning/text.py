"""A plan in lines for the terminal."""

from collections.abc import Iterator

from annotation.labels import TASKS
from annotation.planning._schema import Difference, Plan
from pipeline.tables import Table
from pipeline.terminal import counted


def plan_lines(plan: Plan) -> Iterator[str]:
    """What is judged, how long it takes by task and language, and what it finds out."""
    whole = "all" if plan.narratives == plan.all_narratives else f"of {plan.all_narratives:,}"
    yield f"{counted(plan.narratives, 'narrative')} ({whole}) with {counted(plan.records, 'answer')}"
    yield ""
    yield _table(plan).terminal()
    yield ""
    hours = plan.hours
    yield f"Hours of all annotators together: {hours.expected:,.1f} (from {hours.low:,.1f} to {hours.high:,.1f})"
    if plan.difference is not None and plan.detectable_difference is not None:
        yield f"Difference between two providers found with power .8: {plan.detectable_difference:.3f}"
        corrected = "none" if plan.detectable_corrected is None else f"{plan.detectable_corrected:.3f}"
        yield f"  corrected for all {plan.difference.comparisons:,} comparisons of a report: {corrected}"
        yield from _basis(plan.difference)


def _table(plan: Plan) -> Table:
    """Units, submissions, seconds and hours by task and language."""
    heading = ("task", "language", "units", "judgements", "seconds", "hours", "pace")
    rows: list[tuple[object, ...]] = [
        (
            each.task,
            each.language,
            f"{each.units:,}",
            f"{each.judgements:,}",
            f"{each.seconds:.0f}",
            f"{each.judgements * each.seconds / 3600:,.1f}",
            f"{each.basis} ({each.timed})" if each.timed else each.basis,
        )
        for each in sorted(plan.paces, key=lambda each: (TASKS.index(each.task), each.language))
    ]
    units = sum(plan.units.values())
    total = ("together", "", f"{units:,}", f"{plan.judgements:,}", "", f"{plan.hours.expected:,.1f}", "")
    return Table([heading, *rows, total], left=2)


def _basis(found: Difference) -> Iterator[str]:
    """What the difference rests on."""
    yield f"  two-sided {found.level:g}, rates around {found.share:g}, paired on {found.narratives:,.0f} narratives"
    units, narratives = _source(found.units_measured, "unit"), _source(found.narratives_measured, "narrative")
    yield f"  correlation of two votes on a unit: {found.agreement:.2f} ({units})"
    yield f"  of votes on two answers to a narrative: {found.narrative_correlation:.2f} ({narratives})"


def _source(count: int, what: str) -> str:
    """What a correlation rests on."""
    return f"from {counted(count, what)}" if count else "assumed"
