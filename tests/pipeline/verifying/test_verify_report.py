import json
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.cli.verify import nearest_store
from pipeline.sources.store import open_store
from tests.support.cited_run import cited_answer, write_run
from tests.support.web import Page, Web

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


def command(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["pipeline", "verify", str(path), *options])


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


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
    article = "".join(f"<p>{line}</p>" for line in HONEY.split("\n\n"))
    page_of_honey = f"<html><head><title>T</title></head><body><article>{article}</article></body></html>"
    with Web({"127.0.0.1": {"/robots.txt": Page(status=404), "/honey": page_of_honey}}) as web:
        page, gone = web.url("127.0.0.1", "/honey"), web.url("127.0.0.1", "/gone")
        written(path, REPORT.replace("{page}", page).replace("{gone}", gone))
        result = command(path, "--allow-address", f"127.0.0.1:{web.port}")
        return Fetched(path, page, gone, result, web.paths("127.0.0.1"))


def offline(fetched: Fetched, path: Path, text: str, *options: str) -> Result:
    """What comes of a file with this text, `PAGE` and `GONE` in it being the pages, from the same store."""
    written(path, text.replace("PAGE", fetched.page).replace("GONE", fetched.gone))
    return command(path, "--offline", "--store", str(fetched.path.with_name("store.db")), *options)


def test_a_report_is_verified_on_the_pages_that_it_cites_and_again_without_the_web(fetched: Fetched) -> None:
    assert fetched.result.exit_code == 0, fetched.result.output
    told = json.loads(fetched.result.stdout)
    assert {each["text"]: each["verdict"] for each in told["sentences"]} == {
        "Honey bees make honey from the nectar of flowers.": "supported",
        "The French parliament elected a new president in 1848.": "not_found",
        "A colony visits nine million flowers for a pound of honey.": "cannot_tell",
        "Nobody says why.": "cannot_tell",
        "Honey keeps for thousands of years.": "cannot_tell",
        "Clover honey is mild.": "supported",
        "Beekeepers sing.": "cannot_tell",
    }
    first, _, flowers, *_ = told["sentences"]
    assert flowers["nearest"][0]["url"] == fetched.page
    assert flowers["nearest"][0]["text"].startswith("A colony of about 40,000 bees")
    assert (flowers["by_paragraph"]["nearest"], first["nearest"]) == (flowers["nearest"], [])
    assert [(each["id"], each["reason"]) for each in told["unresolved"]] == [("9", "no_entry")]
    assert [(each["url"], each["state"], each["reason"]) for each in told["sources"]] == [
        (fetched.page, "read", "page"),
        (fetched.gone, "gone", "status_404"),
        (f"{fetched.page}#clover", "read", "page"),
    ]
    assert sorted(fetched.asked) == ["/gone", "/honey"]
    for words in ("with citations 5", "9 (no_entry), line 8", "1 gone", "not the public web", "Next: "):
        assert words in fetched.result.stderr
    again = command(fetched.path, "--offline", "--strict")
    assert (again.exit_code, again.stdout) == (3, fetched.result.stdout)


def test_no_fetch_makes_no_store_and_a_run_is_verified_by_its_folder(fetched: Fetched, tmp_path: Path) -> None:
    path = written(tmp_path / "report.md", fetched.path.read_text(encoding="utf-8"))
    result = command(path, "--no-fetch", "--out", str(tmp_path / "out.json"))
    assert (result.exit_code, result.stdout) == (0, "")
    told = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert {(each["verdict"], each["score"]) for each in told["sentences"]} == {("cannot_tell", None)}
    assert told["sentences"][0]["citations"] == [fetched.page]
    assert set(told) == {"sentences", "uncited", "unresolved", "sources"}
    assert [each.name for each in sorted(tmp_path.iterdir())] == ["out.json", "report.md"]
    (tmp_path / "run" / "final").mkdir(parents=True)
    text = "# T\n\nClover honey is mild. It is sweet. (C001)\n\n## References\n\n1. C001 [Honey](PAGE) · host\n"
    offline(fetched, tmp_path / "run" / "final" / "report.md", text)
    result = command(tmp_path / "run", "--offline", "--store", str(fetched.path.with_name("store.db")))
    assert [each["citations"] for each in json.loads(result.stdout)["sentences"]] == [[fetched.page]] * 2


def test_what_does_not_hold_or_is_open_is_shown_with_the_pages_words(fetched: Fetched, tmp_path: Path) -> None:
    text = "Honey keeps for \u202emany an age [1].\n\nHoney bees sing in summer [1].\n\n[1] PAGE\n"
    result = offline(fetched, tmp_path / "report.md", text, "--strict")
    shown = " ".join(result.stderr.split())
    assert "line 3: Honey bees sing in summer." in shown
    assert "page: 'Honey bees make honey from the nectar" in shown
    assert "line 1: Honey keeps for" in shown
    assert "\u202e" not in result.stderr
    result = offline(fetched, tmp_path / "report.md", "The jars of the shop hold 400 grams [1].\n\n[1] PAGE\n")
    (said,) = json.loads(result.stdout)["sentences"]
    own = "The jars of the shop hold 500 grams."
    assert (said["verdict"], said["score"], said["by"]) == ("contradicted", 0.0, "rules")
    assert (said["problems"], said["nearest"][0]["text"]) == ([f"the page says 500, not 400: {own!r}"], own)
    assert "1 contradicted" in result.stderr
    assert f"page: {own!r}" in " ".join(result.stderr.split())
    text = "In August honey of heather and clover goes into jars of 500 grams [1].\n\n[1] PAGE\n"
    (said,) = json.loads(offline(fetched, tmp_path / "report.md", text).stdout)["sentences"]
    assert (said["verdict"], len(said["nearest"])) == ("cannot_tell", 3)
    assert 0 < said["score"] < 1
    text = "The French parliament elected a president [1][2].\n\n[1] PAGE\n[2] GONE\n"
    (unread,) = json.loads(offline(fetched, tmp_path / "report.md", text).stdout)["sentences"]
    assert (unread["verdict"], "not all of the pages" in unread["problems"][0]) == ("cannot_tell", True)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        pytest.param("Honey keeps for many an age [1].", 3, "--offline --model NAME", id="cannot_tell"),
        pytest.param("The French parliament elected a president in 1848 [1].", 3, "", id="not_found"),
        pytest.param("Clover honey is mild [1]. Heather honey is bitter [2].", 3, "", id="unread"),
        pytest.param("The parliament elected a president. Clover honey is mild [1].", 3, "", id="by_paragraph"),
        pytest.param("Clover honey is mild [1][9].", 3, "", id="lost_mark"),
        pytest.param("Clover honey is mild [1].", 0, "the same command in a script", id="holds"),
        pytest.param("Clover honey is mild.", 0, "name sources in the report", id="cites nothing"),
    ],
)
def test_strict_fails_where_a_cited_sentence_is_not_supported_or_a_mark_is_lost(
    fetched: Fetched, tmp_path: Path, body: str, code: int, words: str
) -> None:
    text = f"{body}\n\n[1] Honey: PAGE\n[2] Gone: GONE\n"
    loose, strict = (offline(fetched, tmp_path / "report.md", text, *options) for options in ([], ["--strict"]))
    assert (loose.exit_code, strict.exit_code, "Does not hold: of " in strict.stderr) == (0, code, code == 3)
    assert words in strict.stderr.splitlines()[-1]
    assert not words or max(map(len, strict.stderr.splitlines()[:-1])) <= 80
    assert "--offline --strict checks it" in loose.stderr or code or "[1]" not in body


def test_without_a_page_or_a_source_nothing_can_be_known(fetched: Fetched, tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db"):
        pass
    path = written(tmp_path / "report.md", f"Clover honey is mild ([page]({fetched.page})).\n")
    for options, code in ((["--offline"], 0), (["--offline", "--strict"], 3), (["--no-fetch", "--strict"], 3)):
        result = command(path, *options)
        assert (result.exit_code, '"verdict": "cannot_tell"' in result.stdout) == (code, True)
        assert "No cited page was read" in result.stderr
        assert "1 unfetched" in result.stderr
    assert command(path, "--offline").stderr.endswith(" reads the cited pages\n")
    result = command(written(path, "Bees make honey. Nobody says why.\n"), "--offline")
    assert "Nothing that can be looked up is cited" in result.stderr
    assert "\nUncited" not in result.stderr


def test_both_readings_of_a_mark_at_a_paragraphs_end_are_told(fetched: Fetched, tmp_path: Path) -> None:
    text = "Clover honey is mild. Beekeepers harvest it in August [1].\n\nNobody knows (Smith, 2020).\n\n"
    text += f"Gone [2].\n\n## Sources\n\n[1] Honey: PAGE\n[2] http://u:p@p\u0430ge.example/{'x' * 8000}\n[3] A book.\n"
    result = offline(fetched, tmp_path / "report.md", text)
    told = json.loads(result.stdout)
    first, second, third, _ = told["sentences"]
    assert (first["citations"], first["verdict"], first["score"]) == ([], "cannot_tell", None)
    assert (first["by_paragraph"]["citations"], first["by_paragraph"]["verdict"]) == ([fetched.page], "supported")
    assert second["by_paragraph"] == {key: second[key] for key in first["by_paragraph"]}
    assert third["by_paragraph"]["citations"] == []
    assert third["problems"] == ["it cites by author and year, without a link that could be looked up"]
    counts = {"by_author": 1, "sources_without_url": 1}
    assert told["uncited"] == {"by_sentence": 0.75, "by_paragraph": 0.5, **counts}
    assert "cover it: with citations 2: 2 in the page's own words." in " ".join(result.stderr.split())
    assert "Uncited: 75% of the sentences by their own marks, 50% by their paragraph's." in result.stderr
    assert "By author and year alone, without a link: 1 sentence." in result.stderr
    assert "Source lists name 1 source without a URL." in result.stderr
    assert max(map(len, result.stderr.splitlines())) < 400


def test_each_answer_of_a_csv_file_is_a_line_and_the_summary_names_it(fetched: Fetched, tmp_path: Path) -> None:
    texts = [f"[Clover honey]({fetched.page}) is mild.", "Honey keeps for many an age.[1] Beekeepers sing.[9]"]
    answers = [cited_answer(number, "Q", text, [fetched.page]) for number, text in enumerate([*texts, texts[1]])]
    run = write_run(tmp_path / "run", answers)
    result = command(run / "openai.csv", "--offline", "--store", str(fetched.path.with_name("store.db")))
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["answer_id"] for line in lines] == [answer.answer_id for answer in answers]
    assert [line["sentences"][0]["verdict"] for line in lines] == ["supported", "cannot_tell", "cannot_tell"]
    assert [line["sentences"][0]["citations"] for line in lines] == [[fetched.page]] * 3
    shown = " ".join(result.stderr.split())
    assert all(f"{answer.answer_id}, line 1: Honey keeps" in shown for answer in answers[1:])
    assert "Marks that lead nowhere: 2." in shown
    assert "Next: citejury pipeline sources" in shown


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
def test_what_cannot_be_verified_is_told_alone(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    out = tmp_path / "out.json"
    result = command(tmp_path / name, "--no-fetch", "--out", str(out))
    assert result.exit_code == 1
    assert words in result.stderr
    assert not out.exists()


def test_a_report_is_not_replaced_by_its_verdicts_and_the_store_stands_beside_it(tmp_path: Path) -> None:
    path = written(tmp_path / "report.md", REPORT)
    result = command(path, "--no-fetch", "--out", str(path))
    assert (result.exit_code, path.read_text(encoding="utf-8")) == (1, REPORT)
    assert "would be lost" in result.stderr
    result = command(written(tmp_path / "report.md", "Bees\u009b2J fly\u202e [^x\u009b2J].\n"), "--no-fetch")
    assert "\\u009b" in result.stdout
    assert not {"\u009b", "\u202e"} & set(result.output)
    assert nearest_store(write_run(tmp_path / "run", {"Honey.": []}) / "openai.csv") == tmp_path / "store.db"
    assert nearest_store(tmp_path / "report.md") == tmp_path / "store.db"
