"""A campaign of two annotators in Argilla, for the tests of the set-up."""

from typing import Any

from annotation.campaign.file import Campaign
from annotation.campaign.people import Passwords
from annotation.campaign.plan import Plan
from annotation.campaign.setup import apply_plan, plan_campaign
from annotation.campaign.versions import current_datasets
from annotation.client import Argilla
from annotation.labels import LABELS
from pipeline.records import Passage, QueryResponse

PASSAGE = Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Nobody did.")
ANSWER = QueryResponse(
    record_uuid="r1", query="Who?", answer="Nobody.", language="en", chunks=(PASSAGE,), context_set=PASSAGE.text
)


def campaign(workspace: str, **values: Any) -> Campaign:
    people = [{"name": f"{workspace}-{name}"} for name in ("anna", "ben")]
    return Campaign.model_validate({"locales": ["en"], "annotators": people, **values})


def make(owner: Argilla, workspace: str, wanted: Campaign, *new_versions: Any) -> Plan:
    return apply_plan(owner, plan_campaign(owner, wanted, workspace, new_versions), Passwords())


def done(report: Plan) -> dict[tuple[str, str], str]:
    return {(step.workspace, step.name): step.done for step in report.steps}


def submit_first(owner: Argilla, dataset_id: str) -> dict[str, Any]:
    record = next(owner.record_pages(dataset_id))[1][0]
    task = next(item["name"] for item in owner.request("GET", f"/datasets/{dataset_id}/questions")["items"])
    labels = next(labels for labels in LABELS.values() if task in labels)
    values = {label: {"value": "yes"} for label in labels}
    body = {"status": "submitted", "values": values}
    made: dict[str, Any] = owner.request("POST", f"/records/{record['id']}/responses", json=body)
    return made


def described(owner: Argilla, workspace: str, name: str) -> dict[str, Any]:
    return next(each for each in current_datasets(owner, owner.find_workspace(workspace)) if each["name"] == name)
