"""What an audit does to the labels of controls: by hand, and as the command tells it."""

import json
from pathlib import Path

from exports.csv.rows import csv_line
from exports.csv.schema import CONTROL_COLUMNS
from exports.report.judge_page import audit_sentences
from exports.statistics.consensus import ControlVotes, measure_audit
from tests.exports.report.test_agreement_command import write_export
from tests.exports.statistics.test_agreement_judge import run

SHA = "0123456789abcdef" * 4


def test_controls_are_right_before_and_after_by_hand() -> None:
    said = {"k0": (3, 0), "k1": (3, 0), "k2": (2, 1), "k3": (1, 2), "k4": (0, 3), "k9": (1, 1)}
    controls = {("generation", name, "", "helpful"): ControlVotes(True, *votes) for name, votes in said.items()}
    # Most say yes, which is known, to three of five. Adjudicators mend k3 and spoil k0; the tie of k9 is left out.
    decisions = {("k3", "", "helpful"): True, ("k0", "", "helpful"): False, ("k1", "", "helpful"): True}
    found = measure_audit(controls, decisions | {("r1", "", "helpful"): True}, 2, SHA)  # type: ignore[arg-type]
    (label,) = found.labels
    assert (found.version_before, found.version_after) == ("votes", "votes+0123456789ab")
    assert (label.n_decided, label.n_changed, label.n_ties) == (3, 2, 1)
    assert (label.before.n_right, label.before.n, label.after.n_right) == (3, 5, 3)
    first, second = audit_sentences(found)
    assert first.startswith("Labels votes+0123456789ab: 4 decisions of adjudicators, 2 of them where a judge")
    assert "60 %" in second
    assert second.endswith("2 of 3 decided against the majority, 1 left out because annotators tie.")
    nothing = measure_audit({}, {("r1", "", "helpful"): True}, 0, SHA)
    assert nothing.labels == ()
    assert list(audit_sentences(nothing))[-1].startswith("Whether the labels are better for it cannot be told")


def test_the_command_tells_it_everywhere(tmp_path: Path) -> None:
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    rows = [
        {
            **dict.fromkeys(CONTROL_COLUMNS, ""),
            **{"record_uuid": f"k{number}", "task": "generation", "annotator_id": name, "kind": "known"},
            **{"label": "helpful", "known": "True", "given": str(place < yes), "language": "en"},
        }
        for number, yes in enumerate([3, 2, 1, 0])
        for place, name in enumerate(("anna", "ben", "carla"))
    ]
    lines = [csv_line(CONTROL_COLUMNS), *(csv_line([row[column] for column in CONTROL_COLUMNS]) for row in rows)]
    (export / "controls.csv").write_bytes(b"".join(lines))
    decisions = tmp_path / "decisions.csv"
    decisions.write_text(
        "task,record_uuid,chunk_id,label,decision,adjudicator,created_at,disputed\n"
        "generation,k2,,helpful,True,dora,2025-03-08T23:43:00+00:00,True\n",
        encoding="utf-8",
    )
    result = run(export, "--out", out, "--decisions", decisions)
    assert result.exit_code == 0, result.output
    audit = json.loads((out / "agreement.json").read_text(encoding="utf-8"))["audit"]
    (label,) = audit["labels"]
    assert (audit["n_disputed"], label["before"]["n_right"], label["after"]["n_right"]) == (1, 2, 3)
    assert audit["version_after"].startswith("votes+")
    texts = [result.stdout, *((out / name).read_text(encoding="utf-8") for name in ("agreement.md", "details.html"))]
    assert all("right before the audit" in " ".join(text.split()) for text in texts)
