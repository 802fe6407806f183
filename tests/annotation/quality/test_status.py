"""Status: what it counts and what it says of people, on a real server; names and notes stay text wherever they are."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from uuid import UUID

import pytest
from rich.cells import cell_len
from selenium.webdriver import Chrome

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.argilla.units import read_units, rows_page, units_with_texts
from annotation.campaign.setup import set_up
from annotation.quality.escalation import escalate
from annotation.quality.notices import of_balance, of_progress
from annotation.quality.practice import open_for, practice_datasets
from annotation.quality.schema import AnnotatorStatus, DatasetStatus, Notice, Status
from annotation.quality.scores import ControlAnswer, score_answers
from annotation.quality.submissions import Backlog, Submission, Work, forecasts, last_of, work_today
from annotation.quality.summary import read_status
from annotation.quality.text import PERSON_HEAD, all_lines, render_page, status_lines, table, write_page
from annotation.server.launch import ServerHandle
from pipeline.core.errors import ArgillaError, InputError, NotAllowedError, NotFoundError
from tests.support.export_bench import Bench, answers, full_bench, make_dataset, make_user, record
from tests.support.lossy_link import lossy_link, stock_argilla
from tests.support.page_driver import events, hosts_asked, shown_text, start_browser, wait
from tests.support.practice_campaign import Practised, practised

HOSTILE = '? <img src=x onerror="document.title=1">\x1b[31m</p><script>document.title=2</script> \u202egnihtyna'
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def wait_for_two(owner: Argilla, dataset_id: str) -> None:
    body = {"distribution": {"strategy": "overlap", "min_submitted": 2}}
    owner.request("PATCH", f"/datasets/{dataset_id}", json=body)


@pytest.fixture(scope="module")
def bench(argilla_server: "ServerHandle") -> Iterator[Bench]:
    """Three passages of one answer and two answers to ground, waiting for two annotators; a third one has left."""
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as client:
        users = {name: make_user(client, name)["id"] for name in ("ana", "ben", "gone")}
        made = full_bench(argilla_server, client, users)
        for name in ("ana", "ben"):
            client.request("POST", f"/workspaces/{made.workspace_id}/users", json={"user_id": users[name]})
        for dataset_id in made.datasets.values():
            wait_for_two(client, dataset_id)
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
        by = [{"model_name": name} for name in ('a "quoted" name', "gpt")]
        drafted = record("grounding", "r1", asking, provenance=by[0], sources={"found": 1, "unreached": 2})
        made.put("grounding", drafted, record("grounding", "r2", asked, provenance=by[1]))
        yield made


def look(bench: Bench, **options: object) -> Status:
    return read_status(bench.client, [bench.workspace], datetime.now(UTC), **options)


def dataset(status: Status, task: str) -> DatasetStatus:
    (found,) = [each for each in status.datasets if each.task == task]
    return found


def named(text: str) -> str:
    """The name that `make_user` began with."""
    return text.rsplit("-", 1)[0]


@pytest.mark.server
def test_a_record_is_done_when_enough_annotators_submitted_it_and_unreachable_where_few_are(
    bench: Bench,
) -> None:
    status = look(bench)
    retrieval = dataset(status, "retrieval")
    assert status.finish == max(each.finish for each in status.datasets if each.finish)
    assert retrieval.model_dump(include=set(RETRIEVAL)) == RETRIEVAL
    assert retrieval.finish
    assert any(notice.kind == "unreachable" and "1-retrieval-en: 1" in notice.text for notice in status.notices)
    found = {named(each.annotator): each for each in retrieval.annotators}
    assert [(name, each.done, each.pending, each.discarded, each.is_member) for name, each in found.items()] == [
        ("ana", 2, 1, 0, True),
        ("ben", 0, 1, 1, True),
        ("gone", 1, 0, 0, False),
    ]
    assert (found["gone"].broken_rules, found["ana"].broken_rules) == ({"evidence_requires_relevance": 1}, {})
    questions = {(named(each.annotator), each.record_uuid, each.status): each.text for each in status.questions}
    assert questions == {("ben", "r1", "draft"): HOSTILE, ("ana", "r2", "submitted"): "？どう判断しますか"}
    ben = found["ben"].annotator  # who labels in another language has nothing pending here
    (elsewhere,) = [each for each in look(bench, languages={ben: ("de",)}).annotators if each.annotator == ben]
    assert (elsewhere.pending, elsewhere.is_member) == (0, False)
    assert {name: each.left for name, each in found.items()} == {"ana": 1.0, "ben": 1.0, "gone": 0.0}
    assert (status.unreached, status.answers) == (1, 2)


@pytest.mark.server
def test_what_adjudicators_have_got_is_split_no_more(bench: Bench) -> None:
    assert [each.split for each in look(bench).datasets] == [1, 0, 0]
    theirs = bench.client.request("POST", "/workspaces", json={"name": f"{bench.workspace}-adjudication"})["id"]
    copies = make_dataset(bench.client, theirs, "retrieval", "adjudication")
    bench._replace(datasets={"retrieval": copies}).put("retrieval", record("retrieval", "r1", rank=1))
    status = look(bench)
    assert [each.split for each in status.datasets] == [0, 0, 0]
    assert "split" not in {each.kind for each in status.notices}


RETRIEVAL = {
    "records": 3,
    "overlap_reached": 1,
    "pending": 2,
    "needed": 3,
    "reachable": 2,
    "unreachable": 1,
    "split": 1,
    "done": 3,
    "drafts": 0,
    "discarded": 1,
    "done_today": 3,
    "half_done": ({"record_uuid": "r1", "units": 3, "done": 1},),
}


@pytest.mark.server
def test_a_stock_argilla_gives_the_same_status_and_takes_longer(bench: Bench, command) -> None:
    slow: list[str] = []
    for dataset_id in bench.datasets.values():
        units = list(read_units(bench.client, dataset_id, lambda: slow.append("slow")))
        assert units == list(units_with_texts(bench.client, dataset_id))
    assert not slow
    words = ("annotation", "status", "--json", "--workspace", bench.workspace, "--api-url")
    own = command(*words, bench.server.url)
    with stock_argilla(bench.server.url) as link:
        stock = command(*words, link.url)
    assert (stock.stderr.count("it takes longer"), own.stderr.count("it takes longer")) == (1, 0)
    found = [Status.model_validate_json(each.stdout) for each in (stock, own)]
    assert found[0].questions == found[1].questions
    counted = [
        [(each.records, each.needed, each.done, each.half_done, each.broken_rules) for each in status.datasets]
        for status in found
    ]
    assert counted[0] == counted[1]
    assert [dict(each.by_model) for each in found[0].annotators if each.by_model] == [{"gpt": 1}]
    assert found[0].annotators == found[1].annotators
    assert (found[0].unreached, found[1].unreached) == (1, 1)


def person(name: str, **known: object) -> AnnotatorStatus:
    blank = dict.fromkeys(("done", "pending", "left", "drafts", "discarded", "done_today", "questions"), 0)
    unknown = {"is_member": True, "units_per_hour": None, "hours_left": None, "broken_rules": {}}
    return AnnotatorStatus.model_validate({"annotator": name, **blank, **unknown, **known})


def test_who_judged_other_models_than_everybody_is_named_and_the_models_are_not() -> None:
    of = {"ana": {"gpt": 30, "b": 30}, "ben": {"b": 40}, "new": {"gpt": 19}}
    people = tuple(person(name, by_model=by) for name, by in of.items())
    (notice,) = of_balance(people)
    assert (notice.kind, notice.annotators) == ("unbalanced", ("ben",))
    assert "ben (up to 41 points)" in notice.text
    assert not list(of_balance(people[:1]))
    status = EMPTY.model_copy(update={"annotators": people, "notices": (notice,)})
    assert "other models judged than by the rest: ben" in "\n".join(status_lines(status))
    assert "gpt" not in "\n".join(status_lines(status)) + render_page(status, 60)
    assert "30 (50%)" in "\n".join(all_lines(status))


def test_who_has_done_less_than_half_of_what_the_others_have_is_behind_once_they_have_begun() -> None:
    def behind(**work: tuple[int, int]) -> tuple[str, ...]:
        people = [person(name, done=done, left=left) for name, (done, left) in work.items()]
        return tuple(name for notice in of_progress(people) for name in notice.annotators)

    assert behind(ana=(80, 20), ben=(39, 61), carl=(80, 20)) == ("ben",)
    assert behind(ana=(80, 20), ben=(40, 60), carl=(80, 20)) == ()
    assert behind(ana=(9, 91), ben=(0, 100)) == ()  # nobody has done a tenth
    assert behind(ana=(9, 0), ben=(0, 9)) == ()
    assert behind(ben=(0, 100)) == ()
    others = [person("ana", done=80, left=20), person("gone", left=90, is_member=False)]
    assert not list(of_progress(others))


@pytest.mark.server
def test_our_own_endpoint_goes_on_where_a_page_ended_and_answers_owners_and_admins_without_texts(bench: Bench) -> None:
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
    sent = json.dumps(bench.client.request("GET", path))
    assert ("r1:c1" in sent, "chunk of" in sent) == (True, False)
    admin, other = (make_user(bench.client, name, "admin") for name in ("admin", "other"))
    bench.client.request("POST", f"/workspaces/{bench.workspace_id}/users", json={"user_id": admin["id"]})
    keys = {user["id"]: user["api_key"] for user in bench.client.request("GET", "/users")["items"]}
    with Argilla(bench.server.url, admin["api_key"]) as key:
        assert len(key.request("GET", path)["items"]) == 3
    for refused in (other["api_key"], keys[bench.annotators["ana"]]):
        with Argilla(bench.server.url, refused) as key, pytest.raises(NotAllowedError):
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
def test_the_command_tells_it_in_tables_json_a_page_and_its_code(bench: Bench, command, tmp_path: Path) -> None:
    words = ("annotation", "status", "--workspace", bench.workspace)
    shown = command(*words, "--html", "status.html")
    page = (tmp_path / "status.html").read_text(encoding="utf-8")
    everything = command(*words, "--all").stdout
    assert re.search(r"^1-retrieval-en +1 of 3 +3 ", shown.stdout, re.MULTILINE)
    assert re.search(r"^retrieval +1 of 3 +2 ", everything, re.MULTILINE)
    assert "! 2 questions without your reply: citejury annotation reply" in shown.stdout.splitlines()
    assert "Questions to you: 2" in everything
    assert all(line.isprintable() for line in (shown.stdout + everything).splitlines())
    assert "Content-Security-Policy" in page
    printed = command(*words, "--json")
    status = Status.model_validate_json(printed.stdout)
    assert status.workspaces == (bench.workspace,)
    assert bench.server.owner_api_key not in printed.output + shown.output + page
    kinds = {notice.kind: notice for notice in status.notices}
    assert {"empty", "unreachable", "questions"} <= kinds.keys()
    assert f"{bench.workspace}/3-generation-en" in kinds["empty"].text
    assert sorted(map(named, kinds["questions"].annotators)) == ["ana", "ben"]
    said = " ".join(everything.split())
    assert all(" ".join(notice.text.split()) in said for notice in status.notices)
    assert all(notice.line in page for notice in status.notices)
    command(*words, "--strict", "--json", code=1)
    assert "--html FILE" in command(*words, "--watch", "5", code=2).stderr


@pytest.mark.rare
@pytest.mark.server
@pytest.mark.browser
def test_the_page_runs_nothing_asks_nobody_and_fits_a_telephone(bench: Bench, tmp_path: Path) -> None:
    page = tmp_path / "status.html"
    text = render_page(look(bench))
    page.write_text(text, encoding="utf-8")
    (tmp_path / "without-policy.html").write_text(re.sub(r"<meta http-equiv=[^>]*>", "", text), encoding="utf-8")
    browser = start_browser(tmp_path / "profile", logs_network=True)
    try:
        for name in ("status.html", "without-policy.html"):
            browser.get(f"file://{tmp_path / name}")
            assert browser.title == f"Status: {bench.workspace}"
            browser.find_element("css selector", "#notice-questions > summary").click()
            assert "onerror" in browser.find_element("tag name", "main").text
            assert not browser.find_elements("css selector", "img, script, a")
        for width, height in ((1400, 1200), (500, 1600), (400, 1600)):
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 760}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            assert int(browser.find_element("tag name", "html").get_property("scrollWidth")) <= width  # type: ignore[arg-type]
        assert not hosts_asked(events(browser))
    finally:
        browser.quit()


@pytest.mark.server
def test_a_study_of_twenty_lists_five_people_and_82_questions_is_one_screen(bench: Bench) -> None:
    client, made = bench.client, bench.client.request("POST", "/workspaces", json={"name": f"{bench.workspace}-large"})
    users = {name: make_user(client, name)["id"] for name in ("ana", "ben", "carla", "dmitri", "小林 花子\u202e")}
    for user_id in users.values():
        client.request("POST", f"/workspaces/{made['id']}/users", json={"user_id": user_id})
    large = bench._replace(annotators=users, workspace=made["name"])
    numbers = iter(range(82))
    for number, task in zip(range(20), cycle(TASKS)):
        dataset_id = make_dataset(client, made["id"], task, f"2026-{number // 3}", 2)
        records = []
        for unit in range(12):
            said = dict(answers(task), notes=HOSTILE if next(numbers, None) is not None else "")
            responses = [large.response(who, **said) for who in list(users)[: unit % 3]]
            records.append(record(task, f"r{number}-{unit}", *responses))
        large._replace(datasets={task: dataset_id}).put(task, *records)
    status = read_status(client, [large.workspace], datetime.now(UTC))
    assert (len(status.datasets), len(status.annotators)) == (20, 5)
    for width in (60, 80, 100):
        lines = list(status_lines(status, width))
        assert len(lines) < 40  # the command has a line of its own
        assert max(map(cell_len, lines)) <= width
        assert all(map(str.isprintable, lines))
        begins = [line.split()[0] for line in lines if line]
        assert sum(each.startswith("2026-") for each in begins) == 20
        assert begins.index("!") < begins.index("list") < begins.index("person")


@pytest.mark.server
@pytest.mark.browser
def test_the_page_of_a_watching_command_stays_fresh_and_in_its_place_and_says_when_it_is_old(
    bench: Bench, chromium: Chrome, tmp_path: Path
) -> None:
    page = tmp_path / "status.html"
    words = ("annotation", "status", "--workspace", bench.workspace, "--html", str(page), "--watch", "1")
    with lossy_link(bench.server.url) as link:
        key = {"ARGILLA_API_URL": link.url, "ARGILLA_API_KEY": bench.server.owner_api_key}
        command = [sys.executable, "-c", "from exports.cli import main; main()", *words]
        watching = subprocess.Popen(command, env={**os.environ, **key}, stderr=subprocess.PIPE, text=True)
        assert watching.stderr
        wait(chromium, page.exists)
        chromium.get(page.as_uri())
        chromium.execute_script("document.getElementById('notice-questions').open = true; scrollTo(0, 120)")
        bench.put("retrieval", record("retrieval", "r9", rank=9))
        records = sum(each.records for each in look(bench).datasets)
        wait(chromium, lambda: f"of {records}" in shown_text(chromium, ".figures"))
        place = "return [scrollY, [...document.querySelectorAll('details[open]')].map((each) => each.id)]"
        assert chromium.execute_script(place) == [120, ["notice-questions"]]
        assert not shown_text(chromium, "#old")
    assert any("Nothing answers" in line for line in iter(watching.stderr.readline, ""))  # and it goes on
    watching.send_signal(signal.SIGTERM)
    watching.communicate()
    assert watching.returncode == 0
    wait(chromium, lambda: "The command that writes this page has ended" in shown_text(chromium, "#old"))
    hours_ago = (datetime.now(UTC) - timedelta(hours=2)).isoformat(timespec="seconds")
    write_page(page, look(bench).model_copy(update={"moment": hours_ago}), 1)  # as a command leaves it that was killed
    wait(chromium, lambda: "120 min ago" in shown_text(chromium, "main"))
    assert "These figures are old" in shown_text(chromium, "#old")


def at(minutes: float, user: str = "ana", dataset_id: str = "d") -> Submission:
    return Submission(user, NOW - timedelta(minutes=minutes), dataset_id)


def test_pace_leaves_out_pauses_and_yesterday_and_counts_each_minute_between_datasets_once() -> None:
    done = [at(3000), at(100), at(98), at(96), at(20), at(18)]
    assert work_today(done, NOW) == {("ana", "d"): Work(5, 3, 360.0)}
    assert work_today(done, NOW)["ana", "d"].per_hour == 30.0
    control = at(6)._replace(is_apart=True)
    assert work_today([at(8), control, at(4)], NOW) == {("ana", "d"): Work(2, 2, 240.0)}
    assert work_today([at(24 * 60 + 1), at(24 * 60 - 1)], NOW) == {("ana", "d"): Work(1, 1, 120.0)}
    found = work_today([at(10), at(8, dataset_id="e"), at(6), at(4, dataset_id="e"), at(7, "ben")], NOW)
    assert found == {("ana", "d"): Work(2, 1, 120.0), ("ana", "e"): Work(2, 2, 240.0), ("ben", "d"): Work(1, 0, 0.0)}
    assert found["ben", "d"].per_hour is None


def backlog(reachable: int, today: int, people: str = "ana", task: TaskName = "retrieval", each: int = 60) -> Backlog:
    work = Work(today, today, float(today * each))
    return Backlog(task, frozenset(people.split()), reachable, reachable, work)


def hours(*backlogs: Backlog) -> list[float | None]:
    found = forecasts(backlogs, NOW)
    return [each.finish and (each.finish - NOW) / timedelta(hours=1) for each in (*found, last_of(found))]


def test_the_finish_is_told_at_the_days_pace_or_why_not_and_datasets_of_the_same_people_in_turn() -> None:
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
    assert hours(backlog(30, 20), backlog(10, 0), backlog(20, 20)) == [18, 24, 36, 36]
    assert hours(backlog(30, 20, "ana"), backlog(10, 20, "ben")) == [36, 12, 36]
    assert hours(backlog(30, 20, "ana"), backlog(10, 20, "ben"), backlog(40, 0, "ana ben")) == [18, 24, 48, 48]
    slow = backlog(20, 5, task="generation", each=240)  # a unit weighs as long as its task takes
    assert hours(backlog(20, 20), slow) == [12, 60, 60]
    assert hours(backlog(20, 20), backlog(20, 0, task="generation")) == [24, 48, 48]
    told = forecasts([backlog(30, 20, "ana"), backlog(10, 0, "ben")], NOW)
    assert last_of(told) == (None, "nobody who is to go on submitted anything in the last 24 hours")
    assert last_of(forecasts([backlog(30, 20), backlog(0, 0, "ben")._replace(needed=4)], NOW)).finish


def test_a_table_fits_a_narrow_terminal_and_every_field_of_the_json_has_a_sentence() -> None:
    names = ("小林 花子" * 5, "carla-maria.gonzalez@institute.example", " calibration-1-retrieval-en")
    rows = [(name, "1000", "1000", "100", "100", "1000", "100", "100") for name in names]
    lines = list(table(PERSON_HEAD, rows))
    assert {cell_len(line) for line in lines} == {80}
    assert "-1-retrieval-en  1000" in lines[-1]
    names = [f" calibration-{number}-{task}-en" for number, task in enumerate(LABELS, 1)]
    rows = [(name, "1000", "12000", "1000", "1000", "1000", "1234", "1000") for name in names]
    lines = list(table(PERSON_HEAD, rows))
    assert max(map(cell_len, lines)) <= 80
    assert all(f"{task}-en" in line for task, line in zip(LABELS, lines[1:], strict=True))
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
    answers=0,
    unreached=0,
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


@pytest.mark.parametrize("who", ["ben", "carla-maria.gonzalez@institute.example", "小林 花子" * 5])
def test_what_controls_tell_about_each_person_is_in_text_and_page_and_fits_80_columns(who: str) -> None:
    planted = known_answers(who, "number", [*[(True, True)] * 7, (True, False), *[(False, False)] * 8])
    again = known_answers(who, "repeat", [(True, True)] * 3 + [(True, False)])
    status = EMPTY.model_copy(update={"controls": score_answers([*planted, *again])})
    lines = list(all_lines(status))
    (row,) = [line for line in lines if "88% [53, 98]" in line]
    assert row.startswith(who[:2])
    assert row.endswith("16  88% [53, 98]  100% [68, 100]        4   75% [30, 95]")
    assert any("sensitivity" in line and "specificity" in line and "self-consist." in line for line in lines)
    assert max(map(cell_len, lines)) <= 80
    page = render_page(status)
    assert all(said in page for said in (who, "88% [53, 98]", "100% [68, 100]", "75% [30, 95]", "Self-consistency"))
    assert "sensitivity" not in "".join(all_lines(EMPTY)) + render_page(EMPTY).lower()


def answer_all(work: Practised, who: str, dataset: str, record_ids: Sequence[str], *yes: str) -> None:
    values = {label: {"value": "yes" if label in yes else "no"} for label in LABELS[dataset.split("-")[1]]}
    with work.herself(who) as herself:
        for record_id in record_ids:
            herself.request("POST", f"/records/{record_id}/responses", json={"status": "submitted", "values": values})


@pytest.mark.rare
@pytest.mark.server
def test_who_is_below_the_pass_mark_is_named_with_what_waits_until_the_lead_opens_it(
    owner: Argilla,
) -> None:
    work = practised(owner, tasks=["retrieval"], cases=1)
    work.practise("anna", "practice-1-retrieval-en")
    work.practise("ben", "practice-1-retrieval-en", wrong=3)
    wait_for_two(owner, work.dataset("1-retrieval-en"))

    def found() -> tuple[Status, DatasetStatus, list[Notice]]:
        status = read_status(owner, [work.workspace], datetime.now(UTC))
        return status, dataset(status, "retrieval"), [each for each in status.notices if each.kind == "practice"]

    status, retrieval, (notice,) = found()
    units = retrieval.records
    figures = (retrieval.needed, retrieval.reachable, retrieval.kept_out, retrieval.unreachable)
    assert figures == (2 * units, units, units, 0)
    pending = {each.annotator: each.pending for each in retrieval.annotators}
    assert pending == {work.names["anna"]: units, work.names["ben"]: 0}
    assert notice.annotators == (work.names["ben"],)
    missing = f"{work.names['ben']} (0 of 3 answers right, 3 wanted)"
    for part in (f"{units} submissions", missing, "1-retrieval-en", "citejury annotation practice --open"):
        assert part in notice.text
    assert f"! {units} answers missing of people who have not passed the practice: {work.names['ben']}" in list(
        status_lines(status, 120)
    )
    while waiting := work.queue("anna", "1-retrieval-en"):
        answer_all(work, "anna", "1-retrieval-en", waiting, "topically_relevant")
    _, retrieval, _ = found()
    assert (retrieval.reachable, retrieval.kept_out, retrieval.finish) == (0, retrieval.records, None)
    assert retrieval.no_finish == "what is wanting waits for people who have not passed its practice"
    (practice,) = practice_datasets(owner, [work.workspace])
    open_for(owner, practice, next(each["id"] for each in owner.users() if each["username"] == work.names["ben"]))
    _, retrieval, notices = found()
    assert (notices, retrieval.kept_out) == ([], 0)


@pytest.mark.rare
@pytest.mark.server
def test_a_split_unit_is_not_given_to_whom_the_list_is_closed(owner: Argilla) -> None:
    work = practised(owner, {"anna": [], "ben": [], "clara": []}, tasks=["generation"], cases=1)
    wait_for_two(owner, work.dataset("3-generation-en"))
    for who in ("anna", "ben"):
        work.practise(who, "practice-3-generation-en")
    first = work.queue("anna", "3-generation-en")[:1]
    answer_all(work, "anna", "3-generation-en", first, "helpful")
    answer_all(work, "ben", "3-generation-en", first)
    with pytest.raises(InputError, match="has not passed its practice"):
        escalate(owner, [work.workspace])
    work.practise("clara", "practice-3-generation-en")
    found = {each.dataset: dict(each.takers) for each in escalate(owner, [work.workspace])}
    assert found["3-generation-en"] == {work.names["clara"]: 1}


@pytest.mark.rare
@pytest.mark.server
def test_the_next_step_of_a_status_is_what_the_campaign_lacks(
    owner: Argilla, ready: str, command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = practised(owner, tasks=["generation"], cases=1)

    def last_line(workspace: str) -> str:
        return command("annotation", "status", "--workspace", workspace).stderr.splitlines()[-1]

    assert last_line(ready) == "Next: citejury annotation push RECORDS.jsonl"
    assert last_line(work.workspace) == "Next: citejury annotation share --out sheets"
    answer_all(work, "anna", "2-grounding-en", work.queue("anna", "2-grounding-en")[:1])
    assert last_line(work.workspace) == "Next, when they are done: citejury exports csv export"
    monkeypatch.chdir(tmp_path)
    Path("study.toml").touch()
    assert last_line(work.workspace) == "Next, when they are done: citejury study run"
