"""Status of people: what controls tell about each, whom practice keeps out and what waits for them, at 80 columns."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from annotation.campaign.setup import set_up
from annotation.client import Argilla
from annotation.embedded.launch import ServerHandle
from annotation.labels import LABELS
from annotation.status.escalation import escalate
from annotation.status.schema import Status
from annotation.status.scores import ControlAnswer, score_answers
from annotation.status.summary import read_status
from annotation.status.text import ANNOTATOR_HEAD, render_page, status_lines, table
from exports.cli import main
from pipeline.errors import InputError
from tests.support.practice_campaign import Practised, practised

EMPTY = Status(
    citejury="1",
    server="http://127.0.0.1:1",
    moment="2026-11-22T12:00:00+00:00",
    workspaces=("w",),
    needed=0,
    reachable=0,
    done_today=0,
    finish=None,
    no_finish="nothing is wanting",
    datasets=(),
    annotators=(),
    questions=(),
    notices=(),
)


def known_answers(who: str, kind: str, pairs: list[tuple[bool, bool]]) -> list[ControlAnswer]:
    return [
        ControlAnswer(who, "generation", "helpful", kind, f"{kind}{number}", known, given)
        for number, (known, given) in enumerate(pairs)
    ]


def scored(who: str) -> Status:
    planted = known_answers(who, "number", [*[(True, True)] * 7, (True, False), *[(False, False)] * 8])
    again = known_answers(who, "repeat", [(True, True)] * 3 + [(True, False)])
    return EMPTY.model_copy(update={"controls": score_answers([*planted, *again])})


@pytest.mark.parametrize("who", ["ben", "carla-maria.gonzalez@institute.example", "小林 花子" * 5])
def test_what_controls_tell_about_each_person_is_in_text_and_page_and_fits_80_columns(who: str) -> None:
    status = scored(who)
    lines = list(status_lines(status))
    (row,) = [line for line in lines if "88% [53, 98]" in line]
    assert row.startswith(who[:3])
    assert row.endswith("16  88% [53, 98]  100% [68, 100]        4   75% [30, 95]")
    assert any("sensitivity" in line and "specificity" in line and "self-consist." in line for line in lines)
    assert max(map(cell_len, lines)) <= 80
    page = render_page(status)
    assert all(said in page for said in (who, "88% [53, 98]", "100% [68, 100]", "75% [30, 95]", "Self-consistency"))


def test_nothing_is_said_of_controls_where_nobody_answered_any() -> None:
    assert "sensitivity" not in "".join(status_lines(EMPTY))
    assert "Sensitivity" not in render_page(EMPTY)


def test_a_table_fits_80_columns_with_figures_of_any_length_and_tells_datasets_apart() -> None:
    names = [f" calibration-{number}-{task}-en" for number, task in enumerate(LABELS, 1)]
    rows = [(name, "1000", "12000", "1000", "1000", "1000", "1234", "1000", "100") for name in names]
    lines = list(table(ANNOTATOR_HEAD, rows))
    assert max(map(cell_len, lines)) <= 80
    assert all(f"{task}-en" in line for task, line in zip(LABELS, lines[1:], strict=True))


def keeping_out(owner: Argilla) -> Practised:
    """Anna has passed the practice of retrieval and labelled all three passages, ben has failed it."""
    work = practised(owner, tasks=["retrieval"], cases=1)
    work.practise("anna", "practice-1-retrieval-en")
    work.practise("ben", "practice-1-retrieval-en", wrong=3)
    dataset = work.dataset("1-retrieval-en")
    owner.request("PATCH", f"/datasets/{dataset}", json={"distribution": {"strategy": "overlap", "min_submitted": 2}})
    return work


def look(work: Practised) -> Status:
    return read_status(work.owner, [work.workspace], datetime.now(UTC))


@pytest.mark.server
def test_who_is_below_the_pass_mark_is_named_with_the_work_that_waits_for_her(owner: Argilla) -> None:
    work = keeping_out(owner)
    status = look(work)
    (retrieval,) = [each for each in status.datasets if each.task == "retrieval"]
    units = retrieval.records
    assert (retrieval.needed, retrieval.reachable, retrieval.kept_out, retrieval.unreachable) == (
        *(2 * units, units, units),
        0,
    )
    pending = {each.annotator: each.pending for each in retrieval.annotators}
    assert pending == {work.names["anna"]: units, work.names["ben"]: 0}
    (notice,) = [each for each in status.notices if each.kind == "practice"]
    assert notice.annotators == (work.names["ben"],)
    assert f"{units} submissions" in notice.text
    assert f"{work.names['ben']} (0 of 3 answers right, 3 wanted)" in notice.text
    assert "1-retrieval-en" in notice.text
    assert "citejury annotation practice open" in notice.text
    said = " ".join(" ".join(status_lines(status)).split())
    assert f"{units} of the submissions wait for people who have not passed their practice" in said


@pytest.mark.server
def test_a_dataset_that_waits_for_nobody_else_has_no_finish_and_that_reason(owner: Argilla) -> None:
    work = keeping_out(owner)
    yes = {label: {"value": "yes" if label == "topically_relevant" else "no"} for label in LABELS["retrieval"]}
    with work.herself("anna") as anna:
        while waiting := work.queue("anna", "1-retrieval-en"):
            for record_id in waiting:
                anna.request("POST", f"/records/{record_id}/responses", json={"status": "submitted", "values": yes})
    (retrieval,) = [each for each in look(work).datasets if each.task == "retrieval"]
    assert (retrieval.reachable, retrieval.kept_out, retrieval.finish) == (0, retrieval.records, None)
    assert retrieval.no_finish == "what is wanting waits for people who have not passed its practice"


@pytest.mark.server
def test_practice_keeps_nobody_out_once_it_is_passed_or_opened(owner: Argilla) -> None:
    from annotation.status.practice import open_for, practice_datasets

    work = keeping_out(owner)
    (dataset,) = practice_datasets(owner, [work.workspace])
    open_for(owner, dataset, next(each["id"] for each in owner.users() if each["username"] == work.names["ben"]))
    status = look(work)
    assert not [each for each in status.notices if each.kind == "practice"]
    assert [each.kept_out for each in status.datasets if each.task == "retrieval"] == [0]


@pytest.mark.server
def test_a_split_unit_is_not_given_to_whom_the_list_is_closed(owner: Argilla) -> None:
    work = practised(owner, {"anna": [], "ben": [], "clara": []}, tasks=["generation"], cases=1)
    dataset = work.dataset("3-generation-en")
    owner.request("PATCH", f"/datasets/{dataset}", json={"distribution": {"strategy": "overlap", "min_submitted": 2}})
    for who in ("anna", "ben"):
        work.practise(who, "practice-3-generation-en")
    (first, *_) = work.queue("anna", "3-generation-en")
    for who, said in (("anna", "yes"), ("ben", "no")):
        values = {label: {"value": said if label == "helpful" else "no"} for label in LABELS["generation"]}
        with work.herself(who) as herself:
            herself.request("POST", f"/records/{first}/responses", json={"status": "submitted", "values": values})
    with pytest.raises(InputError, match="has not passed its practice"):
        escalate(owner, [work.workspace], dry_run=True)
    work.practise("clara", "practice-3-generation-en")
    found = {each.dataset: dict(each.takers) for each in escalate(owner, [work.workspace], dry_run=True)}
    assert found["3-generation-en"] == {work.names["clara"]: 1}


@pytest.mark.server
def test_the_next_step_of_a_status_is_what_the_campaign_lacks(
    owner: Argilla, argilla_server: ServerHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    empty = f"next-{uuid4().hex[:8]}"
    set_up(owner, empty)
    work = practised(owner, tasks=["generation"], cases=1)

    def last_line(workspace: str) -> str:
        words = ["annotation", "status", "--workspace", workspace, "--api-url", owner.api_url]
        return CliRunner().invoke(main, words).stderr.splitlines()[-1]

    assert last_line(empty) == "Next: citejury annotation push RECORDS.jsonl"
    assert last_line(work.workspace) == "Next: citejury annotation share --out sheets"
    (first, *_) = work.queue("anna", "2-grounding-en")
    values = {label: {"value": "no"} for label in LABELS["grounding"]}
    with work.herself("anna") as anna:
        anna.request("POST", f"/records/{first}/responses", json={"status": "submitted", "values": values})
    assert last_line(work.workspace) == "Next: citejury exports csv export"
