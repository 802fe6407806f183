import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.asking.run_folder import read_errors, read_manifest
from pipeline.asking.summary import reparse_run
from pipeline.core.prompts import DEFAULT_PROMPTS
from pipeline.csv.file import read_answers
from pipeline.csv.rows import identify_call, place_of
from pipeline.records.run import records_from_run
from tests.support.ask_bench import run_ask
from tests.support.csv_check import check_file
from tests.support.places import ROOT
from tests.support.provider_server import ProviderServer, Status, responses_body

PERSONAS = ROOT / "exports" / "demo_data" / "arms"
SHORT = """
model = "small"
persona = "I am a nurse."
[prompts]
system = "Be short."
user_template = "{note_text} Yes or no?"
[options]
country = "jp"
max_tokens = 99
"""
ARMS = ("--arm", "short:short.toml", "--arm", "long:long.toml")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("two.csv").write_text("narrative_id,prompt\nN1,A\nN2,B\n", encoding="utf-8")
    Path("short.toml").write_text(SHORT, encoding="utf-8")
    Path("long.toml").write_text('[models]\nopenai = "large"\n[prompts]\nsystem = ""\n', encoding="utf-8")
    return tmp_path


def ask(server: ProviderServer, *words: str, providers: str = "openai", **more: str) -> Result:
    return run_ask(server, "two.csv", "--out", "run", *words, providers=providers, **more)


def places(run: Path) -> list[tuple[str, str, str, str]]:
    """Narrative, arm and repeat of every record of the run, and what it asked, in order."""
    told = [record.provenance for record in records_from_run(run)]
    prompts = {answer.answer_id: answer.answer_prompt for answer in read_answers(run / "openai.csv")}
    return [(each.narrative_id, each.arm, each.repeat, prompts[each.answer_id]) for each in told]


def default(text: str) -> str:
    return DEFAULT_PROMPTS.user_prompt(text)


def test_every_narrative_is_put_by_every_arm_as_often_as_wanted_and_comes_back_with_it(folder: Path) -> None:
    with ProviderServer() as server:
        done = ask(server, *ARMS, "--repeats", "2", "--max-tokens", "500", "--max-uses", "3")
        assert done.exit_code == 0, done.output
        assert "Asking openai (small, large)." in done.stderr
        assert len(server.calls) == 8
        bodies = {json.dumps(call.body, sort_keys=True): call.body for call in server.calls}.values()
    own, other = ([body for body in bodies if body["model"] == model] for model in ("small", "large"))
    for body, text in zip(own, ("A", "B"), strict=True):
        assert [message["content"] for message in body["input"]] == ["Be short.", f"I am a nurse.\n\n{text} Yes or no?"]
        assert body["tools"][0]["user_location"] == {"type": "approximate", "country": "JP"}
        assert (body["max_output_tokens"], body["max_tool_calls"]) == (99, 3)
    for body, text in zip(other, ("A", "B"), strict=True):
        assert body["input"] == [{"role": "user", "content": default(text)}]
        assert (body["max_output_tokens"], "user_location" in body["tools"][0]) == (500, False)
    run = folder / "run"
    assert check_file(run / "openai.csv") == []
    expected = [
        (narrative, arm, repeat, prompt)
        for narrative, text in (("N1", "A"), ("N2", "B"))
        for arm, prompt in (("short", f"I am a nurse.\n\n{text} Yes or no?"), ("long", default(text)))
        for repeat in ("1", "2")
    ]
    assert places(run) == expected
    (run / "openai.csv").write_bytes((run / "openai.csv").read_bytes().replace(b"with a source", b"with sources"))
    arms = read_manifest(run).arms
    reparse_run(run, {})
    assert (places(run), read_manifest(run).arms) == (expected, arms)


def test_an_arm_is_part_of_a_calls_identity_and_an_answer_of_another_prompt_has_no_place(folder: Path) -> None:
    run_id, call = "9f0e3b0a-6f0e-4b55-9e0a-7d6b1f4a2c11", ("openai", "N1", "text", 1, 1)
    assert identify_call(run_id, *call) == "4cab9350-9fea-535b-b22f-cc80d9943cb7"
    assert len({identify_call(run_id, *call, arm) for arm in ("", "a", "1", "1:a")}) == 4
    with ProviderServer() as server:
        ask(server, *ARMS)
    manifest = read_manifest(folder / "run")
    [first, *_] = read_answers(folder / "run" / "openai.csv")
    told = (manifest.run_id, manifest.repeats, tuple(manifest.arms))
    assert place_of(first, *told) == ("short", 1)
    assert place_of(first.model_copy(update={"answer_prompt": "A"}), *told) is None
    assert place_of(first, "no-uuid", 1) is None


def test_arms_providers_and_repeats_are_added_to_what_is_there(folder: Path) -> None:
    with ProviderServer() as server:
        ask(server)
        first = list(read_answers(folder / "run" / "openai.csv"))
        ask(server, *ARMS[:2])
        ask(server, *ARMS, "--repeats", "2", "--max-rows", "1")
        assert len(server.calls) == 2 + 2 + 3
        assert "2 kept, 0 new, 0 failed" in ask(server).stderr
        Path("all.toml").write_text('[models]\nclaude = "c"\nopenai = "o"\n', encoding="utf-8")
        ask(server, "--arm", "all:all.toml", providers="claude")
        ask(server, "--arm", "all:all.toml", providers="claude,openai")
    assert read_manifest(folder / "run").arms["all"].models == {"claude": "c", "openai": "o"}
    records = (each.provenance for each in records_from_run(folder / "run"))
    told = Counter(f"{each.arm} {each.repeat}" for each in records if each.model_name == "openai")
    assert told == {" 1": 2, "short 1": 2, "short 2": 1, "long 1": 1, "long 2": 1, "all 1": 2}
    assert [answer for answer in list(read_answers(folder / "run" / "openai.csv")) if answer in first] == first


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (SHORT.replace("Yes or no?", "True?"), ("Yes or no?", "True?")),
        (SHORT.replace("nurse", "teacher"), ("I am a nurse.", "I am a teacher.")),
        (SHORT.replace('"small"', '"tiny"'), ("'small'", "'tiny'")),
        (SHORT.replace("jp", "de"), ("'JP'", "'DE'")),
        (SHORT + '[prompts.fr]\nsystem = "Bref."\n', ("as for other languages", "Bref.")),
    ],
    ids=["template", "persona", "model", "option", "language"],
)
def test_a_changed_arm_is_refused_with_both_and_nothing_sent(folder: Path, changed: str, told: tuple[str, str]) -> None:
    with ProviderServer() as server:
        ask(server, *ARMS[:2])
        before = (folder / "run" / "manifest.json").read_bytes()
        Path("short.toml").write_text(changed, encoding="utf-8")
        done = ask(server, *ARMS[:2])
        assert (done.exit_code, len(server.calls)) == (1, 2)
        assert ask(server, "--arm", "other:short.toml").exit_code == 0
    assert "of the arm 'short'" in done.stderr
    assert all(text in done.stderr for text in told)
    assert done.stderr.count("\n") == 1
    after = (folder / "run" / "manifest.json").read_bytes()
    assert json.loads(before)["arms"]["short"] == json.loads(after)["arms"]["short"]


@pytest.mark.parametrize(
    ("arm", "content", "told"),
    [
        ("x:x.toml", "modle = 'm'", "'x.toml' has an unknown option `modle`; there are `model`, `models`"),
        ("x:x.toml", "[options]\nsearches = 1", "`[options]` has an unknown option `searches`; there are `allowed_dom"),
        ("x:x.toml", "[options]\nmax_uses = 'x'", "the option `max_uses` cannot be used"),
        ("x:x.toml", "[options]\nrecency = 'decade'", "`recency` cannot be used: it needs one of "),
        ("x:x.toml", "[options]\nallowed_domains = 'a.com'", "`[\"a.com\"]`, and 'a.com' was found."),
        ("x:x.toml", "[options]\nblocked_domains = [1]", 'a list of texts, such as `["a.com"]`, and 1 was found'),
        ("x:x.toml", "[options]\nmax_tokens = 'x'", "it needs a whole number"),
        ("x:x.toml", "[options]\ntemperature = 'x'", "it needs a number"),
        ("x:x.toml", "persona = 1", "`persona` that cannot be used: it needs a text"),
        ("x:x.toml", "models = 'm'", "`models` that cannot be used: it needs a table"),
        ("x:x.toml", "[prompts]\nsytem = 'm'", "`prompts.sytem`; there are `system`, `user_template`, `persona`"),
        ("x:x.toml", "[prompts]\nuser_template = 'No place'", "has no `{note_text}`; put it where the narrative"),
        ("x:x.toml", "[prompts.de]\nuser_template = 'Nein'", "`prompts.de.user_template` that cannot be used"),
        ("x:x.toml", "[models]\nopnai = 'm'", "Did you mean 'openai'?"),
        ("x:x.toml", "model = ", "is not TOML in UTF-8"),
        ("x:y.toml", "", "'y.toml' cannot be read: No such file"),
        ("x.toml", "", "is not NAME:FILE.toml"),
        ("../x:x.toml", "", "is not NAME:FILE.toml"),
        (":x.toml", "", "is not NAME:FILE.toml"),
    ],
)
def test_an_arm_of_no_use_is_one_plain_line_and_nothing_sent(folder: Path, arm: str, content: str, told: str) -> None:
    Path("x.toml").write_text(content, encoding="utf-8")
    with ProviderServer() as server:
        done = ask(server, *ARMS, "--arm", arm)
        assert (done.exit_code, len(server.calls), (folder / "run").exists()) == (1, 0, False)
    assert told in done.stderr
    assert "Input should" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_names_that_are_one_and_one_model_for_two_providers_are_refused(folder: Path) -> None:
    with ProviderServer() as server:
        twice = ask(server, *ARMS[:2], *ARMS[:2])
        cases = ask(server, *ARMS[:2], "--arm", "Short:long.toml")
        both = ask(server, *ARMS[:2], providers="openai,claude")
        assert not server.calls
        assert ask(server, *ARMS[:2]).exit_code == 0
        calls = len(server.calls)
        later = ask(server, "--arm", "SHORT:short.toml")
        assert (later.exit_code, len(server.calls)) == (1, calls)
    assert "names 'short' twice" in twice.stderr
    assert "names 'short' and 'Short', which differ only by case" in cases.stderr
    assert "names one `model` for openai, claude" in both.stderr
    assert "has an arm 'short', from which 'SHORT' differs only by case" in later.stderr
    assert list(read_manifest(folder / "run").arms) == ["short"]


def test_a_failed_call_is_told_with_its_arm_and_asked_again(folder: Path) -> None:
    refused = Status(400, {}, {"error": {"message": "no"}})
    with ProviderServer({"openai": [refused, refused]}) as server:
        ask(server, *ARMS, "--concurrency", "1")
        assert [(each.row, each.arm) for each in read_errors(folder / "run")] == [(1, "long"), (1, "short")]
        ask(server, *ARMS[:2])
        assert [(each.row, each.arm) for each in read_errors(folder / "run")] == [(1, "long")]
        ask(server, *ARMS)
        assert not read_errors(folder / "run")
        assert len(server.calls) == 6


def test_an_answer_of_an_arm_costs_what_its_model_costs(folder: Path) -> None:
    prices = json.dumps({name: {"input": 0, "output": price} for name, price in (("small", 1e5), ("large", 2e5))})
    with ProviderServer() as server:
        shown = ask(server, *ARMS, "--dry-run", "--show-bodies", CITEJURY_PRICES=prices)
        done = ask(server, *ARMS, CITEJURY_PRICES=prices)
    [preview] = json.loads(shown.stdout)["providers"]
    assert (preview["calls"], preview["models"]) == (4, {"small": 2, "large": 2})
    assert [each["body"]["model"] for each in preview["requests"].values()] == ["small", "large"]
    assert preview["cost"][1] == pytest.approx((2 * 99 * 1e5 + 2 * 4096 * 2e5) / 1e6)
    assert "spent now 3.00 USD" in done.stderr


def test_stored_payloads_of_an_arm_stand_in_a_folder_of_its_name(folder: Path) -> None:
    for arm in ("short", "long"):
        (folder / "payloads" / arm / "openai").mkdir(parents=True)
        for number, narrative in enumerate(("N1", "N2")):
            path = folder / "payloads" / arm / "openai" / f"{narrative}.json"
            path.write_text(json.dumps(responses_body(number)), encoding="utf-8")
    words = ["pipeline", "ask", "two.csv", "--out", "run", "--replay", "payloads", *ARMS]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert Counter(arm for _, arm, _, _ in places(folder / "run")) == {"short": 2, "long": 2}
    assert read_manifest(folder / "run").arms["short"].options is None
    (folder / "payloads" / "long" / "openai" / "N2.json").write_text("{}", encoding="utf-8")
    assert "have changed since their answers were kept: 1 (long/openai/N2)" in CliRunner().invoke(main, words).stderr


def test_the_three_askers_ask_in_english_german_and_japanese(folder: Path) -> None:
    assert {path.name for path in PERSONAS.iterdir()} == {"neutral.toml", "leading.toml", "malicious.toml"}
    Path("two.csv").write_text(
        "narrative_id,language,prompt\nE,en,Gum stays.\nD,de,Kaugummi bleibt.\nJ,ja,ガムは残る。\n", encoding="utf-8"
    )
    with ProviderServer() as server:
        done = ask(server, *(word for path in PERSONAS.iterdir() for word in ("--arm", f"{path.stem}:{path}")))
        assert done.exit_code == 0, done.output
        assert all([message["role"] for message in call.body["input"]] == ["user"] for call in server.calls)
    asked = {(narrative, arm): prompt for narrative, arm, _, prompt in places(folder / "run")}
    assert len(set(asked.values())) == len(asked) == 9
    assert all("「ガムは残る。」" in asked["J", arm] for arm in ("neutral", "leading", "malicious"))
    assert "„Kaugummi bleibt.“\n\nWas ist darüber bekannt?" in asked["D", "neutral"]
    assert asked["E", "leading"].startswith("I know that this is true:\n\n“Gum stays.”")
