"""Status: what it counts and what it says of people, on a real server; names and notes stay text wherever they are."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TaskName
from annotation.argilla.units import read_units, rows_page, units_with_texts
from annotation.campaign.setup import set_up
from annotation.quality.escalation import escalate
from annotation.quality.schema import DatasetStatus, Status
from annotation.quality.scores import ControlAnswer, score_answers
from annotation.quality.submissions import Backlog, Submission, Work, forecasts, last_of, work_today
from annotation.quality.summary import read_status
from annotation.quality.text import ANNOTATOR_HEAD, render_page, status_lines, table
from annotation.server.launch import ServerHandle
from exports.cli import main
from pipeline.core.errors import ArgillaError, InputError, NotAllowedError, NotFoundError
from tests.support.export_bench import Bench, answers, full_bench, make_user, record
from tests.support.lossy_link import Forward, lossy_link
from tests.support.page_driver import events, hosts_asked, screenshot, start_browser
from tests.support.practice_campaign import Practised, practised

if TYPE_CHECKING:
    pass


HOSTILE = '? <img src=x onerror="document.title=1">\x1b[31m</p><script>document.title=2</script> \u202egnihtyna'
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def bench(argilla_server: "ServerHandle") -> Iterator[Bench]:
    """Three passages of one answer and two answers to ground, waiting for two annotators; a third one has left."""
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as client:
        users = {name: make_user(client, name)["id"] for name in ("ana", "ben", "gone")}
        made = full_bench(argilla_server, client, users)
        for name in ("ana", "ben"):
            client.request("POST", f"/workspaces/{made.workspace_id}/users", json={"user_id": users[name]})
        for dataset_id in made.datasets.values():
            body = {"distribution": {"strategy": "overlap", "min_submitted": 2}}
            client.request("PATCH", f"/datasets/{dataset_id}", json=body)
        yes = answers("retrieval", topically_relevant="yes")
        rule = answers("retrieval", evidence_sufficient="yes")
        made.put(
            "retrieval",
            record("retrieval", "r1", made.response("ana", **yes), made.response("gone", **rule), rank=1),
            record("retrieval", "r1", made.response("ana", **yes), made.response("ben", "discarded"), rank=2),
            record("retrieval", "r1", rank=3),
        )
        asking = made.response("ben", "draft", notes=HOSTILE)
        asked = made.response("ana", **answers("grounding"), notes="？どう判断しますか")
        made.put("grounding", record("grounding", "r1", asking), record("grounding", "r2", asked))
        yield made


def look(bench: Bench, **options: object) -> Status:
    return read_status(bench.client, [bench.workspace], datetime.now(UTC), **options)  # type: ignore[arg-type]


def dataset(status: Status, task: str) -> DatasetStatus:
    (found,) = [each for each in status.datasets if each.task == task]
    return found


def named(text: str) -> str:
    """The name that `make_user` began with."""
    return text.rsplit("-", 1)[0]


@pytest.mark.server
def test_a_record_is_done_when_enough_different_annotators_submitted_it(bench: Bench) -> None:
    status = look(bench)
    retrieval = dataset(status, "retrieval")
    assert status.finish == max(each.finish for each in status.datasets if each.finish)
    assert (retrieval.records, retrieval.overlap_reached, retrieval.pending, retrieval.needed) == (3, 1, 2, 3)
    assert (retrieval.done, retrieval.drafts, retrieval.discarded, retrieval.done_today) == (3, 0, 1, 3)
    assert [each.model_dump() for each in retrieval.half_done] == [{"record_uuid": "r1", "units": 3, "done": 1}]


@pytest.mark.server
def test_a_record_that_too_few_are_left_for_is_told_and_is_no_part_of_the_forecast(bench: Bench) -> None:
    status = look(bench)
    retrieval = dataset(status, "retrieval")
    assert (retrieval.needed, retrieval.reachable, retrieval.unreachable) == (3, 2, 1)
    assert retrieval.finish
    assert retrieval.done_today == 3
    assert any(notice.kind == "unreachable" and "1-retrieval-en: 1" in notice.text for notice in status.notices)


@pytest.mark.server
def test_each_annotator_has_her_own_figures_and_one_who_left_has_nothing_pending(bench: Bench) -> None:
    found = {named(each.annotator): each for each in dataset(look(bench), "retrieval").annotators}
    assert [(name, each.done, each.pending, each.discarded, each.is_member) for name, each in found.items()] == [
        ("ana", 2, 1, 0, True),
        ("ben", 0, 1, 1, True),
        ("gone", 1, 0, 0, False),
    ]
    assert found["gone"].broken_rules == {"evidence_requires_relevance": 1}
    assert found["ana"].broken_rules == {}


@pytest.mark.server
def test_who_labels_in_another_language_has_nothing_pending_here(bench: Bench) -> None:
    ben = next(name for name in bench.client.usernames().values() if name.startswith("ben-") and name in who(bench))
    found = {each.annotator: each for each in look(bench, languages={ben: ("de",)}).annotators}
    assert (found[ben].pending, found[ben].is_member) == (0, False)


def who(bench: Bench) -> set[str]:
    return {user["username"] for user in bench.client.workspace_users(bench.workspace_id)}


@pytest.mark.server
def test_notes_that_begin_with_a_question_mark_are_questions_word_for_word(bench: Bench) -> None:
    found = {(named(each.annotator), each.record_uuid, each.status): each.text for each in look(bench).questions}
    assert found == {("ben", "r1", "draft"): HOSTILE, ("ana", "r2", "submitted"): "？どう判断しますか"}


@pytest.mark.server
def test_our_own_endpoint_and_what_any_argilla_offers_say_the_same(bench: Bench) -> None:
    told: list[str] = []
    for dataset_id in bench.datasets.values():
        units = list(read_units(bench.client, dataset_id, lambda: told.append("slow")))
        assert units == list(units_with_texts(bench.client, dataset_id))
    assert not told


class StockArgilla(Forward):
    """The same server without our endpoint: it answers as it does for any path that it does not know."""

    def do_GET(self) -> None:
        self.path = self.path.replace("/citejury/", "/unknown/")
        self.forward()


@pytest.mark.server
def test_a_stock_argilla_gives_the_same_status_and_it_is_told_that_it_takes_longer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGILLA_API_KEY", bench.server.owner_api_key)
    words = ["annotation", "status", "--json", "--workspace", bench.workspace, "--api-url"]
    own = CliRunner().invoke(main, [*words, bench.server.url])
    with lossy_link(bench.server.url) as link:
        link.RequestHandlerClass = StockArgilla
        stock = CliRunner().invoke(main, [*words, link.url])
    assert stock.stderr.count("it takes longer") == 1
    assert "it takes longer" not in own.stderr
    assert Status.model_validate_json(stock.stdout).questions == Status.model_validate_json(own.stdout).questions
    counted = [
        [(each.records, each.needed, each.done, each.half_done, each.broken_rules) for each in status.datasets]
        for status in map(Status.model_validate_json, (stock.stdout, own.stdout))
    ]
    assert counted[0] == counted[1]


@pytest.mark.server
def test_our_own_endpoint_goes_on_where_a_page_ended(bench: Bench) -> None:
    path = f"/citejury/datasets/{bench.datasets['retrieval']}/units"
    ids: list[str] = []
    after = None
    while True:
        page = bench.client.request("GET", path, params={"limit": 1} | ({"after": after} if after else {}))
        ids += [external_id for _, external_id, *_ in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert ids == ["r1:c1", "r1:c2", "r1:c3"]
    for after in ("nonsense", f"2026-11-22T00:00:00+01:00_{UUID(int=0)}", "2026-11-22' OR 1=1 --_x"):
        with pytest.raises(ArgillaError, match="422"):
            rows_page(bench.client, bench.datasets["retrieval"], after)


@pytest.mark.server
def test_our_own_endpoint_answers_no_annotator_and_holds_no_text(bench: Bench) -> None:
    path = f"/citejury/datasets/{bench.datasets['retrieval']}/units"
    sent = json.dumps(bench.client.request("GET", path))
    assert "r1:c1" in sent
    assert "chunk of" not in sent
    keys = {user["id"]: user["api_key"] for user in bench.client.request("GET", "/users")["items"]}
    with (
        Argilla(bench.server.url, keys[bench.annotators["ana"]]) as annotator,
        pytest.raises(NotAllowedError),
    ):
        annotator.request("GET", path)


@pytest.mark.server
def test_our_own_endpoint_answers_admins_of_the_workspace_and_no_other_admin(bench: Bench) -> None:
    path = f"/citejury/datasets/{bench.datasets['retrieval']}/units"
    admin, other = (make_user(bench.client, name, "admin") for name in ("admin", "other"))
    bench.client.request("POST", f"/workspaces/{bench.workspace_id}/users", json={"user_id": admin["id"]})
    with Argilla(bench.server.url, admin["api_key"]) as key:
        assert len(key.request("GET", path)["items"]) == 3
    with Argilla(bench.server.url, other["api_key"]) as key, pytest.raises(NotAllowedError):
        key.request("GET", path)
    bench.client.request("DELETE", f"/workspaces/{bench.workspace_id}/users/{admin['id']}")


@pytest.mark.server
def test_a_round_is_looked_at_alone_and_an_unknown_one_is_named(bench: Bench) -> None:
    set_up(bench.client, bench.workspace, round_name="calibration")
    assert {each.round for each in look(bench).datasets} == {"calibration", "production"}
    assert {each.round for each in look(bench, rounds=["production"]).datasets} == {"production"}
    with pytest.raises(NotFoundError, match=r"round 'pilot'.*calibration, production"):
        look(bench, rounds=["pilot"])


@pytest.mark.server
def test_the_command_prints_tables_json_and_a_page(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGILLA_API_KEY", bench.server.owner_api_key)
    page = tmp_path / "status.html"
    words = ["annotation", "status", "--workspace", bench.workspace, "--api-url", bench.server.url]
    shown = CliRunner().invoke(main, [*words, "--html", str(page)])
    assert shown.exit_code == 0, shown.output
    assert re.search(r"^retrieval +1 +3 +2 ", shown.stdout, re.MULTILINE)
    assert "Questions to the lead: 2" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert "\u202e" not in shown.stdout
    assert "Content-Security-Policy" in page.read_text(encoding="utf-8")
    printed = CliRunner().invoke(main, [*words, "--json"])
    assert Status.model_validate_json(printed.stdout).workspaces == (bench.workspace,)
    assert bench.server.owner_api_key not in printed.output + shown.output + page.read_text(encoding="utf-8")


@pytest.mark.server
def test_what_needs_a_look_is_told_in_all_forms_and_is_the_exit_code_where_wanted(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGILLA_API_KEY", bench.server.owner_api_key)
    status = look(bench)
    kinds = {notice.kind: notice for notice in status.notices}
    assert {"empty", "unreachable", "questions"} <= kinds.keys()
    assert f"{bench.workspace}/3-generation-en" in kinds["empty"].text
    assert sorted(map(named, kinds["questions"].annotators)) == ["ana", "ben"]
    shown = " ".join(" ".join(status_lines(status)).split())
    page = " ".join(render_page(status).replace("&#39;", "'").replace("&#34;", '"').split())
    assert all(" ".join(notice.text.split()) in shown for notice in status.notices)
    assert "Needs a look" in page
    words = ["annotation", "status", "--workspace", bench.workspace, "--api-url", bench.server.url]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert CliRunner().invoke(main, [*words, "--strict", "--json"]).exit_code == 1


@pytest.mark.server
@pytest.mark.browser
def test_the_page_runs_nothing_asks_nobody_and_fits_a_telephone(bench: Bench, tmp_path: Path) -> None:
    page = tmp_path / "status.html"
    text = render_page(look(bench))
    page.write_text(text, encoding="utf-8")
    (tmp_path / "without-policy.html").write_text(re.sub(r"<meta http-equiv=[^>]*>", "", text), encoding="utf-8")
    browser = start_browser(tmp_path / "profile")
    try:
        for name in ("status.html", "without-policy.html"):
            browser.get(f"file://{tmp_path / name}")
            assert browser.title == f"Status: {bench.workspace}"
            assert "onerror" in browser.find_element("tag name", "main").text
            assert not browser.find_elements("css selector", "img, script, a")
        for width, height in ((1400, 1200), (500, 1600), (400, 1600)):
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 760}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            assert int(browser.find_element("tag name", "html").get_property("scrollWidth")) <= width  # type: ignore[arg-type]
            screenshot(browser, f"status-{width}")
        assert not hosts_asked(events(browser))
    finally:
        browser.quit()


def at(minutes: float, user: str = "ana", dataset_id: str = "d") -> Submission:
    return Submission(user, NOW - timedelta(minutes=minutes), dataset_id)


def test_pace_leaves_out_pauses_and_yesterday() -> None:
    done = [at(3000), at(100), at(98), at(96), at(20), at(18)]
    assert work_today(done, NOW) == {("ana", "d"): Work(5, 3, 360.0)}
    assert work_today(done, NOW)["ana", "d"].per_hour == 30.0


def test_controls_take_time_and_are_none_of_what_is_wanting() -> None:
    control = at(6)._replace(is_apart=True)
    assert work_today([at(8), control, at(4)], NOW) == {("ana", "d"): Work(2, 2, 240.0)}


def test_work_that_goes_back_and_forth_between_datasets_counts_each_minute_once() -> None:
    found = work_today([at(10), at(8, dataset_id="e"), at(6), at(4, dataset_id="e"), at(7, "ben")], NOW)
    assert found == {("ana", "d"): Work(2, 1, 120.0), ("ana", "e"): Work(2, 2, 240.0), ("ben", "d"): Work(1, 0, 0.0)}
    assert found["ben", "d"].per_hour is None


def test_the_first_unit_after_midnight_of_the_window_is_timed_by_the_one_before() -> None:
    assert work_today([at(24 * 60 + 1), at(24 * 60 - 1)], NOW) == {("ana", "d"): Work(1, 1, 120.0)}


def backlog(reachable: int, today: int, people: str = "ana", task: TaskName = "retrieval", each: int = 60) -> Backlog:
    work = Work(today, today, float(today * each))
    return Backlog(task, frozenset(people.split()), reachable, reachable, work)


def hours(*backlogs: Backlog) -> list[float | None]:
    found = forecasts(backlogs, NOW)
    return [each.finish and (each.finish - NOW) / timedelta(hours=1) for each in (*found, last_of(found))]


def test_the_finish_is_told_at_the_pace_of_the_last_day_or_why_not() -> None:
    assert forecasts([backlog(30, 20)._replace(needed=31)], NOW)[0].finish == NOW + timedelta(hours=36)
    told = [
        forecasts([each], NOW)[0]
        for each in (backlog(0, 5), backlog(3, 0), backlog(0, 2)._replace(needed=3), backlog(10**9, 1))
    ]
    assert told == [
        (None, "nothing is wanting"),
        (None, "nobody who is to go on submitted anything in the last 24 hours"),
        (None, "no annotators are left for what is wanting"),
        (None, "more than ten years at today's pace"),
    ]


def test_datasets_of_the_same_people_are_worked_off_one_after_the_other_and_all_end_with_the_last() -> None:
    assert hours(backlog(30, 20), backlog(10, 0), backlog(20, 20)) == [18, 24, 36, 36]
    assert hours(backlog(30, 20, "ana"), backlog(10, 20, "ben")) == [36, 12, 36]
    assert hours(backlog(30, 20, "ana"), backlog(10, 20, "ben"), backlog(40, 0, "ana ben")) == [18, 24, 48, 48]


def test_a_unit_weighs_as_long_as_its_task_takes() -> None:
    quick, slow = backlog(20, 20), backlog(20, 5, task="generation", each=240)
    assert hours(quick, slow) == [12, 60, 60]
    assert hours(backlog(20, 20), backlog(20, 0, task="generation")) == [24, 48, 48]


def test_all_together_has_no_finish_where_one_dataset_has_none() -> None:
    told = forecasts([backlog(30, 20, "ana"), backlog(10, 0, "ben")], NOW)
    assert last_of(told) == (None, "nobody who is to go on submitted anything in the last 24 hours")
    assert last_of(forecasts([backlog(30, 20), backlog(0, 0, "ben")._replace(needed=4)], NOW)).finish


@pytest.mark.server
def test_a_line_of_the_terminal_holds_only_what_can_be_seen(bench: Bench) -> None:
    assert all(line.isprintable() for line in status_lines(look(bench)))


def test_a_table_fits_a_narrow_terminal_whatever_the_names() -> None:
    names = ("小林 花子" * 5, "carla-maria.gonzalez@institute.example", " calibration-1-retrieval-en")
    rows = [(name, "1000", "1000", "100", "100", "1000", "100", "100", "10") for name in names]
    lines = list(table(ANNOTATOR_HEAD, rows))
    assert {cell_len(line) for line in lines} == {80}
    assert lines[-1].startswith(" calibration-1-retrieval-en  1000")


def test_every_field_of_the_json_has_a_sentence() -> None:
    schema = Status.model_json_schema()
    models = [schema, *schema["$defs"].values()]
    assert all(field.get("description") for model in models for field in model["properties"].values())


@pytest.mark.server
def test_answers_that_come_at_once_are_told_with_who_sent_them(bench: Bench) -> None:
    no = answers("generation")
    bench.put("generation", *(record("generation", f"b{number}", bench.response("ben", **no)) for number in range(6)))
    (notice,) = [each for each in look(bench).notices if each.kind == "at_once"]
    assert list(map(named, notice.annotators)) == ["ben"]
    assert "6 (3-generation-en)" in notice.text


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


def look_at(work: Practised) -> Status:
    return read_status(work.owner, [work.workspace], datetime.now(UTC))


@pytest.mark.server
def test_who_is_below_the_pass_mark_is_named_with_the_work_that_waits_for_her(owner: Argilla) -> None:
    work = keeping_out(owner)
    status = look_at(work)
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
    (retrieval,) = [each for each in look_at(work).datasets if each.task == "retrieval"]
    assert (retrieval.reachable, retrieval.kept_out, retrieval.finish) == (0, retrieval.records, None)
    assert retrieval.no_finish == "what is wanting waits for people who have not passed its practice"


@pytest.mark.server
def test_practice_keeps_nobody_out_once_it_is_passed_or_opened(owner: Argilla) -> None:
    from annotation.quality.practice import open_for, practice_datasets

    work = keeping_out(owner)
    (dataset,) = practice_datasets(owner, [work.workspace])
    open_for(owner, dataset, next(each["id"] for each in owner.users() if each["username"] == work.names["ben"]))
    status = look_at(work)
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
