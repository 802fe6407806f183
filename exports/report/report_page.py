"""The report for everybody, in the language of its readers: what was found, by model and by narrative, with examples.

It names no annotator. What it says stands in words.toml and, for other languages, beside it; `details_page` has every
figure.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from annotation.argilla.labels import is_of_passages
from annotation.argilla.wording import read_wording
from annotation.quality.scores import AnnotatorScores
from exports.reading.definitions import ReportSettings
from exports.report.judged_answers import Example, JudgedAnswer, choose_examples, count_differing, judged_answers, trim
from exports.report.methods import agreement_methods, results_methods
from exports.report.results_words import (
    NUMBERS,
    Figure,
    figures,
    group_name,
    interval_of,
    is_one_unknown,
    needs_no_votes,
    share_of,
    standing_out,
)
from exports.report.sections import (
    SHARES,
    Cell,
    Mark,
    Named,
    Rows,
    Section,
    Strip,
    Ticks,
    cell_values,
    marked,
    sheet_name,
)
from exports.report.sections import Figure as Number
from exports.report.words import UNDEFINED, Language, fitness, interim, read_language
from exports.statistics.agreement_schema import Agreement
from exports.statistics.disagreements import Disagreement
from exports.statistics.rates import within_reach
from exports.statistics.ratings import RATINGS, all_labels
from exports.statistics.results_schema import OF_ANNOTATORS, Difference, Rate, Results
from pipeline.core.errors import SettingsError
from pipeline.core.tables import PART, Table
from pipeline.records.citation_form import RESEARCH_RUN

if TYPE_CHECKING:
    from exports.reading.study import ReadStudy

NARRATIVES_SHOWN, _FIRST_NARRATIVES = 48, 24
"""Of more narratives than the first number only so many are shown at once, and the others on a click."""
_DIFFERENCES_SHOWN, _DISPUTED_SHOWN, _EXCERPT = 5, 5, 220
_MODEL = "model_name"
_PARTS = {1: ("value",), 2: ("value", "units"), 4: ("value", "low", "high", "units")}  # of a figure with n numbers
_QUARTERS: tuple[tuple[Mark, float], ...] = tuple(("grid", value) for value in SHARES.ticks(0.25))


class Material(NamedTuple):
    """What the report is made of."""

    results: Results
    agreement: Agreement
    read: "ReadStudy"
    disagreements: Sequence[Disagreement]
    settings: ReportSettings
    findings: tuple[str, ...]  # Those that the project defines
    controls: Sequence[AnnotatorScores] = ()
    examples: Callable[[Mapping[str, Sequence[JudgedAnswer]]], Mapping[str, Sequence[Example]]] = lambda chosen: {}
    """The texts of chosen answers."""


class Report(NamedTuple):
    title: str
    sections: tuple[Section, ...]
    language: Language
    sheets: tuple[tuple[str, Table], ...]  # Its tables, each with a title


def write_report(found: Material) -> Report:
    writer = _Writer(found, read_language(found.settings.language))
    sections = tuple(writer.sections())
    named: list[tuple[str, Table]] = []
    for title, table in writer.sheets(sections):
        named.append((sheet_name(title, [name.lower() for name, _ in named]), table))
    return Report(writer.title, sections, writer.language, tuple(named))


def check_headline(results: Results, settings: ReportSettings) -> None:
    names = [figure.name for figure in figures(results)]
    if settings.headline not in ("", *names):
        raise SettingsError(
            f"`headline` in `[report]` is {settings.headline!r}, which was not measured. Choose one of "
            f"{', '.join(names)}, or define a finding of this name."
        )


class _Writer:
    def __init__(self, found: Material, language: Language) -> None:
        self.found, self.results, self.agreement, self.language = found, found.results, found.agreement, language
        self.say = language.say
        self.column = next(iter(self.results.by), _MODEL)
        self.is_of_models = self.column == _MODEL and RATINGS not in self.results.tasks
        self.serious = list(dict.fromkeys(term for each in self.results.findings.values() for term in each.any))
        self.terms = list(dict.fromkeys((*self.serious, *language.texts["problems"])))
        self.answers = judged_answers(found.read.study, found.read.queries, self.column, self.terms)
        self.title = found.settings.title or self.say("title" if self.is_of_models else "title_ratings")
        self.asked_alone = {RESEARCH_RUN} if self.is_of_models else set()  # Something that no other group was asked
        self.examples: Mapping[str, Sequence[Example]] = {}

    def sections(self) -> Iterator[Section]:
        lead = self.lead()
        asked = [self.asked(), self.say("asked_by", name=name) if (name := self.found.settings.asked_by) else ""]
        told = (self.lead_sentence(lead), self.difference_sentence(), self.agreement_sentence())
        work = self.agreement.work
        named = work and {self.language.task(task): each for task, each in work.items()}
        parts = (
            Section(points=marked("! ", filter(None, [interim(named, self.language.texts["interim"])]))),
            Section(notes=(" ".join(filter(None, asked)),), look="extent"),
            Section(points=marked("", filter(None, told)), look="sentences"),
            *([self.drawn(*lead)] if lead else []),
        )
        yield Section(self.title, parts=parts, depth=1, name="found")
        if RATINGS not in self.results.tasks:
            yield self.asked_section()
        yield self.by_group()
        if self.answers:
            yield self.by_narrative()
            if self.serious:
                yield self.examples_section()
        yield self.disagreements()
        yield self.methods()

    # What opens it

    def asked(self) -> str:
        results, counted = self.results, self.language.counted
        people = counted(len({name for each in self.agreement.tasks.values() for name in each.annotators}), "people")
        if RATINGS in results.tasks:
            of = {"answers": counted(results.n_records, "records")}
            return self.say("asked_bare", people=people, narratives=counted(results.n_narratives, "to_clusters"), **of)
        told = [self.provenance(record) for record in self.records]
        days = self.language.days([each.get("answer_timestamp", "") for each in told])
        models = {each.get(_MODEL, "") for each in told} - {""}
        own = [self.say("research")] * (RESEARCH_RUN in models)
        models.discard(RESEARCH_RUN)
        return self.say(
            "asked" if days else "asked_undated",
            models=self.language.listed([counted(len(models), "models")] * bool(models or not own) + own),
            narratives=counted(results.n_narratives, "to_narratives"),
            days=days,
            people=people,
            answers=counted(results.n_records, "answers"),
            latest=self.language.day(results.latest_response or "") or self.say("not_known"),
        )

    @property
    def records(self) -> list[str]:
        return sorted({record for table in self.found.read.study.tables for record in table.records})

    def provenance(self, record: str) -> Mapping[str, str]:
        return self.found.read.study.provenance.get(record, {})

    def lead(self) -> tuple[str, str, Figure] | None:
        """What opens it, with its term and title: what the project chose, else the problem found most often."""
        headline = self.found.settings.headline
        known = {figure.name: figure for figure in figures(self.results) if figure.kind == "yes"}
        if headline:
            figure = next(each for each in figures(self.results) if each.name == headline)
            return figure.name, self.titled(figure), figure
        measured = [
            (share_of(known[label].found, term) or 0, -place, term)
            for place, term in enumerate(self.terms)
            if (label := term.removeprefix("not ")) in known and known[label].found.rate is not None
        ]
        if not measured or max(measured)[0] == 0:
            return None
        term = max(measured)[2]
        return term, self.language.problem(term), known[term.removeprefix("not ")]

    def lead_sentence(self, lead: tuple[str, str, Figure] | None) -> str:
        if lead is None:
            return self.say("none_found", answers=self.language.counted(self.results.n_records, "of_answers"))
        term, title, figure = lead
        if figure.found.rate is None:
            return self.say("headline_unknown", title=title)
        ends = interval_of(figure.found, term)
        low, high = (self.language.share(min(max(end, 0), 1)) for end in (ends.low, ends.high)) if ends else ("", "")
        return self.say(
            "headline" if self.found.settings.headline else "most",
            title=title,
            problem=title,
            share=self.shown(figure, share_of(figure.found, term)),
            answers=self.language.counted(figure.found.n_units, f"of_{figure.unit}s"),
            range=self.say("headline_range", low=low, high=high) if ends and not figure.scale else "",
        )

    def difference_sentence(self) -> str:
        told = list(standing_out(self.results))
        if told:
            figure, found = min(told, key=lambda each: (needs_no_votes(each[0]), each[1].p_all or 0.0))
            kind = "differs_mean" if figure.scale else "differs_adjusted" if found.leniency else "differs"
            return self.compared(kind, figure, found)
        compared = [each for figure in figures(self.results) for each in figure.found.differences if each.p is not None]
        if reached := sum(within_reach(compared)):
            differences = self.language.counted(len(compared), "differences")
            return self.say("differs_not", differences=differences, reached=self.language.number(reached))
        groups = next((figure.found.groups for figure in figures(self.results)), ())
        return self.say("one_group" if len(groups) < 2 else "differs_few") if self.results.by else ""

    def compared(self, kind: str, figure: Figure, found: Difference) -> str:
        (first, high), (second, low) = (found.a, found.rate_a), (found.b, found.rate_b)
        difference = found.difference or 0.0
        if difference < 0:
            first, high, second, low = second, low, first, high
        level = f" ({group_name(found.within)})" if found.within else ""
        return self.say(
            kind,
            label=self.titled(figure) + level,
            first=first or self.say("not_known"),
            second=second or self.say("not_known"),
            high=self.shown(figure, high),
            low=self.shown(figure, low),
            points=self.shown(figure, abs(difference)) if figure.scale else self.language.points(abs(difference)),
            narratives=self.language.counted(found.n_narratives, "on_narratives"),
        )

    def agreement_sentence(self) -> str:
        verdicts = [fitness(label) for task in self.agreement.tasks.values() for label in task.labels.values()]
        fit, unfit = sum(each in ("fit", "tentative") for each in verdicts), verdicts.count("unfit")
        if verdicts.count("unknown") == len(verdicts):
            return self.say("agree_unknown")
        number = self.language.number
        labels, rest = self.language.counted(len(verdicts), "labels"), len(verdicts) - fit - unfit
        return self.say("agree", fit=number(fit), labels=labels, unfit=number(unfit), open=number(rest))

    def titled(self, figure: Figure) -> str:
        if figure.task is None:
            own = "" if figure.name in self.found.findings else self.language.texts["labels"].get(figure.name, "")
            return own or figure.title
        if figure.kind == "mean":
            return self.say("mean", label=self.language.label(figure.name.removeprefix("mean "), figure.task))
        label, of, value = figure.name.partition("=") if figure.kind == "share" else (figure.name, "", "")
        shown = self.language.label(label, figure.task)
        return f"{shown}: {self.language.value(figure.task, label, value)}" if of else shown

    def shown(self, figure: Figure, value: float | None) -> str:
        return self.language.local(NUMBERS.value(value)) if figure.scale else self.language.share(value)

    def rate(self, rate: Rate, figure: Figure) -> Number:
        interval = self.language.span(rate.interval, 1 if figure.scale else 100)
        units = self.language.counted(rate.n_units, f"of_{figure.unit}s")
        ends = (rate.interval.low, rate.interval.high) if rate.interval else (None, None)
        numbers = (rate.rate, *ends, rate.n_units)
        return Number(self.shown(figure, rate.rate), interval, of=" " + self.say("of", units=units), numbers=numbers)

    def count(self, number: int) -> Number:
        return Number(self.language.number(number), numbers=(number,))

    def drawn(self, term: str, title: str, figure: Figure) -> Section:
        """The rates of all and of each group as points; of a label that counts by its no those of its no."""
        rows: Rows = [("", "", "", "")]
        groups = () if is_one_unknown(figure.found) else figure.found.groups
        for name, own in ((self.say("all"), figure.found), *((self.name_of(each.by), each) for each in groups)):
            ends = interval_of(own, term)
            told = own.model_copy(update={"rate": share_of(own, term), "interval": ends})
            number = self.rate(told, figure)._replace(of="")
            between = (ends.low, ends.high) if ends else None
            said = self.say("drawn" if ends else "drawn_bare", name=name, share=number.value, range=number.interval)
            units = self.language.counted(own.n_units, f"of_{figure.unit}s")
            is_drawn = told.rate is not None and not figure.scale
            strip = Strip(said, units, SHARES, told.rate, between, _QUARTERS) if is_drawn else ""
            rows.append((name if own is figure.found else PART + name, strip, number, units))
        if not figure.scale:
            ticks = tuple((value, self.language.share(value)) for value in (0.0, 0.5, 1.0))
            rows.append(("", Ticks(SHARES, ticks), "", ""))
        return Section(title, tables=(Table(rows, left=1),), notes=(self.say("drawn_note"),), depth=0, look="rates")

    def name_of(self, by: Mapping[str, str]) -> str:
        return ", ".join(value or self.say("not_known") for value in by.values())

    # Its tables

    def asked_section(self) -> Section:
        told = {record: self.provenance(record) for record in self.records}
        models = sorted({each.get(_MODEL, "") for each in told.values()})
        runs = {each.model_name: each for each in self.results.runs}
        asked = [self.say(name) for name in ("questions", "refused", "failed")] if runs else []
        heads = [self.say(name) for name in ("model", "version", "answered_on", "languages")]
        rows: Rows = [(*heads, *asked, self.say("judged"))]
        for model in models:
            own = [each for each in told.values() if each.get(_MODEL, "") == model]
            values = [
                ", ".join(sorted({each.get(name, "") for each in own} - {""})) for name in ("model_version", "language")
            ]
            days = self.language.days([each.get("answer_timestamp", "") for each in own])
            run = runs.get(model)
            counts = [run.asked, run.refused, run.failed] if run else [None] * len(asked)
            known = [value or self.say("not_known") for value in (model, values[0], days, values[1])]
            rows.append((*known, *(UNDEFINED if each is None else self.count(each) for each in (*counts, len(own)))))
        table, note = Table(rows, left=4), self.say("asked_note")
        return Section(self.say("asked_title"), tables=(table,), notes=(note,), depth=2, name="asked", look="asked")

    def by_group(self) -> Section:
        """A row a label, the groups beside each other; of passages that citejury chose without groups."""
        shown = [each for each in figures(self.results) if each.task or self.is_shown(each)]
        shown.sort(key=lambda figure: is_of_passages(figure.task or ""))
        selected = any(each.contexts == "selected" for each in self.results.passages)
        of_label = [{} if selected and is_of_passages(figure.task or "") else self.groups(figure) for figure in shown]
        names = list(dict.fromkeys(name for groups in of_label for name in groups))
        rows: Rows = [(self.say("label"), self.say("all"), *names)]
        task: str | None = ""
        for figure, groups in zip(shown, of_label, strict=True):
            if figure.task and figure.task != task:
                of_task = [own for each, own in zip(shown, of_label, strict=True) if own and each.task == figure.task]
                chosen = selected and is_of_passages(figure.task)
                note = self.say("of_selected") if chosen else self.unjudged(figure.task, of_task, names)
                rows.append((Named(self.language.task(figure.task), note, True), *[""] * (len(names) + 1)))
                task = figure.task
            question = self.language.question(figure.task, figure.name) if figure.task else ""
            title = self.titled(figure)
            rates = (self.rate(groups[name], figure) if name in groups else "" for name in names)
            rows.append((Named(title, question * (question != title)), self.rate(figure.found, figure), *rates))
        told = list(standing_out(self.results))
        sentences = [
            self.compared("apart_adjusted" if each.leniency else "apart", figure, each) for figure, each in told
        ]
        parts = [
            Section(self.say("apart_title"), points=marked("", sentences), notes=(self.say("apart_more"),), look="told")
        ]
        minded = [
            *([self.say("minded_weighted")] if self.results.weighted else []),
            *([self.say("minded_other")] if self.are_judged_unlike else []),
            self.say("minded_few"),
        ]
        return Section(
            self.say("by_model" if self.is_of_models else "by_group"),
            tables=(Table(rows, left=1),),
            notes=(" ".join((self.say("by_model_note"), *minded)),),
            parts=tuple(parts if told else ()),
            depth=2,
            name="models",
            look="shares",
        )

    def unjudged(self, task: str, of_task: Sequence[Mapping[str, Rate]], names: Sequence[str]) -> str:
        """Of which groups nothing was judged in the task, and whether it is for want of passages."""
        without: dict[str, list[str]] = {}
        for name in names if of_task else ():
            if not any(own[name].n_units for own in of_task if name in own):
                known = map(self.provenance, self.records)
                read = {
                    each.get("n_read") for each in known if (each.get(self.column) or self.say("not_known")) == name
                }
                reason = "none_read" if task not in ("", "generation") and read == {"0"} else "none_judged"
                without.setdefault(reason, []).append(name)
        return "; ".join(self.say(reason, models=self.language.listed(own)) for reason, own in without.items())

    def is_shown(self, figure: Figure) -> bool:
        """Whether a finding stands on the page: one that the project chose or defined, or that needs no votes."""
        return figure.name in (self.found.settings.headline, *self.found.findings) or needs_no_votes(figure)

    def groups(self, figure: Figure) -> dict[str, Rate]:
        return {self.name_of(each.by): each for each in figure.found.groups if tuple(each.by) == (self.column,)}

    @property
    def are_judged_unlike(self) -> bool:
        differences = [each for figure in figures(self.results) for each in figure.found.differences]
        return any(each.leniency is not None or each.undefined in OF_ANNOTATORS for each in differences)

    # By narrative

    def by_narrative(self) -> Section:
        of_narrative: dict[str, dict[str, list[JudgedAnswer]]] = {}
        for each in self.answers:
            of_narrative.setdefault(each.narrative, {}).setdefault(each.group, []).append(each)
        groups = sorted({each.group for each in self.answers} - self.asked_alone)
        ordered = sorted(of_narrative, key=lambda name: (*self.weight(of_narrative[name]), name))
        first = len(ordered) if len(ordered) <= NARRATIVES_SHOWN else _FIRST_NARRATIVES
        tables = [
            Table(
                [self.narrative_heads(), *(row for name in part for row in self.narrative(of_narrative[name], groups))],
                2,
            )
            for part in (ordered[:first], ordered[first:])
            if part
        ]
        rest = Section(
            self.language.counted(len(ordered) - first, "more_narratives"),
            tables=tuple(tables[1:]),
            depth=3,
            folded=True,
            look="narratives",
        )
        return Section(
            self.say("narratives_title"),
            tables=tuple(tables[:1]),
            notes=(self.say("narratives_note"),),
            parts=(rest,) if tables[1:] else (),
            depth=2,
            name="narratives",
            look="narratives",
        )

    def weight(self, groups: Mapping[str, Sequence[JudgedAnswer]]) -> tuple[int, int]:
        """Fewer than 0 the more was found: first what is serious, then all."""
        answers = [each for own in groups.values() for each in own]
        serious, every = (
            sum(each.has(term) for each in answers for term in terms) for terms in (self.serious, self.terms)
        )
        return -serious, -every

    def narrative_heads(self) -> tuple[Cell, ...]:
        group = self.say("model" if self.is_of_models else "group")
        return (group, *(self.say(name) for name in ("found", "answers", "people")))

    def narrative(
        self, of_group: Mapping[str, Sequence[JudgedAnswer]], groups: Sequence[str]
    ) -> Iterator[tuple[Cell, ...]]:
        every = [each for own in of_group.values() for each in own]
        query = next((each.query for each in every if each.query), "")
        yield Named(query or every[0].narrative, every[0].narrative if query else "", True), "", "", ""
        number, unknown = self.count, self.say("not_known")
        for group, own in sorted(of_group.items()):
            found = " · ".join(told for term in self.terms if (told := self.votes(own, term))) or self.say("nothing")
            yield group or unknown, found, number(len(own)), number(max(each.people for each in own))
        without = [group or unknown for group in groups if group not in of_group]
        if without and of_group.keys() - self.asked_alone:
            yield ", ".join(without), self.say("nothing_judged"), number(0), number(0)

    def votes(self, answers: Sequence[JudgedAnswer], term: str) -> str:
        """Empty where no answer has it: people of one answer, and of several those that have it."""
        having = [each for each in answers if each.has(term)]
        if not having:
            return ""
        judged = [each for each in answers if term in each.said]
        said, of = having[0].said[term] if len(answers) == 1 else (len(having), len(judged))
        number = self.language.number
        told = self.say("votes", problem=self.language.problem(term), said=number(said), of=number(of))
        return f"⚠ {told}" if term in self.serious else told

    def examples_section(self) -> Section:
        judged = {term: [each for each in self.answers if term in each.said] for term in self.serious}
        chosen = {term: choose_examples(answers, term) for term, answers in judged.items() if answers}
        self.examples = self.found.examples(chosen)
        parts = []
        for term, own in chosen.items():
            most = sum(2 * each.said[term][0] > each.said[term][1] for each in judged[term])
            told = {
                "answers": self.language.counted(len(judged[term]), "of_answers"),
                "found": self.language.number(most),
            }
            note = self.say("examples_found" if own else "examples_none", **told)
            shown = tuple(self.example(each, term) for each in self.examples.get(term, ()))
            parts.append(Section(self.language.problem(term), notes=(note,), parts=shown, depth=3))
        title, note = self.say("examples_title"), self.say("examples_note")
        return Section(title, notes=(note,), parts=tuple(parts), depth=2, name="examples")

    def example(self, found: Example, term: str) -> Section:
        model = found.answer.group or self.say("not_known")
        beside, cell = self.beside(found)
        table = Table(
            [
                (self.say("in_answer", model=model), *([beside] if cell else [])),
                (found.sentence, *([cell] if cell else [])),
            ]
        )
        said = [self.said(found, term), *(self.say("note", text=note) for note in found.notes[:2])]
        query = found.answer.query or found.answer.narrative
        return Section(trim(query), tables=(table,), points=marked("", said), depth=4, look="example")

    def beside(self, found: Example) -> tuple[str, str]:
        """What stands beside the sentence, under its heading: the passage, else the source that it cites."""
        if found.passage:
            return (self.say("in_passage_of", site=found.site) if found.site else self.say("in_passage")), found.passage
        if found.source is None:
            return "", ""
        state = "never_archived" if found.source.archived == "never" else found.source.state
        return self.say("cited"), f"{found.site or found.source.url}: {read_wording(self.language.code).states[state]}"

    def said(self, found: Example, term: str) -> str:
        said, of = map(self.language.number, found.answer.said[term])
        return self.say("said", said=said, of=of, problem=self.language.problem(term))

    # How far people agree, and how it was made

    def disagreements(self) -> Section:
        differing = {
            (ratings.measured_as, label.name): count_differing(label.units, label.codes)
            for ratings in self.found.read.study.tables
            for label in all_labels(ratings)
        }
        rows: Rows = [tuple(self.say(name) for name in ("question", "verdict", "differ"))]
        for task, measured in sorted(self.agreement.tasks.items(), key=lambda each: is_of_passages(each[0])):
            rows.append((Named(self.language.task(task), heads_rows=True), "", ""))
            noun = "of_units" if task == RATINGS else "of_passages" if is_of_passages(task) else "of_answers"
            for label, found in measured.labels.items():
                differ, of = differing.get((task, label), (0, 0))
                told = {"differ": self.language.number(differ), "units": self.language.counted(of, noun)}
                differ_of = Number(self.say("differ_of", **told), numbers=(differ, of))
                title, question = self.language.label(label, task), self.language.question(task, label)
                verdict = self.language.texts["verdicts"][fitness(found)]
                rows.append((Named(title, question * (question != title)), verdict, differ_of))
        disputed = [each for each in self.found.disagreements if each.n_yes is not None and not each.chunk_id]
        disputed.sort(key=lambda each: (-abs(each.influence or 0.0), -each.contribution, each.record_uuid, each.label))
        seen: set[str] = set()
        told_rows: Rows = [tuple(self.say(name) for name in ("query", "question", "said_title"))]
        for each in disputed:
            if each.record_uuid not in seen and len(seen) < _DISPUTED_SHOWN:
                seen.add(each.record_uuid)
                told_rows.append(self.disputed(each))
        parts = [Section(self.say("disputed"), tables=(Table(told_rows),), depth=3, look="disputed")]
        return Section(
            self.say("disagreements_title"),
            tables=(Table(rows, left=2),),
            notes=(self.say("disagreements_note"),),
            parts=tuple(parts if seen else ()),
            depth=2,
            name="differ",
            look="verdicts",
        )

    def disputed(self, found: Disagreement) -> tuple[Cell, ...]:
        number = self.language.number
        said = self.say("disputed_said", yes=number(found.n_yes or 0), no=number(found.n_no or 0))
        notes = [self.say("note", text=trim(" ".join(note.split()))) for note in found.notes.values()][:2]
        query = self.found.read.queries.get(found.record_uuid, "") or found.query or found.record_uuid
        model = self.provenance(found.record_uuid).get(_MODEL, "")
        asked = self.language.question(found.task, found.label) or found.label
        return Named(trim(query), model), asked, " ".join((said, *notes))

    def methods(self) -> Section:
        told = (
            results_methods(self.results, self.found.controls, self.language),
            agreement_methods(self.agreement, self.found.controls, self.language),
        )
        rows: Rows = [(self.say("file"), self.say("rows"), "SHA-256")]
        rows += [(each.file, self.count(each.rows), each.sha256) for each in self.results.inputs]
        files = Section(self.say("files"), tables=(Table(rows, left=1),), depth=3, look="files")
        return Section(
            self.say("methods"), notes=told, parts=(files,), depth=2, folded=True, name="methods", look="methods"
        )

    def sheets(self, sections: Sequence[Section]) -> Iterator[tuple[str, Table]]:
        """What opens the page, its tables, that of each heading on a sheet, and the examples on one."""
        opening = sections[0].parts[:3]
        told = [text for part in opening for text in (*part.notes, *(text for _, text in part.points)) if text]
        yield self.say("summary"), Table([[self.title], *([text] for text in told)])
        for section in sections:
            if section.name == "examples":
                yield section.title, self.examples_table()
                continue
            parts = [section, *section.parts, *(each for part in section.parts for each in part.parts)]
            tables = [(part.title, table) for part in parts for table in part.tables]
            for number, (title, table) in enumerate(tables):
                if number and table.rows[0] == tables[number - 1][1].rows[0]:
                    continue
                rows = [row for _, each in tables if each.rows[0] == table.rows[0] for row in each.rows[1:]]
                yield title, self.flat(Table([table.rows[0], *rows]))

    def flat(self, table: Table) -> Table:
        """The same without drawings; what heads several rows is their first cell, and each number has its own."""
        head, *rows = table.rows
        drawn = {at for row in rows for at, cell in enumerate(row) if isinstance(cell, Strip | Ticks)}
        columns = {at: max(len(cell_values(row[at])) for row in rows) for at in range(len(head)) if at not in drawn}
        first: list[object] = [
            self.say("part", name=head[at], part=self.say(name))
            if head[at] and part
            else head[at] or (self.say(name) if n > 1 else "")
            for at, n in columns.items()
            for part, name in enumerate(_PARTS[n])
        ]
        above, found = "", [["", *first]]
        for row in rows:
            if isinstance(row[0], Named) and row[0].heads_rows:
                above = row[0].name
            else:
                of_row = [[*cell_values(row[at]), *[None] * n][:n] for at, n in columns.items()]
                found.append([above, *(cell for cells in of_row for cell in cells)])
        return Table([row[not above :] for row in found if any(row)])

    def examples_table(self) -> Table:
        heads = ("problem", "query", "model", "answer", "in_passage", "said_title")
        rows: Rows = [tuple(self.say(name, model="") for name in heads)]
        for term, found in self.examples.items():
            for each in found:
                beside, cell = self.beside(each)
                said = " ".join((self.said(each, term), *(self.say("note", text=note) for note in each.notes)))
                shown = f"{beside}: {cell}" if cell else ""
                rows.append(
                    (self.language.problem(term), each.answer.query, each.answer.group, each.sentence, shown, said)
                )
        return Table(rows)
