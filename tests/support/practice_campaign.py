"""A campaign with a round of practice on the session's server, and people who practise in it over REST."""

from typing import Any, NamedTuple
from uuid import uuid4

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, OWN_TASKS, TaskName
from annotation.campaign.file import Campaign
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign
from annotation.push.push import push_records
from annotation.quality.practice import Case, cases_of, prepare_practice
from tests.support.start_bench import logins_of, record, waiting


class Practised(NamedTuple):
    owner: Argilla
    workspace: str
    campaign: Campaign
    cases: tuple[Case, ...]
    names: dict[str, str]
    """User names by first name."""
    passwords: dict[str, str]
    """Passwords by first name."""
    keys: dict[str, str]
    """API keys by first name."""

    def dataset(self, name: str) -> str:
        found = self.owner.datasets(self.owner.find_workspace(self.workspace))
        return next(str(each["id"]) for each in found if each["name"] == name)

    def herself(self, who: str) -> Argilla:
        return Argilla(self.owner.api_url, self.keys[who])

    def known(self) -> dict[str, dict[str, bool | str]]:
        return {case.record.record_uuid: dict(case.answers) for case in self.cases}

    def queue(self, who: str, name: str) -> list[str]:
        with self.herself(who) as herself:
            return waiting(herself, self.dataset(name))

    def lists(self, who: str) -> dict[str, dict[str, Any]]:
        with self.herself(who) as herself:
            return {each["name"]: each for each in herself.request("GET", "/citejury/me/work")["lists"]}

    def practise(self, who: str, name: str, wrong: int = 0, count: int = 100) -> None:
        """Answer so many cases of a practice, so many labels of them otherwise than is known."""
        with self.herself(who) as herself:
            for record_id in waiting(herself, self.dataset(name), 50)[:count]:
                case = self.owner.request("GET", f"/records/{record_id}")
                answers = self.known()[case["external_id"].partition(":")[0]]
                said = {}
                for label, known in answers.items():
                    said[label] = {"value": "yes" if known is not (wrong > 0) else "no"}
                    wrong -= 1
                herself.request("POST", f"/records/{record_id}/responses", json={"status": "submitted", "values": said})


def practised(
    owner: Argilla,
    people: dict[str, list[str]] | None = None,
    locales: tuple[str, ...] = ("en",),
    asked: tuple[TaskName, ...] = OWN_TASKS,
    **settings: Any,
) -> Practised:
    """A campaign with three records of each language in production and this practice."""
    workspace = f"practice-{uuid4().hex[:8]}"
    people = people or {"anna": [], "ben": []}
    names = {who: f"{workspace}-{who}" for who in people}
    wanted = Campaign.model_validate(
        {
            "locales": locales,
            "tasks": asked,
            "annotators": [{"name": names[who], "locales": spoken} for who, spoken in people.items()],
            "practice": settings,
        }
    )
    new: list[Any] = []
    apply_plan(owner, plan_campaign(owner, wanted, workspace), Passwords(announce=new.append))
    cases = cases_of(wanted)
    prepare_practice(owner, wanted, workspace, cases)
    for locale in locales:
        push_records(owner, workspace, [record(locale, number) for number in range(3)], locale)
    return Practised(owner, workspace, wanted, cases, names, *logins_of(owner, names, new))


def yes_to_all(task: TaskName) -> dict[str, Any]:
    return {label: {"value": "yes"} for label in LABELS[task]}
