import json
import os
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TaskName
from annotation.argilla.tasks import schema_part
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from pipeline.records.schema import Passage, QueryResponse
from tests.support.places import ROOT

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

pytestmark = pytest.mark.server

ANSWER = QueryResponse(
    record_uuid="r1",
    query="Wer hat das Tor gebaut? <b>",
    answer="Niemand [1].",
    language="de",
    chunks=(Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Das Tor steht noch nicht."),),
    context_set="Das Tor steht noch nicht.",
)

# A process of its own: the SDK leaves sockets open, which this process counts as errors.
SCRIPT = """
import json, sys
import argilla
name, workspace = sys.argv[1:]
dataset = argilla.Argilla().datasets(name, workspace=workspace)
records = [
    {
        "id": record.id,
        "fields": dict(record.fields),
        "responses": {answer.question_name: [answer.value, str(answer.user_id)] for answer in record.responses},
    }
    for record in dataset.records(with_responses=True)
]
print(json.dumps({"questions": [question.name for question in dataset.settings.questions], "records": records}))
"""


@pytest.mark.parametrize(
    "task", ["grounding", *(pytest.param(task, marks=pytest.mark.rare) for task in ("retrieval", "generation"))]
)
def test_the_sdk_lists_the_records_and_responses_of_a_dataset(argilla_server: "ServerHandle", task: TaskName) -> None:
    workspace = f"w-{uuid.uuid4().hex[:12]}"
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as owner:
        set_up(owner, workspace)
        push_records(owner, workspace, [ANSWER])
        dataset = find_datasets(owner, workspace)[task]
        ((_, (pushed,)),) = owner.record_pages(dataset.id)
        values = {label: {"value": "yes"} for label in LABELS[task]}
        owner.request("POST", f"/records/{pushed['id']}/responses", json={"status": "submitted", "values": values})
        user_id = owner.me()["id"]
    environment = {
        **os.environ,
        "ARGILLA_API_URL": argilla_server.url,
        "ARGILLA_API_KEY": argilla_server.owner_api_key,
        "HF_HUB_OFFLINE": "1",
    }
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, dataset.name, workspace]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "questions": [*LABELS[task], "notes"],
        "records": [
            {
                "id": pushed["external_id"],
                "fields": pushed["fields"],
                "responses": {label: ["yes", user_id] for label in LABELS[task]},
            }
        ],
    }


MAKES_A_DATASET = """
import json, sys
import argilla
from annotation import task_settings
workspace, = sys.argv[1:]
settings = task_settings("grounding", "de", min_submitted=2)
client = argilla.Argilla()
made = argilla.Dataset(name="by-hand", workspace=workspace, settings=settings, client=client).create()
print(json.dumps([made.settings.serialize()[name] for name in ("guidelines", "distribution")]))
"""


@pytest.mark.rare
def test_a_dataset_is_made_of_our_settings_by_the_sdk(argilla_server: "ServerHandle") -> None:
    workspace = f"w-{uuid.uuid4().hex[:12]}"
    environment = {
        **os.environ,
        "ARGILLA_API_URL": argilla_server.url,
        "ARGILLA_API_KEY": argilla_server.owner_api_key,
        "PYTHONPATH": str(ROOT),
    }
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as owner:
        set_up(owner, workspace, "de", min_submitted=2)
        ours = find_datasets(owner, workspace)["grounding"]
        command = [sys.executable, "-W", "ignore", "-c", MAKES_A_DATASET, workspace]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        theirs = next(each for each in owner.datasets(owner.find_workspace(workspace)) if each["name"] == "by-hand")
        for kind in ("fields", "questions"):
            there, here = (
                owner.request("GET", f"/datasets/{each}/{kind}")["items"] for each in (theirs["id"], ours.id)
            )
            assert [schema_part(part) | {"title": part["title"]} for part in there] == [
                schema_part(part) | {"title": part["title"]} for part in here
            ]
    assert json.loads(done.stdout)[1] == {"strategy": "overlap", "min_submitted": 2}
