"""A campaign of two annotators in Argilla, for the tests of the set-up."""

from pathlib import Path
from typing import Any

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TaskName
from annotation.argilla.tasks import PRODUCTION, define_dataset
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import current_datasets, find_datasets, with_version
from annotation.campaign.file import Campaign, places
from annotation.campaign.people import Passwords
from annotation.campaign.routing import ROUTING
from annotation.campaign.setup import apply_plan, make_dataset, plan_campaign
from annotation.campaign.setup_plan import Plan
from pipeline.records.schema import Passage, QueryResponse

PASSAGE = Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Nobody did.")
ANSWER = QueryResponse(
    record_uuid="r1", query="Who?", answer="Nobody.", language="en", chunks=(PASSAGE,), context_set=PASSAGE.text
)


def campaign(workspace: str, **values: Any) -> Campaign:
    people = [{"name": f"{workspace}-{name}"} for name in ("anna", "ben")]
    return Campaign.model_validate({"locales": ["en"], "annotators": people, **values})


def make(owner: Argilla, workspace: str, wanted: Campaign, *new_versions: Any) -> Plan:
    return apply_plan(owner, plan_campaign(owner, wanted, workspace, new_versions), Passwords())


def workspaces(wanted: Campaign, workspace: str) -> tuple[str, ...]:
    """The campaign's workspaces, those that all people of a language share first, then the groups'."""
    return tuple(dict.fromkeys(place.workspace for place in places(wanted, workspace)))


def done(report: Plan) -> dict[tuple[str, str], str]:
    return {(step.workspace, step.name): step.done for step in report.steps}


def answered(record_uuid: str, answer: str = ANSWER.answer, **values: Any) -> QueryResponse:
    return ANSWER.model_copy(update={"record_uuid": record_uuid, "answer": answer, **values})


def write_records(path: Path, *records: QueryResponse) -> Path:
    path.write_text("".join(f"{each.model_dump_json()}\n" for each in records), encoding="utf-8")
    return path


def held(owner: Argilla, workspace: str, task: TaskName = "generation", *of: str, include: Any = ("responses",)) -> Any:
    """The records of a task's newest dataset; `of` are its language and round."""
    dataset = find_datasets(owner, workspace, *of)[task]
    return [item for _, page in owner.record_pages(dataset.id, include) for item in page]


def submit_first(owner: Argilla, dataset_id: str, status: str = "submitted") -> dict[str, Any]:
    record = next(owner.record_pages(dataset_id))[1][0]
    task = next(item["name"] for item in owner.request("GET", f"/datasets/{dataset_id}/questions")["items"])
    labels = next(labels for labels in LABELS.values() if task in labels)
    body = {"status": status, "values": {label: {"value": "yes"} for label in labels}}
    return owner.request("POST", f"/records/{record['id']}/responses", json=body)


def described(owner: Argilla, workspace: str, name: str) -> dict[str, Any]:
    return next(each for each in current_datasets(owner, owner.find_workspace(workspace)) if each["name"] == name)


def make_earlier_grounding(owner: Argilla, workspace: str, name: str, round_name: str = PRODUCTION) -> str:
    """The id of a published grounding dataset as citejury 1 made them, without the query, under this name.

    An empty one of the name is replaced.
    """
    workspace_id = owner.find_workspace(workspace)
    definition = with_version(define_dataset("grounding", read_wording("en"), 1, round_name, lacking=["query"]), 1)
    for dataset in owner.datasets(workspace_id):
        if dataset["name"] == name:
            definition.metadata.update(
                {key: dataset["metadata"][key] for key in {ROUTING} & dataset["metadata"].keys()}
            )
            owner.request("DELETE", f"/datasets/{dataset['id']}")
    make_dataset(owner, workspace_id, definition, None)
    return str(described(owner, workspace, name)["id"])
