"""A campaign in three languages whose annotators know different ones, for tests of where they start."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS
from annotation.campaign.file import Campaign
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign
from annotation.push.push import push_records
from pipeline.records.schema import Passage, QueryResponse
from tests.support.queue_player import PENDING

PEOPLE: dict[str, list[str]] = {"anna": ["de"], "ben": ["de", "ja"], "cora": []}


class Start(NamedTuple):
    owner: Argilla
    workspace: str
    names: dict[str, str]
    """User names by first name."""
    passwords: dict[str, str]
    """Passwords by first name."""
    keys: dict[str, str]
    """API keys by first name."""

    def datasets(self) -> dict[str, str]:
        found = self.owner.datasets(self.owner.find_workspace(self.workspace))
        return {each["name"]: each["id"] for each in found}

    def lists(self, who: str) -> list[dict[str, Any]]:
        with Argilla(self.owner.api_url, self.keys[who]) as herself:
            found: list[dict[str, Any]] = herself.request("GET", "/citejury/me/work")["lists"]
        return found

    def answer(self, who: str, dataset: str, count: int, status: str = "submitted") -> None:
        """Answer so many records of a dataset as one of them, the first in their queue that have no answer yet."""
        with Argilla(self.owner.api_url, self.keys[who]) as herself:
            for record in waiting(herself, self.datasets()[dataset])[:count]:
                task = next(task for task in TASKS if task in dataset)
                body = {"status": status, "values": {label: {"value": "yes"} for label in LABELS[task]}}
                herself.request("POST", f"/records/{record}/responses", json=body)


def waiting(herself: Argilla, dataset_id: str, limit: int = 10) -> list[str]:
    """Ids of the records that their page is given first; they are held for them."""
    body, params = {"query": {}, "filters": {"and": PENDING}}, {"offset": 0, "limit": limit}
    found = herself.request("POST", f"/me/datasets/{dataset_id}/records/search", params=params, json=body)
    return [item["record"]["id"] for item in found["items"]]


def start(
    owner: Argilla,
    records: int = 3,
    calibration: int = 1,
    languages: Sequence[str] = ("en", "de", "ja"),
    **settings: Any,
) -> Start:
    """A campaign with so many records of each language, so many of them for calibration.

    Each language is six datasets, so a test does with as few as it can; one of a person's first language is needed.
    """
    workspace = f"start-{uuid4().hex[:8]}"
    names = {who: f"{workspace}-{who}" for who in PEOPLE}
    people = {who: [locale for locale in locales if locale in languages] for who, locales in PEOPLE.items()}
    wanted = Campaign.model_validate(
        {
            "locales": list(languages),
            "language_workspaces": False,
            "annotators": [{"name": names[who], "locales": locales} for who, locales in people.items()],
            **({"calibration": {"records": calibration}} if calibration else {}),
            **settings,
        }
    )
    new: list[Any] = []
    apply_plan(owner, plan_campaign(owner, wanted, workspace), Passwords(announce=new.append))
    for locale in wanted.locales:
        answers = [record(locale, number) for number in range(records)]
        if calibration:
            push_records(owner, workspace, answers[:calibration], locale, round_name="calibration")
        push_records(owner, workspace, answers[calibration:], locale)
    return Start(owner, workspace, names, *logins_of(owner, names, new))


def logins_of(owner: Argilla, names: dict[str, str], new: list[Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Passwords and API keys by first name."""
    keys = {user["username"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
    passwords = {user.username: user.password for user in new}
    return {who: passwords[name] for who, name in names.items()}, {who: keys[name] for who, name in names.items()}


def record(locale: str, number: int) -> QueryResponse:
    chunk = Passage(chunk_id=f"{locale}{number}#0", doc_id=f"{locale}{number}", chunk_rank=1, text=f"Text {number}.")
    return QueryResponse(
        record_uuid=str(uuid4()),
        query=f"Query {number}?",
        answer=f"Answer {number} [1].",
        language=locale,
        chunks=(chunk,),
        context_set=chunk.text,
    )
