"""`exports results --judge`: the rates with the judge's help, where they are shown, and what is refused."""

import csv
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner, Result

from annotation.argilla.labels import LABELS, TaskName
from exports import measure_results
from exports.cli import main
from exports.statistics.results_schema import Results
from tests.support.export_folders import Answer, write_export
from tests.support.planned_records import planned_record, write_planned

LABEL = "helpful"


class JudgedAnswer(NamedTuple):
    """An answer with what it is worth on `helpful`, and what the judge says."""

    record: str
    narrative: str
    model: str
    language: str
    value: bool
    p_yes: float


def judged_answers(
    narratives: int,
    models: Sequence[str] = ("claude", "gemini"),
    languages: Sequence[str] = ("de", "en"),
    seed: int = 0,
    rate: float = 0.4,
) -> list[JudgedAnswer]:
    """An answer of each model to each narrative; the judge's probability goes along with what it is worth."""
    generator = np.random.default_rng(seed)
    found = []
    for number in range(narratives):
        difficulty = generator.normal()
        for model in models:
            score = difficulty + generator.normal()
            p_yes = 1 / (1 + np.exp(-2 * (score + 0.7 * generator.normal())))
            name = f"N{number:04d}"
            value = bool(score > 2**0.5 * (0.5 - rate) * 2.5)
            language = languages[number % len(languages)]
            found.append(JudgedAnswer(f"{name}-{model}", name, model, language, value, round(float(p_yes), 6)))
    return found


def judgement(answer: JudgedAnswer, task: TaskName = "generation", **changes: Any) -> dict[str, Any]:
    labels = {label: {"value": answer.p_yes > 0.5, "p_yes": answer.p_yes} for label in LABELS[task]}
    line = {"record_uuid": answer.record, "task": task, "labels": labels, "status": "ok", "model": "judy"}
    return line | changes


def write_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def write_judged_study(
    folder: Path, answers: Sequence[JudgedAnswer], labelled: Collection[str], known: Collection[str] | None = None
) -> tuple[Path, Path, Path]:
    """Export, judgements and records; people labelled the records of some narratives or records, `known` by name."""
    voted = [
        Answer(
            answer.record,
            answer.model,
            answer.narrative,
            f"Is {answer.narrative} true?",
            {"anna": (LABEL,) if answer.value else ()},
            answer.language,
        )
        for answer in answers
        if answer.narrative in labelled or answer.record in labelled
    ]
    export = write_export(folder / "export", voted, tasks=("generation",))
    judgements = write_lines(folder / "judgements.jsonl", [judgement(answer) for answer in answers])
    records = [
        planned_record(answer.narrative, answer.model, answer.language)
        for answer in answers
        if known is None or answer.record in known
    ]
    return export, judgements, write_planned(folder / "records.jsonl", records)


def first_narratives(answers: Sequence[JudgedAnswer], number: int, seed: int = 1) -> set[str]:
    names = sorted({answer.narrative for answer in answers})
    return set(np.random.default_rng(seed).permutation(names)[:number].tolist())


GROUNDED = "support_present"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["exports", "results", *map(str, words)])


def label_of(task: str = "generation", label: str = LABEL) -> dict[str, Any]:
    found = json.loads(Path("out/results.json").read_text(encoding="utf-8"))
    return found["tasks"][task]["labels"][label]  # type: ignore[no-any-return]


def told(printed: Result) -> str:
    return " ".join(printed.output.split()) + Path("out/results.md").read_text(encoding="utf-8")


def helped(export: Path, judgements: Path, records: Path, *words: str) -> tuple[Result, dict[str, Any]]:
    """What was printed, and the figures of the label."""
    printed = run(export, "--judge", judgements, "--records", records, "--out", "out", *words)
    assert printed.exit_code == 0, printed.output
    return printed, label_of()


def a_study(tmp_path: Path, narratives: int = 400, labelled: int = 80, **options: Any) -> tuple[Path, Path, Path]:
    answers = judged_answers(narratives, **options)
    return write_judged_study(tmp_path, answers, first_narratives(answers, labelled))


def write_sample(probabilities: Mapping[str, float]) -> None:
    rows = "".join(f"{record},{share}\n" for record, share in sorted(probabilities.items()))
    Path("sample.csv").write_text(f"record_uuid,inclusion_probability\n{rows}", encoding="utf-8")


def test_every_group_gets_a_rate_with_the_judges_help_and_a_narrower_interval(tmp_path: Path) -> None:
    _, label = helped(*a_study(tmp_path), "--by", "model_name,language")
    names = [value for group in label["groups"][:4] for value in group["by"].values()]
    assert names == ["claude", "gemini", "de", "en"]
    for group in (label, *label["groups"]):
        help_ = group["judge_help"]
        assert (help_["judge"], help_["undefined"]) == ("judy", None)
        assert help_["n_judged"] > help_["n_labelled"]
        assert 0 < help_["weight"] <= help_["n_judged"] / (help_["n_judged"] - help_["n_labelled"])
        own, wide = group["interval_ppi"], group["interval"]
        assert 0 <= own["low"] < group["rate_ppi"] < own["high"] <= 1
        assert own["high"] - own["low"] < wide["high"] - wide["low"]
    sizes = {"n_judged": 800, "n_labelled": 160, "n_narratives": 80}
    assert label["judge_help"] | {"weight": None} == {"judge": "judy", **sizes, "weight": None, "undefined": None}


def test_without_a_judge_nothing_changes_and_its_help_is_shown_everywhere_by_the_schema(tmp_path: Path) -> None:
    export, judgements, records = a_study(tmp_path)
    assert run(export, "--out", "alone").exit_code == 0
    _, label = helped(export, judgements, records)
    alone, text = (Path(folder, "results.json").read_text(encoding="utf-8") for folder in ("alone", "out"))
    for word in ("ppi", "judge_help"):
        assert word not in alone + Path("alone/results.csv").read_text(encoding="utf-8")
    schema = json.loads(run("--schema", "results").stdout)
    for written in (alone, text):
        jsonschema.validate(json.loads(written), schema)
    with_help, without = Results.model_validate_json(text), Results.model_validate_json(alone)
    for name, alone in without.tasks["generation"].labels.items():
        other = with_help.tasks["generation"].labels[name]
        assert (other.rate, other.interval, other.differences) == (alone.rate, alone.interval, alone.differences)
    own = float(np.mean([answer.p_yes for answer in judged_answers(400)]))  # the judge's own rate is nowhere
    assert f"{own:.6f}" not in Path("out/results.json").read_text(encoding="utf-8")
    title = "with the judge's help (people's labels correct it)"
    page = Path("out/results.md").read_text(encoding="utf-8")
    for there in (title, f"{100 * label['rate_ppi']:.0f} %", "| 160 | 800 |", "alone is no finding"):
        assert there in page
    with Path("out/results.csv").open(encoding="utf-8", newline="") as stream:
        row = next(row for row in csv.DictReader(stream) if row["label"] == LABEL and row["by_model_name"] == "claude")
    assert float(row["rate_ppi"]) == label["groups"][0]["rate_ppi"]
    assert (row["ppi_n_judged"], row["ppi_n_labelled"], row["ppi_judge"]) == ("400", "80", "judy")
    found = measure_results(export, judge=[judgements], records=[records])
    assert title.replace("'", "&#39;") in found._repr_html_()
    frame = found.to_pandas()
    assert (str(frame["rate_ppi"].dtype), str(frame["ppi_n_judged"].dtype)) == ("Float64", "Int64")


def test_where_people_labelled_more_of_one_group_there_is_no_help_and_it_says_why(tmp_path: Path) -> None:
    answers = judged_answers(400)
    few = first_narratives(answers, 40)
    labelled = {each.record for each in answers if each.narrative in few or (each.model == "claude" and each.value)}
    printed, label = helped(*write_judged_study(tmp_path, answers, labelled))
    assert label["judge_help"]["undefined"] == "not_a_random_part"
    assert all("rate_ppi" not in group for group in (label, *label["groups"]))
    assert "no random part of what the judge judged" in told(printed)
    assert "where `model_name` is" in told(printed)


def test_labels_chosen_by_the_judges_own_score_are_refused(tmp_path: Path) -> None:
    answers = judged_answers(300, seed=3)
    for chosen in ("the highest", "the least certain"):
        by_score = sorted(answers, key=lambda a: -a.p_yes if chosen == "the highest" else abs(a.p_yes - 0.5))
        labelled = {answer.record for answer in by_score[:120]}
        study = write_judged_study(tmp_path / chosen, answers, labelled)
        write_sample(dict.fromkeys(labelled, 0.2))
        for options in ((), ("--sample", "sample.csv")):
            printed, label = helped(*study, *options)
            assert (label["judge_help"]["undefined"], "rate_ppi" in label) == ("not_a_random_part", False)
            assert "of pairs, and chance would be 50 %: no random part of what the judge judged" in told(printed)
            assert ("further from one half" in told(printed)) == (chosen == "the least certain")


def test_judgements_of_what_annotators_never_get_do_not_count(tmp_path: Path) -> None:
    """A judge answers grounding without passages too, and always no; people get it only where there are some."""
    generator = np.random.default_rng(5)
    answers = judged_answers(300, models=("claude",), rate=0.8)
    bare = {answer.record for answer in answers if generator.random() < 0.5}
    labelled = first_narratives(answers, 150)
    voted = [
        Answer(a.record, a.model, a.narrative, f"Is {a.narrative} true?", {"anna": (GROUNDED,) if a.value else ()})
        for a in answers
        if a.narrative in labelled and a.record not in bare
    ]
    export = write_export(tmp_path / "export", voted, tasks=("grounding",))
    lines = [judgement(a._replace(p_yes=0.0) if a.record in bare else a, "grounding") for a in answers]
    records = [planned_record(a.narrative, a.model, passages=0 if a.record in bare else 2) for a in answers]
    written = write_planned(tmp_path / "records.jsonl", records)
    printed = run(
        export, "--judge", write_lines(tmp_path / "judged.jsonl", lines), "--records", written, "--out", "out"
    )
    assert printed.exit_code == 0, printed.output
    label = label_of("grounding", GROUNDED)
    shown = [answer for answer in answers if answer.record not in bare]
    assert (label["judge_help"]["n_judged"], label["judge_help"]["n_labelled"]) == (len(shown), len(voted))
    low, high = label["interval_ppi"]["low"], label["interval_ppi"]["high"]
    assert low <= float(np.mean([answer.value for answer in shown])) <= high
    assert f"grounding: of 300 judgements {len(bare)} are of records without passages in --records" in told(printed)
    assert "have no judgement" not in told(printed)


def test_a_sample_that_took_more_of_one_language_needs_its_probabilities(tmp_path: Path) -> None:
    answers = judged_answers(600, models=("claude",))
    names = {language: [a.narrative for a in answers if a.language == language] for language in ("de", "en")}
    generator = np.random.default_rng(3)
    drawn = {
        name: share
        for language, share in (("de", 0.5), ("en", 0.1))
        for name in generator.permutation(names[language])[: round(300 * share)].tolist()
    }
    study = write_judged_study(tmp_path, answers, drawn)
    _, label = helped(*study)
    assert label["judge_help"]["undefined"] == "not_a_random_part"
    write_sample({f"{name}-claude": share for name, share in drawn.items()})
    _, label = helped(*study, "--sample", "sample.csv", "--by", "language")
    weight = label["judge_help"]["weight"]
    value = {answer.narrative: answer for answer in answers}
    inverse = {name: 1 / share for name, share in drawn.items()}
    expected = sum(w * (value[n].value - weight * value[n].p_yes) for n, w in inverse.items()) / sum(inverse.values())
    expected += weight * np.mean([answer.p_yes for answer in answers])
    assert label["rate_ppi"] == pytest.approx(expected, abs=1e-9)
    assert label["judge_help"]["undefined"] is None
    by_language = {group["by"]["language"]: group["judge_help"]["undefined"] for group in label["groups"]}
    assert by_language == {"de": None, "en": None}


def test_probabilities_that_are_not_those_of_the_labels_are_refused(tmp_path: Path) -> None:
    answers = judged_answers(600, models=("claude",))
    de, en = ([a.record for a in answers if a.language == language] for language in ("de", "en"))
    alike, half = {*de[:150], *en[:30]}, {*de[:30], *en[:100]}
    for labelled, sampled in ((alike, alike), (half, {*de[:100], *en[:100]})):
        write_sample(dict.fromkeys(sampled, 0.3))
        folder = tmp_path / str(len(labelled))
        printed, label = helped(*write_judged_study(folder, answers, labelled), "--sample", "sample.csv")
        assert label["judge_help"]["undefined"] == "not_a_random_part"
        assert "random part of" in told(printed)


def test_a_group_with_fewer_than_thirty_labelled_narratives_gets_none(tmp_path: Path) -> None:
    study = a_study(tmp_path, 300, 60, models=("claude",), languages=("de", "en", "en", "en"))
    printed, label = helped(*study, "--by", "model_name,language")
    groups = {tuple(group["by"].values()): group for group in label["groups"]}
    few, enough = groups["de",], groups["en",]
    assert (few["judge_help"]["undefined"], "rate_ppi" in few) == ("few_narratives", False)
    assert few["judge_help"]["n_narratives"] < 30 <= enough["judge_help"]["n_narratives"]
    assert enough["rate_ppi"]
    assert "in fewer than 30 narratives" in told(printed)


def test_what_does_not_count_is_counted_and_said(tmp_path: Path) -> None:
    answers = judged_answers(300, models=("claude",))
    labelled = first_narratives(answers, 60)
    known = {answer.record for answer in answers} - {sorted(f"{name}-claude" for name in labelled)[0]}
    export, judgements, records = write_judged_study(tmp_path, answers, labelled, known)
    unlabelled = [answer for answer in answers if answer.narrative not in labelled]
    one_of_theirs = next(answer for answer in answers if answer.narrative in sorted(labelled)[1:])
    lines = [judgement(answer) for answer in answers if answer not in (unlabelled[0], one_of_theirs)]
    lines += [
        judgement(answers[0], record_uuid="nobody-knows"),
        judgement(unlabelled[0], labels={LABEL: {"value": True, "p_yes": 1.5}}),
        judgement(one_of_theirs, status="no_quote", labels={}),
    ]
    printed, label = helped(export, write_lines(judgements, lines), records)
    for said in (
        "records that neither the export nor the files of --records name: 1 of 299",
        "Records of the export that the files of --records do not name: 1 of 60",
        "cannot be used: 1 (no_quote 1)",
        "1 line is no judgement that counts",
        "less than or equal to 1",
        "of 299 records of --records 2 have no judgement",
        "of 60 labelled units 1 have no judgement of judy",
    ):
        assert said in told(printed)
    assert (label["judge_help"]["n_judged"], label["judge_help"]["n_labelled"]) == (298, 59)


def test_a_judge_without_probabilities_counts_by_its_answers(tmp_path: Path) -> None:
    answers = judged_answers(300, models=("claude",))
    export, judgements, records = write_judged_study(tmp_path, answers, first_narratives(answers, 60))
    said = [{LABEL: {"value": answer.p_yes > 0.5}} for answer in answers]
    lines = [judgement(answer, labels=labels) for answer, labels in zip(answers, said, strict=True)]
    _, bare = helped(export, write_lines(judgements, lines), records)
    for labels in said:
        labels[LABEL]["p_yes"] = float(labels[LABEL]["value"])
    _, stated = helped(export, write_lines(judgements, lines), records)
    assert (bare["rate_ppi"], bare["judge_help"]) == (stated["rate_ppi"], stated["judge_help"])


def refused(export: Path, judgements: Path, records: Path, *words: str) -> str:
    """The one plain line of a refusal."""
    printed = run(export, "--judge", judgements, "--records", records, "--out", "out", *words)
    assert printed.exit_code == 1, printed.output
    assert not Path("out").exists()
    return " ".join(printed.output.split())


def test_of_two_judges_one_has_to_be_named_and_a_hostile_name_steers_nothing(tmp_path: Path) -> None:
    answers = judged_answers(200, models=("claude",))
    export, judgements, records = write_judged_study(tmp_path, answers, first_narratives(answers, 60))
    other: list[JudgedAnswer] = [answer._replace(p_yes=1 - answer.p_yes) for answer in answers]
    write_lines(judgements, [*map(judgement, answers), *(judgement(answer, model="joe") for answer in other)])
    assert "2 judges: 'joe', 'judy'. One judge helps: name it with `--judge-name`" in refused(
        export, judgements, records
    )
    assert "No judgement is of 'jim'" in refused(export, judgements, records, "--judge-name", "jim")
    _, label = helped(export, judgements, records, "--judge-name", "judy")
    assert label["judge_help"]["judge"] == "judy"
    _, label = helped(export, judgements, records, "--judge-name", "joe")
    assert label["judge_help"]["weight"] == 0  # it says the contrary, and people alone count
    hostile = "=1+1|<img src=x>\x1b[31m\u202e \\input{/etc/passwd} `code`"
    write_lines(judgements, [judgement(answer, model=hostile) for answer in answers])
    printed, _ = helped(export, judgements, records, "--spreadsheet-safe")
    assert "\x1b" not in printed.output
    assert "<img" not in Path("out/results.md").read_text(encoding="utf-8")
    assert "'=1+1" in Path("out/results.csv").read_text(encoding="utf-8-sig")
    assert "<img" not in measure_results(export, judge=[judgements], records=[records])._repr_html_()


def test_judgements_of_other_records_and_files_that_are_none_are_refused(tmp_path: Path) -> None:
    answers = judged_answers(60, models=("claude",))
    export, judgements, records = write_judged_study(tmp_path, answers, first_narratives(answers, 40))
    strangers = [judgement(answer, record_uuid=f"other-{answer.record}") for answer in answers]
    said = refused(export, write_lines(tmp_path / "other.jsonl", strangers), records)
    assert "None of the judgements of judy is of a record of the export" in said
    empty = tmp_path / "empty.jsonl"
    empty.write_text("", encoding="utf-8")
    assert "is empty" in refused(export, judgements, empty)
    assert "is empty" in refused(export, empty, records)
    assert run(export, "--records", records).exit_code == 2
