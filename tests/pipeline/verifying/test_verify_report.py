"""`pipeline verify`: a verdict on each sentence of a report or an answer, over a loopback web and through the store."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.asking.gather import Online, fetch_missing
from pipeline.cli.verify import nearest_store
from pipeline.core.prompts import text_digest
from pipeline.sources.fetch import FetchPolicy
from pipeline.sources.store import StoredPage, open_store
from pipeline.verifying.read import SubmittedReport, read_report
from pipeline.verifying.verify import Reader, cited_keys, verify_report
from tests.support.cited_run import cited_answer, write_run
from tests.support.places import NO_SHARED, SHARED
from tests.support.web import Page, Web

WICE = SHARED / "corpora" / "wice" / "dev.jsonl"
HONEY = """Honey is sweet. Honey bees make honey from the nectar of flowers. A colony of about 40,000 bees
visits two million flowers for a pound of honey. Honey keeps for thousands of years, because it holds little water and
is acid. Clover honey is mild. Beekeepers harvest it in August. Heather honey is bitter and jelly-like. The jars of the
shop hold 500 grams."""


REPORT = """# Honey

Honey bees make honey from the nectar of flowers [1]. The French parliament elected a new president in 1848 [1].
A colony visits nine million flowers for a pound of honey [1]. Nobody says why.

- Honey keeps for thousands of years [2].
- Clover honey is mild ([page]({page}#clover)).
- Beekeepers sing [9].

## Literatur

[1] Honey: {page}
[2] Gone: {gone}
"""


def article(text: str) -> str:
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in text.split("\n\n"))
    return f"<html><head><title>T</title></head><body><article>{paragraphs}</article></body></html>"


def command(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["pipeline", "verify", str(path), *options])


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def verdicts(result: Result) -> dict[str, Any]:
    assert result.exit_code in (0, 3), result.output
    return {each["text"]: each["verdict"] for each in json.loads(result.stdout)["sentences"]}


class Fetched(NamedTuple):
    """A report that was verified on a web of one page and a missing one."""

    path: Path
    page: str
    gone: str
    result: Result
    asked: list[str]


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Fetched:
    path = tmp_path_factory.mktemp("verify") / "report.md"
    with Web({"127.0.0.1": {"/robots.txt": Page(status=404), "/honey": article(HONEY)}}) as web:
        page, gone = web.url("127.0.0.1", "/honey"), web.url("127.0.0.1", "/gone")
        written(path, REPORT.replace("{page}", page).replace("{gone}", gone))
        result = command(path, "--allow-address", f"127.0.0.1:{web.port}")
        return Fetched(path, page, gone, result, web.paths("127.0.0.1"))


def offline(fetched: Fetched, path: Path, text: str, *options: str) -> Result:
    """What comes of a file with this text, `PAGE` and `GONE` in it being the pages, from the same store."""
    written(path, text.replace("PAGE", fetched.page).replace("GONE", fetched.gone))
    return command(path, "--offline", "--store", str(fetched.path.with_name("store.db")), *options)


def test_each_sentence_has_a_verdict_from_the_pages_that_it_cites(fetched: Fetched) -> None:
    found = verdicts(fetched.result)
    assert found["Honey bees make honey from the nectar of flowers."] == "supported"
    assert found["The French parliament elected a new president in 1848."] == "not_found"
    assert found["A colony visits nine million flowers for a pound of honey."] in ("contradicted", "cannot_tell")
    assert found["Nobody says why."] == "cannot_tell"
    assert found["Honey keeps for thousands of years."] == "cannot_tell"
    assert found["Clover honey is mild."] == "supported"


def test_marks_that_lead_nowhere_and_sources_are_told(fetched: Fetched) -> None:
    told = json.loads(fetched.result.stdout)
    assert [(each["id"], each["reason"]) for each in told["unresolved"]] == [("9", "no_entry")]
    assert [(each["url"], each["state"], each["reason"]) for each in told["sources"]] == [
        (fetched.page, "read", "page"),
        (fetched.gone, "gone", "status_404"),
        (f"{fetched.page}#clover", "read", "page"),
    ]
    assert sorted(fetched.asked) == ["/gone", "/honey"]
    for words in ("with citations 5", "9 (no_entry), line 8", "1 gone", "not the public web", "Next: "):
        assert words in fetched.result.stderr


def test_what_is_in_the_store_needs_no_web_and_strict_tells_by_its_exit_code(fetched: Fetched) -> None:
    again = command(fetched.path, "--offline", "--strict")
    assert (again.exit_code, again.stdout) == (3, fetched.result.stdout)


def test_no_fetch_asks_nobody_and_makes_no_store(fetched: Fetched, tmp_path: Path) -> None:
    path = written(tmp_path / "report.md", fetched.path.read_text(encoding="utf-8"))
    result = command(path, "--no-fetch", "--out", str(tmp_path / "out.json"))
    assert (result.exit_code, result.stdout) == (0, "")
    told = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert {(each["verdict"], each["score"]) for each in told["sentences"]} == {("cannot_tell", None)}
    assert told["sentences"][0]["citations"] == [fetched.page]
    assert set(told) == {"sentences", "uncited", "unresolved", "sources"}
    assert [each.name for each in sorted(tmp_path.iterdir())] == ["out.json", "report.md"]


def test_what_is_not_supported_stands_beside_the_nearest_sentences_of_its_pages(fetched: Fetched) -> None:
    told = {each["text"]: each for each in json.loads(fetched.result.stdout)["sentences"]}
    flowers = told["A colony visits nine million flowers for a pound of honey."]
    assert flowers["nearest"][0]["url"] == fetched.page
    assert flowers["nearest"][0]["text"].startswith("A colony of about 40,000 bees")
    assert flowers["by_paragraph"]["nearest"] == flowers["nearest"]
    assert told["Honey bees make honey from the nectar of flowers."]["nearest"] == []


def test_the_summary_shows_sentences_that_do_not_hold_with_their_pages_words(fetched: Fetched, tmp_path: Path) -> None:
    text = "Honey keeps for \u202emany an age [1].\n\nHoney bees sing in summer [1].\n\n[1] PAGE\n"
    result = offline(fetched, tmp_path / "report.md", text, "--strict")
    shown = " ".join(result.stderr.split())
    assert "line 3: Honey bees sing in summer." in shown
    assert "page: 'Honey bees make honey from the nectar" in shown
    assert "line 1: Honey keeps for" in shown
    assert "\u202e" not in result.stderr


@pytest.mark.parametrize(
    ("body", "options", "words"),
    [
        ("Honey keeps for many an age [1].", ["--strict"], "--offline --model NAME"),
        ("Clover honey is mild [1].", [], "--offline --strict checks it"),
        ("Clover honey is mild [1].", ["--strict"], "the same command in a script"),
        ("Clover honey is mild.", [], "name sources in the report"),
    ],
)
def test_the_next_step_leads_on(fetched: Fetched, tmp_path: Path, body: str, options: list[str], words: str) -> None:
    result = offline(fetched, tmp_path / "report.md", f"{body}\n\n[1] PAGE\n", *options)
    assert words in result.stderr.splitlines()[-1]
    assert max(map(len, result.stderr.splitlines()[:-1])) <= 80


def test_a_page_that_cannot_be_read_leaves_a_silent_page_undecided(fetched: Fetched, tmp_path: Path) -> None:
    text = "The French parliament elected a president [1][2].\n\n[1] PAGE\n[2] GONE\n"
    told = json.loads(offline(fetched, tmp_path / "report.md", text).stdout)["sentences"][0]
    assert told["verdict"] == "cannot_tell"
    assert "not all of the pages" in told["problems"][0]


def test_what_a_page_contradicts_is_shown_with_the_words_of_the_page(fetched: Fetched, tmp_path: Path) -> None:
    text = "The jars of the shop hold 400 grams [1].\n\n[1] PAGE\n"
    result = offline(fetched, tmp_path / "report.md", text)
    (said,) = json.loads(result.stdout)["sentences"]
    own = "The jars of the shop hold 500 grams."
    assert (said["verdict"], said["score"], said["by"]) == ("contradicted", 0.0, "rules")
    assert said["problems"] == [f"the page says 500, not 400: {own!r}"]
    assert said["nearest"][0]["text"] == own
    assert "1 contradicted" in result.stderr
    assert f"page: {own!r}" in " ".join(result.stderr.split())


def test_what_is_left_open_has_the_three_nearest_sentences_and_a_score(fetched: Fetched, tmp_path: Path) -> None:
    text = "In August honey of heather and clover goes into jars of 500 grams [1].\n\n[1] PAGE\n"
    (said,) = json.loads(offline(fetched, tmp_path / "report.md", text).stdout)["sentences"]
    assert (said["verdict"], len(said["nearest"])) == ("cannot_tell", 3)
    assert 0 < said["score"] < 1


def test_a_report_that_holds_passes_strictly(fetched: Fetched, tmp_path: Path) -> None:
    text = "Clover honey is mild [1].\n\n[1] Honey: PAGE\n"
    assert offline(fetched, tmp_path / "report.md", text, "--strict").exit_code == 0


@pytest.mark.parametrize(
    "body",
    [
        "Honey keeps for many an age [1].",  # in other words than the page's
        "The French parliament elected a president in 1848 [1].",
        "Clover honey is mild [1]. Heather honey is bitter [2].",
        "The French parliament elected a president in 1848. Clover honey is mild [1].",
        "Clover honey is mild [1][9].",
    ],
    ids=["cannot_tell", "not_found", "unread", "by_paragraph", "lost_mark"],
)
def test_strict_fails_where_a_cited_sentence_is_not_supported_or_a_mark_is_lost(
    fetched: Fetched, tmp_path: Path, body: str
) -> None:
    text = f"{body}\n\n[1] Honey: PAGE\n[2] Gone: GONE\n"
    assert offline(fetched, tmp_path / "report.md", text).exit_code == 0
    strict = offline(fetched, tmp_path / "report.md", text, "--strict")
    assert strict.exit_code == 3
    assert "Does not hold: of " in strict.stderr


def test_strict_fails_where_no_page_was_to_be_read(fetched: Fetched, tmp_path: Path) -> None:
    path = written(tmp_path / "report.md", f"Clover honey is mild ([page]({fetched.page})).\n")
    result = command(path, "--no-fetch", "--strict")
    assert result.exit_code == 3
    assert "No cited page was read" in result.stderr


def test_both_readings_of_a_mark_at_a_paragraphs_end_are_told(fetched: Fetched, tmp_path: Path) -> None:
    text = "Clover honey is mild. Beekeepers harvest it in August [1].\n\nNobody knows.\n\n[1] Honey: PAGE\n"
    result = offline(fetched, tmp_path / "report.md", text)
    told = json.loads(result.stdout)
    first, second, third = told["sentences"]
    assert (first["citations"], first["verdict"], first["score"]) == ([], "cannot_tell", None)
    assert first["by_paragraph"]["citations"] == [fetched.page]
    assert first["by_paragraph"]["verdict"] == "supported"
    assert second["by_paragraph"] == {key: second[key] for key in first["by_paragraph"]}
    assert third["by_paragraph"]["citations"] == []
    assert told["uncited"] == {"by_sentence": 0.6667, "by_paragraph": 0.3333}
    assert "cover it: with citations 2: 2 in the page's own words." in " ".join(result.stderr.split())
    assert "Uncited: 67% of the sentences by their own marks, 33% by their paragraph's." in result.stderr


def test_a_report_without_sources_is_told_in_a_plain_line(tmp_path: Path) -> None:
    result = command(written(tmp_path / "report.md", "Bees make honey. Nobody says why.\n"), "--offline")
    assert set(verdicts(result).values()) == {"cannot_tell"}
    assert "Nothing that can be looked up is cited" in result.stderr
    assert "\nUncited" not in result.stderr


def test_an_empty_store_leaves_every_sentence_untold(fetched: Fetched, tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db"):
        pass
    path = written(tmp_path / "report.md", f"Clover honey is mild ([page]({fetched.page})).\n")
    for options, code in (((), 0), (("--strict",), 3)):
        result = command(path, "--offline", *options)
        assert (result.exit_code, verdicts(result)) == (code, {"Clover honey is mild.": "cannot_tell"})
        assert "No cited page was read" in result.stderr
        assert "1 unfetched" in result.stderr
        assert result.stderr.endswith(" reads the cited pages\n")


def test_a_research_run_is_verified_by_its_folder(fetched: Fetched, tmp_path: Path) -> None:
    (tmp_path / "run" / "final").mkdir(parents=True)
    text = "# T\n\nClover honey is mild. It is sweet. (C001)\n\n## References\n\n1. C001 [Honey](PAGE) · host\n"
    offline(fetched, tmp_path / "run" / "final" / "report.md", text)
    result = command(tmp_path / "run", "--offline", "--store", str(fetched.path.with_name("store.db")))
    assert [each["citations"] for each in json.loads(result.stdout)["sentences"]] == [[fetched.page]] * 2


def test_each_answer_of_a_csv_file_is_a_line(fetched: Fetched, tmp_path: Path) -> None:
    texts = [f"[Clover honey]({fetched.page}) is mild.", "The French parliament elected a president in 1848.[1]"]
    answers = [cited_answer(number, "Q", text, [fetched.page]) for number, text in enumerate(texts)]
    write_run(tmp_path / "run", answers)
    result = command(tmp_path / "run" / "openai.csv", "--offline", "--store", str(fetched.path.with_name("store.db")))
    assert result.exit_code == 0, result.output
    assert "Next: citejury pipeline sources" in result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["answer_id"] for line in lines] == [answer.answer_id for answer in answers]
    assert [line["sentences"][0]["verdict"] for line in lines] == ["supported", "not_found"]
    assert [line["sentences"][0]["citations"] for line in lines] == [[fetched.page]] * 2


def test_the_summary_of_several_answers_names_the_answer_and_counts_the_marks_of_all(
    fetched: Fetched, tmp_path: Path
) -> None:
    text = "Honey keeps for many an age.[1] Beekeepers sing.[9]"
    answers = [cited_answer(number, "Q", text, [fetched.page]) for number in range(2)]
    run = write_run(tmp_path / "run", answers)
    result = command(run / "openai.csv", "--offline", "--store", str(fetched.path.with_name("store.db")))
    shown = " ".join(result.stderr.split())
    assert all(f"{answer.answer_id}, line 1: Honey keeps" in shown for answer in answers)
    assert "Marks that lead nowhere: 2." in shown


def test_the_store_stands_beside_the_folder_of_a_csv_file_as_for_sources(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"Honey.": []})
    assert nearest_store(run / "openai.csv") == tmp_path / "store.db"
    assert nearest_store(tmp_path / "report.md") == tmp_path / "store.db"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.md", None, "does not exist"),
        ("empty.md", b"", "no sentence"),
        ("sources.md", b"# T\n\n## Sources\n\n[1] a: https://a.example/\n", "no sentence"),
        ("latin.md", "Käse".encode("latin-1"), "not UTF-8"),
        ("other.csv", b"a,b\n1,2\n", "not CSV v2"),
        (".", None, "final/report.md"),
    ],
)
def test_what_cannot_be_verified_is_told_and_nothing_is_written(
    tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    out = tmp_path / "out.json"
    result = command(tmp_path / name, "--no-fetch", "--out", str(out))
    assert result.exit_code == 1
    assert words in result.stderr
    assert not out.exists()


def test_a_report_is_not_replaced_by_its_verdicts(tmp_path: Path) -> None:
    path = written(tmp_path / "report.md", REPORT)
    result = command(path, "--no-fetch", "--out", str(path))
    assert (result.exit_code, path.read_text(encoding="utf-8")) == (1, REPORT)
    assert "would be lost" in result.stderr


def test_text_of_a_report_commands_no_terminal(tmp_path: Path) -> None:
    path = written(tmp_path / "report.md", "Bees\u009b2J fly\u202e [^x\u009b2J].\n")
    result = command(path, "--no-fetch")
    assert "\\u009b" in result.stdout
    assert not {"\u009b", "\u202e"} & set(result.output)


def rows_of_wice() -> list[dict[str, Any]]:
    if not WICE.is_file():
        pytest.skip(NO_SHARED)
    return [json.loads(line) for line in WICE.read_text(encoding="utf-8").splitlines()]


def report_of_claims(rows: Sequence[Mapping[str, Any]], urls: Sequence[str]) -> str:
    """A report with a paragraph for each claim, citing the page of its article."""
    body = [f"{row['claim']} [{number}]" for number, row in enumerate(rows, start=1)]
    listed = [f"[{number}] Article: {url}" for number, url in enumerate(urls, start=1)]
    return "\n\n".join(["# Claims", *body, "## Sources", "\n".join(listed)])


def auc(scores: Mapping[str, float], rows: Sequence[Mapping[str, Any]], urls: Sequence[str]) -> float:
    """Chance that a supported claim has a higher score than one that is not, ties counted half."""
    by_label = {
        label: [scores[url] for row, url in zip(rows, urls, strict=True) if row["label"] == label]
        for label in ("supported", "not_supported")
    }
    pairs = [(high, low) for high in by_label["supported"] for low in by_label["not_supported"]]
    return sum((high > low) + 0.5 * (high == low) for high, low in pairs) / len(pairs)


def scores_of(sentences: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The lowest score of the sentences that cite each URL."""
    scores: dict[str, float] = {}
    for sentence in sentences:
        for url in sentence["citations"]:
            scores[url] = min(scores.get(url, 1.0), sentence["score"])
    return scores


def test_on_wice_the_score_tells_supported_claims_from_others(tmp_path: Path) -> None:
    """A sample through a loopback web, the store and the real command; so small a one swings by a tenth."""
    labels = ("supported", "not_supported")
    rows = [row for label in labels for row in [each for each in rows_of_wice() if each["label"] == label][:12]]
    pages = {f"/{number}": article("\n\n".join(row["evidence"])) for number, row in enumerate(rows)}
    with Web({"wice.example": {"/robots.txt": Page(status=404), **pages}}) as web:
        urls = [web.url("wice.example", f"/{number}") for number in range(len(rows))]
        path = written(tmp_path / "claims.md", report_of_claims(rows, urls))
        with open_store(tmp_path / "store.db") as store:
            keys = cited_keys([SubmittedReport(None, read_report(path.read_text(encoding="utf-8")))])
            online = Online(web.client, FetchPolicy(delay=0.0, per_host=8))
            gathered = fetch_missing(store, keys, online, "", lambda url, reason: None, lambda total: None)
        assert gathered.fetched == len(rows)
        told = json.loads(command(path, "--offline").stdout)
    assert {each["state"] for each in told["sources"]} == {"read"}
    assert auc(scores_of(told["sentences"]), rows, urls) >= 0.8


def held_page(url: str, text: str) -> StoredPage:
    """A page with this text, as if it had been fetched."""
    digest = text_digest(text)
    return StoredPage(
        url, url, text, "", "wice.example", "en", "text/html", digest, "2026-11-22T00:00:00+00:00", b"", digest, 200,
        "page", "",
    )  # fmt: skip


def test_on_all_of_wice_the_score_tells_supported_claims_from_others(tmp_path: Path) -> None:
    rows = [row for row in rows_of_wice() if row["label"] != "partially_supported"]
    urls = [f"https://wice.example/{number}" for number in range(len(rows))]
    texts = {url: "\n".join(row["evidence"]) for url, row in zip(urls, rows, strict=True)}
    with open_store(tmp_path / "store.db") as store:
        for url, text in texts.items():
            store.put_page(held_page(url, text))
        verified = verify_report(SubmittedReport(None, read_report(report_of_claims(rows, urls))), Reader(store))
    assert not verified.unresolved
    assert auc(scores_of([each.model_dump() for each in verified.sentences]), rows, urls) >= 0.9
