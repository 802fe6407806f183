import json
from pathlib import Path

from click.testing import CliRunner

from exports.cli import main
from pipeline.citations.addresses import canonical_url

SHORT, LONG = "https://honey.test/wiki/", "https://honey.test/wiki/蜂蜜"
BODY = {"choices": [{"message": {"content": f"出典 {LONG} です。"}, "finish_reason": "stop"}], "model": "m"}


def run(*words: str) -> str:
    done = CliRunner().invoke(main, ["pipeline", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_longer_reading_is_taken_where_its_page_was_read(tmp_path: Path) -> None:
    (tmp_path / "payloads" / "openai").mkdir(parents=True)
    (tmp_path / "payloads" / "openai" / "N1.json").write_text(json.dumps(BODY), encoding="utf-8")
    (tmp_path / "n.csv").write_text("narrative_id,prompt\nN1,Is honey safe?\n", encoding="utf-8")
    page, records, asked = tmp_path / "page.txt", tmp_path / "records.jsonl", tmp_path / "run"
    page.write_text("蜂蜜は一歳から安全です。" * 20, encoding="utf-8")
    run("ask", str(tmp_path / "n.csv"), "--replay", str(tmp_path / "payloads"), "--out", str(asked))
    (line,) = map(json.loads, (asked / "citations.jsonl").read_text(encoding="utf-8").splitlines())
    assert (line["url"], line["longer_url"]) == (SHORT, LONG)
    for added, reason in (((), "not_tried"), (("--add", LONG, str(page)), "added")):
        shown = run("sources", str(asked), "--out", str(records), "--offline", *added)
        (source,) = json.loads(records.read_text(encoding="utf-8"))["sources"]
        assert (source["url"], source["reason"]) == (SHORT, reason)
        assert source["page_url"] == (canonical_url(LONG) if added else "")
        assert "No answer cites" not in shown
