"""Records to judgements.

The file follows from records and replies alone, in the order of records, tasks and ranks: a run that was killed and
started again, or whose replies came in another order, gives the same bytes.
"""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

from annotation.judge.answers import BASELINE, Judged, baseline_judgement
from annotation.judge.asking import Asking
from annotation.judge.baseline import JUDGES
from annotation.judge.files import Tally, Work, beside, check_work, write_judgements
from annotation.judge.replies import open_replies
from annotation.judge.units import Unit
from pipeline.models.spent import Spent
from pipeline.models.structured import Asker, ChosenModel, accept_body
from pipeline.providers.http.network import Network, RetryPolicy


class Outcome(NamedTuple):
    """What came of a run: the tally, a line for each part that is no record, units left over, and what it took.

    `stopped` says why units are left: `SIGINT`, `SIGTERM` or `max_cost`; empty where none are.
    """

    tally: Tally
    problems: tuple[str, ...]
    unsettled: int = 0
    stopped: str = ""
    spent: Spent = Spent()


def judge_by_words(work: Work) -> Outcome:
    """What came of judging without a model; the judgements stand in `work.out`.

    Raises:
        InputError: the records cannot be read, or there is nothing to judge.
        OutputError: something else stands at the place to write to.
    """
    checked = check_work(work, takes_words, BASELINE)

    def judged() -> Iterator[tuple[Unit, Judged]]:
        for done, unit in enumerate(work.units(takes_words), start=1):
            yield unit, baseline_judgement(unit)
            work.report(done, checked.units)

    return Outcome(write_judgements(work, judged()), checked.problems)


def judge_by_model(work: Work, chosen: ChosenModel, attempts: int = 2) -> Outcome:
    """What came of asking a model; the judgements stand in `work.out`, its replies beside it.

    What was answered before is not asked again. A signal or the known cost stops the run in good order: units that are
    not settled then have no line, and the same call again goes on.

    Raises:
        InputError: the records cannot be read, or there is nothing to judge.
        OutputError: something else stands at the place to write to, or another process is writing there.
        SettingsError: the key cannot be used.
    """
    checked = check_work(work, takes_model, chosen.model)
    endpoint = chosen.endpoint
    network = Network({endpoint.provider: endpoint}, RetryPolicy(attempts), work.limits.concurrency, accept_body)
    with open_replies(beside(work.out, "raw")) as replies:
        asking = Asking(work, chosen.model, replies, network.stop)

        async def ask() -> None:
            async with network:
                await asking.ask_all(Asker(network, chosen), work.units(takes_model), checked.units)

        asyncio.run(ask())
        tally = write_judgements(work, asking.judged(work.units(takes_model)))
        unsettled = checked.units - tally.units.total()
        return Outcome(tally, checked.problems, unsettled, asking.course.stopped if unsettled else "", asking.spent())


def takes_words(unit: Unit) -> bool:
    """Whether the judge without a model judges the unit."""
    return unit.task in JUDGES


def takes_model(unit: Unit) -> bool:
    """Whether a model is asked about the unit: not about grounding without passages, which annotators never see."""
    return unit.task != "grounding" or bool(unit.passages)
