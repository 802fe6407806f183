import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from exports.cli import main
from pipeline.asking.questions import Arm, plan_calls
from pipeline.asking.run_folder import read_manifest
from pipeline.core.errors import SettingsError
from pipeline.core.prompts import DEFAULT_PROMPTS, SYSTEM_PROMPT, PromptSettings, text_digest
from pipeline.core.schema import PROVIDERS, Narrative
from pipeline.csv.file import read_answers
from pipeline.records.run import records_from_run
from pipeline.settings import read_settings
from tests.support.ask_bench import run_ask
from tests.support.places import NO_SHARED, ROOT, SHARED
from tests.support.provider_server import ProviderServer

CLAIMS = SHARED / "corpora" / "ratings" / "climate-fever.jsonl"
GERMAN = "Wer an kalten Tagen ohne Mütze aus dem Haus geht, bekommt davon eine Erkältung."
ENGLISH = "Who leaves the house without a hat on cold days catches a cold from doing so."
SETTINGS = """
[prompts]
system = "Cite {note_text} and {x}."
user_template = '{x} "{note_text}" {note_text}?'
[prompts.de]
user_template = "Stimmt das: {note_text}"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("narrative_id,prompt\nN1,A {x} b\n", encoding="utf-8")
    Path("two.csv").write_text(f'narrative_id,prompt\nN1,{ENGLISH}\nN2,"{GERMAN}"\n', encoding="utf-8")
    Path("told.csv").write_text("narrative_id,language,prompt\nN1,,A\nN2,de-AT,A\nN3,German,A\n", encoding="utf-8")
    return tmp_path


def test_prompts_of_the_settings_go_to_all_five_letter_by_letter_and_the_manifest_keeps_them(folder: Path) -> None:
    Path("citejury.toml").write_text(SETTINGS, encoding="utf-8")
    model = ("--model", "perplexity=maker/model")
    with ProviderServer() as server:
        done = run_ask(server, "one.csv", "--out", "run", *model, providers=",".join(PROVIDERS))
        assert done.exit_code == 0, done.output
        for provider in PROVIDERS:
            bodies = " ".join(json.dumps(call.body, ensure_ascii=False) for call in server.calls_of(provider))
            assert '{x} \\"A {x} b\\" A {x} b?' in bodies
            assert "Cite {note_text} and {x}." in bodies
        run_ask(server, "one.csv", "--out", "run", "--repeats", "2", *model)
    for provider in PROVIDERS:
        prompts = {answer.answer_prompt for answer in read_answers(folder / "run" / f"{provider}.csv")}
        assert prompts == {'{x} "A {x} b" A {x} b?'}
    kept = json.loads((folder / "run" / "manifest.json").read_text(encoding="utf-8"))["prompts"]
    assert kept["system"] == "Cite {note_text} and {x}."
    assert kept["languages"]["de"]["user_template"] == "Stimmt das: {note_text}"
    assert set(kept["sha256"]) == {"system", "user_template", "persona", "de.user_template"}
    assert kept["sha256"]["system"] == text_digest(kept["system"])


def test_files_take_the_place_of_settings_in_every_language(folder: Path) -> None:
    Path("citejury.toml").write_text(SETTINGS, encoding="utf-8")
    Path("system.txt").write_bytes("\ufeffSay “yes”\r\nor no.\r\n".encode())
    Path("template.txt").write_text("True? {note_text}\n", encoding="utf-8")
    prompts = ("--system-prompt", "system.txt", "--user-template", "template.txt")
    with ProviderServer() as server:
        assert run_ask(server, "two.csv", "--out", "run", *prompts).exit_code == 0
        sent = sorted(tuple(message["content"] for message in call.body["input"]) for call in server.calls)
        Path("system.txt").write_text("", encoding="utf-8")  # an empty one is not sent
        run_ask(server, "one.csv", "--out", "other", *prompts)
        assert [message["role"] for message in server.calls[-1].body["input"]] == ["user"]
    assert sent == [("Say “yes”\nor no.", f"True? {text}") for text in (GERMAN, ENGLISH)]


def test_each_narrative_is_asked_in_the_words_of_its_language(folder: Path) -> None:
    Path("citejury.toml").write_text(SETTINGS, encoding="utf-8")
    with ProviderServer() as server:
        run_ask(server, "two.csv", "--out", "run")
        run_ask(server, "told.csv", "--out", "other", "--yes")
    by_text = {answer.narrative_prompt: answer.answer_prompt for answer in read_answers(folder / "run" / "openai.csv")}
    assert by_text == {GERMAN: f"Stimmt das: {GERMAN}", ENGLISH: f'{{x}} "{ENGLISH}" {ENGLISH}?'}
    told = [answer.answer_prompt for answer in read_answers(folder / "other" / "openai.csv")]
    assert told == ['{x} "A" A?', "Stimmt das: A", '{x} "A" A?']


def told_languages(sentences: list[str]) -> Counter[str]:
    """How often the sentences are put in the words of each language, `und` those for all."""
    prompts = DEFAULT_PROMPTS.changed_by(
        PromptSettings.model_validate({code: {"user_template": f"{code} {{note_text}}"} for code in ("en", "de", "ja")})
    )
    narratives = [Narrative(narrative_id="N", prompt=text, line=2) for text in sentences]
    asked = plan_calls("9f0e3b0a-6f0e-4b55-9e0a-7d6b1f4a2c11", "openai", narratives, [Arm(prompts=prompts)])
    found = ((call.prompt[:2], call.prompt[2:].strip() == call.narrative.prompt.strip()) for call in asked)
    return Counter(code if is_own else "und" for code, is_own in found)


@pytest.mark.parametrize("code", ["en", "de", "ja"])
def test_no_sentence_of_our_guidelines_is_put_in_the_words_of_another_language(code: str) -> None:
    sentences = [
        sentence.strip()
        for path in sorted((ROOT / "annotation" / "tasks").glob(f"*.{code}.md"))
        for line in re.sub(r"<[^>]*>|&\w+;|[#*`_|\[\]-]", " ", path.read_text(encoding="utf-8")).splitlines()
        for sentence in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", line)
        if len(sentence.strip()) >= 20
    ]
    told = told_languages(sentences)
    assert set(told) <= {code, "und"}
    assert told[code] > 0.8 * len(sentences) > 80


@pytest.mark.skipif(not CLAIMS.is_file(), reason=NO_SHARED)
def test_no_english_claim_is_put_in_the_words_of_another_language() -> None:
    claims = [json.loads(line)["claim"] for line in CLAIMS.read_text(encoding="utf-8").splitlines()]
    assert told_languages(claims) == {"en": 1513, "und": 22}


def test_a_prompt_that_changed_is_refused_with_both_and_nothing_is_sent(folder: Path) -> None:
    Path("system.txt").write_text("You are brief, and cite.", encoding="utf-8")
    with ProviderServer() as server:
        run_ask(server, "one.csv", "--out", "run")
        before = (folder / "run" / "manifest.json").read_bytes()
        for words in (["--system-prompt", "system.txt"], ["--system-prompt", "system.txt", "--dry-run"]):
            done = run_ask(server, "one.csv", "--out", "run", *words)
            assert done.exit_code == 1
            assert "You check statements" in done.stderr
            assert "You are brief, and cite." in done.stderr
            assert text_digest(SYSTEM_PROMPT)[:12] in done.stderr
            assert done.stderr.count("\n") == 1
        assert (len(server.calls), run_ask(server, "one.csv", "--out", "run").exit_code) == (1, 0)
    assert json.loads(before)["prompts"] == read_manifest(folder / "run").model_dump()["prompts"]


def test_a_run_of_before_prompts_could_be_set_was_asked_with_the_default(folder: Path) -> None:
    with ProviderServer() as server:
        run_ask(server, "one.csv", "--out", "run")
        path = folder / "run" / "manifest.json"
        manifest = json.loads(path.read_text(encoding="utf-8"))
        del manifest["prompts"], manifest["arms"]
        path.write_text(json.dumps(manifest), encoding="utf-8")
        assert [each.provenance.repeat for each in records_from_run(folder / "run")] == ["1"]
        assert "1 kept, 0 new" in run_ask(server, "one.csv", "--out", "run").stderr
        Path("citejury.toml").write_text(SETTINGS, encoding="utf-8")
        assert "is given now" in run_ask(server, "one.csv", "--out", "run").stderr
        assert len(server.calls) == 1


def test_prompts_may_change_while_nothing_was_answered(folder: Path) -> None:
    (folder / "payloads" / "grok").mkdir(parents=True)
    words = ["pipeline", "ask", "one.csv", "--out", "run", "--replay", "payloads"]
    assert CliRunner().invoke(main, words).exit_code == 1
    Path("template.txt").write_text("{note_text}?", encoding="utf-8")
    done = CliRunner().invoke(main, [*words, "--user-template", "template.txt"])
    assert "Nothing was answered" in done.stderr
    kept = read_manifest(folder / "run").prompts
    assert kept is not None
    assert kept.user_template == "{note_text}?"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"Is this right?", "has no `{note_text}`; put it where the narrative belongs."),
        (b"{note_text}\0", "holds a NUL character"),
        (b"{note_text} \xff", "is not UTF-8 (byte 12)"),
        (None, "cannot be read: No such file or directory."),
    ],
)
def test_a_template_that_cannot_be_used_is_one_plain_line(folder: Path, content: bytes | None, told: str) -> None:
    if content is not None:
        Path("template.txt").write_bytes(content)
    with ProviderServer() as server:
        done = run_ask(server, "one.csv", "--out", "run", "--user-template", "template.txt")
        assert (done.exit_code, len(server.calls), (folder / "run").exists()) == (1, 0, False)
    assert told in done.stderr
    assert "'template.txt'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (
            'user_template = "No place"',
            "`[prompts] user_template` in `citejury.toml` cannot be used: The user template",
        ),
        ('sytem = "x"', "has an unknown setting `[prompts] sytem`; there are `system`, `user_template`"),
        ("system = 1", "`[prompts] system`"),
        ("[prices.x]\ninptu = 3", "unknown setting `[prices.x] inptu`; there are `input`, `output`, `search`"),
        ("[prompts.de]\npersona = 1", "`[prompts.de] persona` in `citejury.toml`"),
        ('[prompts.de]\nsytem = "x"', "unknown setting `[prompts.de] sytem`; there are `system`, `user_template`"),
        ('[prices."gpt-4.1"]\ninput = 1\noutput = 1\nserach = 1', '`[prices."gpt-4.1"] serach`; there are `input`'),
        ('[prompts.de]\nuser_template = "Nichts"', "`[prompts.de] user_template` in"),
        ('[prompts.german]\nsystem = "x"', "`[prompts] german`; there are"),
    ],
)
def test_settings_that_are_no_prompts_are_refused(table: str, told: str) -> None:
    Path("citejury.toml").write_text(f"[prompts]\n{table}\n", encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert told in str(caught.value)
    assert "CITEJURY_" not in str(caught.value)
    assert "languages.de" not in str(caught.value)


def test_an_unknown_setting_and_a_variable_that_is_no_table_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("citejury.toml").write_text('openia_api = "chat"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="unknown setting `openia_api`; there are `api_url`, `workspace`"):
        read_settings()
    Path("citejury.toml").unlink()
    monkeypatch.setenv("CITEJURY_PROMPTS", "x")
    with pytest.raises(SettingsError, match="`CITEJURY_PROMPTS` is not JSON"):
        read_settings()


@pytest.mark.parametrize("table", ["models", "base_urls"])
def test_a_provider_that_the_settings_spell_wrong_is_one_line_that_names_the_file(folder: Path, table: str) -> None:
    Path("citejury.toml").write_text(f'[{table}]\nopenia = "https://h"\n', encoding="utf-8")
    with ProviderServer() as server:
        done = run_ask(server, "one.csv", "--out", "run")
        assert not server.calls
    assert (
        done.stderr == f"Error: `[{table}]` in `citejury.toml`: There is no provider 'openia'. Did you mean 'openai'?\n"
    )


def test_what_was_sent_is_kept_letter_by_letter_whatever_a_narrative_holds(folder: Path) -> None:
    text = "a\r\nb\rc\u2028\t ,\";' {note_text} {0} \ufffd 🙂 "
    with open("one.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("narrative_id", "prompt"), ("N1", text), ("N1", text)])
    Path("template.txt").write_text("\t{note_text}\u0085|{note_text} ", encoding="utf-8")
    with ProviderServer() as server:
        run_ask(server, "one.csv", "--out", "run", "--user-template", "template.txt", "--repeats", "2", "--yes")
        prompts = {call.body["input"][-1]["content"] for call in server.calls}
    assert prompts == {f"\t{text}\u0085|{text} "}
    assert {answer.answer_prompt for answer in read_answers(folder / "run" / "openai.csv")} == prompts
    assert [record.provenance.repeat for record in records_from_run(folder / "run")] == ["1", "2"] * 2


def test_what_is_given_for_one_language_stays_beside_what_is_given_for_all() -> None:
    first = DEFAULT_PROMPTS.changed_by(
        PromptSettings.model_validate({"de": {"system": "S", "persona": "Ich bin Arzt."}})
    )
    then = first.changed_by(PromptSettings(system="T", persona="I teach."))
    assert (then.system_prompt("de"), then.system_prompt()) == ("T", "T")
    assert first.user_prompt("Hm", "de").startswith("Ich bin Arzt.\n\nHm\n\n")
    assert then.user_prompt("Hm").startswith("I teach.\n\nHm\n\n")
    assert then.changed_by(PromptSettings()) == then
