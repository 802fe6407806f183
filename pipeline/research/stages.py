"""A research run from its topic to its report: nine stages, each kept when it is done, resumed after any kill."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import locked_folder
from pipeline.core.terminal import counted
from pipeline.models.asking import Meter
from pipeline.models.structured import added, spent_of
from pipeline.research.artefacts import PlanDetails, PlanFile, RunFolder
from pipeline.research.intake import AskQuestions, clarify_topic, make_plan
from pipeline.research.journal import JOURNAL, Journal, JournaledAnswers
from pipeline.research.options import EXTRACTIVE, Budget, ResearchOptions, checked_options, new_run_id
from pipeline.research.report import Finished, ReportStages
from pipeline.research.rounds import ResearchRounds
from pipeline.research.run import SILENT, Environment, Progress, ResearchRun
from pipeline.research.values import Intake, Plan
from pipeline.sources.store import StoredRun

_SOURCES_PER_BUDGET = 5  # Sources looked at for each that is read (pipeline/contracts/research.md#files)


async def research(options: ResearchOptions, environment: Environment) -> Finished:
    """The finished run; its files stand in `<runs_dir>/<run_id>`, its row, trace and pages in the store.

    Killed at any moment and called again with the same run id, it repeats no call that was answered and gives the same
    report. A limit that is reached ends the gathering; the report is then written of what is there, and says so.

    Raises:
        ClarificationNeeded: the topic says too little; `clarified` can ask.
        InputError: the run was begun with another topic or configuration, or an option is out of range.
        ProviderError: the search or the model cannot be asked, or the network is away; called again, the run goes on.
        OutputError: a file cannot be written, or another process works on the run.
        Stopped: a signal came; called again, the run goes on.
    """
    with open_run(options, environment.report) as run, run.hearing_signals():
        run.store = environment.store
        return await _run_stages(run, options, environment)


async def clarified(options: ResearchOptions, ask: AskQuestions | None) -> Intake:
    """The first stage alone, which needs nothing to work with; `research` of the same options takes it over."""
    with open_run(options, SILENT) as run:
        return await _run_intake(run, options, ask)


@contextmanager
def open_run(options: ResearchOptions, report: Progress) -> Iterator[ResearchRun]:
    """The run of these options for this process alone; a new one, or the one that was begun."""
    checked_options(options)
    path = options.runs_dir / (options.run_id or new_run_id(options.topic, options.runs_dir))
    of_a_run = (JOURNAL, "clarify.json")  # a run that asked questions holds nothing more
    holds_other = path.is_dir() and any(path.iterdir()) and not any((path / each).exists() for each in of_a_run)
    if path.is_symlink() or holds_other:
        raise OutputError(f"{str(path)!r} holds something else than a research run; name another run with `--run-id`.")
    with locked_folder(path, "pipeline research"):
        folder = RunFolder(path)
        folder.remove_parts()
        journal = Journal(path)
        # A run of an earlier version was begun with the defaults of options that are newer than it.
        held = {**ResearchOptions(topic="").setup(), **(journal.setup or options.setup())}
        for name, wanted in options.setup().items():
            if held[name] != wanted:
                was, now = (text if len(text) <= 80 else f"{text[:79]}…" for text in (repr(held[name]), repr(wanted)))
                ending = f"with {now}. Leave that out, or research under another run id."
                raise InputError(f"The run {options.run_id!r} was begun with {name} {was} and cannot go on {ending}")
        yield ResearchRun(folder, journal, report)


async def _run_intake(run: ResearchRun, options: ResearchOptions, ask: AskQuestions | None) -> Intake:
    async def work() -> Intake:
        intake = clarify_topic(options, run.folder, ask)
        if run.journal.setup is None:
            run.journal.keep_setup(options.setup(), datetime.now(UTC).isoformat(timespec="seconds"))
        return intake

    return await run.run_stage("intake", Intake, work, words=lambda value: f"{value.depth}, {value.lang}")


async def _run_stages(run: ResearchRun, options: ResearchOptions, environment: Environment) -> Finished:
    intake = await _run_intake(run, options, None)
    if ("cache", 1) not in run.logged:  # so that its trace belongs to something while it is not finished
        unfinished = StoredRun(run.folder.run_id, intake.topic, run.journal.created_at, status="unfinished")
        environment.store.put_run(unfinished)
    meter = _opened_meter(run, environment, options)
    budget = Budget(options.limits, run.journal.seconds, lambda: meter.committed)
    model = environment.model
    if model:
        model.answered = JournaledAnswers(run.journal, environment.store, run.folder.run_id)
        model.may_ask = meter.may_ask = lambda: not run.stopped and budget.used_up() is None
        model.notes = run.notes
        model.asker.meter = meter
    plan = await run.run_stage(
        "plan",
        Plan,
        lambda: make_plan(intake, model),
        lambda value: _settle_plan(run.folder, options, intake, value),
        words=lambda value: (
            f"{counted(len(value.sections), 'section')}, {len(value.queries)} "
            f"{'query' if len(value.queries) == 1 else 'queries'}"
        ),
        asks_model=True,
    )
    finishing = ReportStages(run, environment, options, intake, plan, budget, meter)
    effort = options.effort(intake.depth)
    gathered = await ResearchRounds(run, environment, options, effort, budget, finishing.settle_claims).gather(plan)
    return await finishing.finish(gathered)


def _opened_meter(run: ResearchRun, environment: Environment, options: ResearchOptions) -> Meter:
    model, journal = environment.model, run.journal
    name, prices = (model.name, model.prices) if model else (EXTRACTIVE, {})
    heard = environment.report.spend
    meter = Meter(name, prices, options.limits.spend, options.workers, journal, heard=heard)
    meter.spent = added(journal.settled, spent_of(journal.unmetered, name, prices))
    meter.cut_off = journal.cut_off
    heard(meter.spent)
    return meter


def _settle_plan(folder: RunFolder, options: ResearchOptions, intake: Intake, plan: Plan) -> None:
    depth, budget = intake.depth, options.effort(intake.depth).budget
    folder.write_config(options.config(depth))
    details = PlanDetails(
        queries=plan.queries,
        sources=("local",) if options.search == "local" else ("web",),
        estimated_sources=_SOURCES_PER_BUDGET * budget,
        depth=depth,
    )
    folder.write_plan(PlanFile(workers=options.workers, depth=depth, budget=budget, lang=intake.lang, plan=details))
