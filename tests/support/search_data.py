"""One generated dataset for two servers: texts in three languages, metadata, suggestions, vectors, three annotators."""

import random
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import httpx

from annotation.argilla.client import API_PATH, KEY_HEADER

RECORDS = 40
ONE_BY_ONE = 6  # records that are answered by single calls; the answers to the others come with the records
ANNOTATORS = ("ann", "ben", "cem")
LABELS = ("yes", "no", "unsure")
TOPICS = ("law", "health", "money")
KINDS = ("news", "study", "blog")
AGENTS = ("model-a", "model-b")
ROLES = ("user", "assistant")
DIMENSIONS = 4
SPANS = {"hour": 13, "day": 10, "month": 7, "year": 4}
"""Characters of a time in ISO 8601 that name one."""
# Words that Argilla on OpenSearch cuts as we do; the others are in the tests of the differences.
WORDS = (
    *("vaccine", "vaccines", "trial", "trials", "safe", "mask", "the", "Study", "2024", "of", "virus"),
    *("Impfung", "Übersicht", "über", "Wirkung", "Schutz", "möglich", "wirkt", "Studien"),
)
BETWEEN = (" ", " ", " ", ", ", ". ", "; ", "\n", " (", ") ", "? ", ": ", " – ")


class Side(NamedTuple):
    clients: Mapping[str, httpx.Client]
    """Of the owner and of each annotator."""
    dataset: str
    known: Mapping[str, str]
    """What differs from server to server, by what the other one knows it by: `@id r07`, `@inserted_at r07`.

    `@hour`, `@day`, `@month` and `@year` are those in which the last record arrived.
    """


def connect(url: str, key: str) -> httpx.Client:
    """A connection for each request: the server closes one after a 500, and the next request on it would break."""
    alone = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(
        base_url=f"{url}{API_PATH}", headers={KEY_HEADER: key}, timeout=120, trust_env=False, limits=alone
    )


def call(client: httpx.Client, method: str, path: str, **body: Any) -> Any:
    reply = client.request(method, path, **body)
    assert reply.is_success, (method, path, reply.status_code, reply.text)
    return reply.json() if reply.content else None


def make_side(url: str, key: str, name: str, seed: int) -> Side:
    chance = random.Random(seed)
    owner = connect(url, key)
    workspace = call(owner, "POST", "/workspaces", json={"name": name})["id"]
    users = {who: make_user(owner, workspace, f"{who}-{name}") for who in ANNOTATORS}
    dataset = make_dataset(owner, workspace)
    questions = {each["name"]: each["id"] for each in call(owner, "GET", f"/datasets/{dataset}/questions")["items"]}
    records = [record(chance, number, questions) for number in range(RECORDS)]
    given = {who: {each["external_id"]: response(chance) for each in records} for who in ANNOTATORS}
    for each in records[ONE_BY_ONE:]:
        said = ((users[who]["id"], given[who][each["external_id"]]) for who in ANNOTATORS)
        each["responses"] = [{"user_id": user} | answer for user, answer in said if answer]
    stored = call(owner, "PUT", f"/datasets/{dataset}/records/bulk", json={"items": records})["items"]
    clients = {"owner": owner} | {who: connect(url, user["api_key"]) for who, user in users.items()}
    for who, item in product(ANNOTATORS, stored[:ONE_BY_ONE]):
        if answer := given[who][item["external_id"]]:
            call(clients[who], "POST", f"/records/{item['id']}/responses", json=answer)
    known = {f"@id {item['external_id']}": item["id"] for item in stored}
    known |= {f"@inserted_at {item['external_id']}": item["inserted_at"] for item in stored}
    known |= {f"@{name}": stored[-1]["inserted_at"][:length] for name, length in SPANS.items()}
    return Side(clients, dataset, known)


def put_texts(side: Side, texts: Mapping[str, str]) -> Side:
    """The side with a dataset of these texts by external id instead, each in the field `head`."""
    owner = side.clients["owner"]
    dataset = make_dataset(owner, call(owner, "GET", f"/datasets/{side.dataset}")["workspace_id"], "texts")
    records = [{"external_id": key, "fields": {"head": text}} for key, text in texts.items()]
    stored = call(owner, "PUT", f"/datasets/{dataset}/records/bulk", json={"items": records})["items"]
    return Side(side.clients, dataset, {f"@id {item['external_id']}": item["id"] for item in stored})


def make_user(owner: httpx.Client, workspace: str, username: str) -> Any:
    person = {"first_name": username, "username": username, "role": "annotator", "password": "long-enough"}
    user = call(owner, "POST", "/users", json=person)
    call(owner, "POST", f"/workspaces/{workspace}/users", json={"user_id": user["id"]})
    return user


def make_dataset(owner: httpx.Client, workspace: str, name: str = "compared") -> str:
    """A published dataset with every kind of field and metadata, and of question that can be searched."""
    spread = {"strategy": "overlap", "min_submitted": 2}
    body = {"name": name, "workspace_id": workspace, "distribution": spread}
    dataset = str(call(owner, "POST", "/datasets", json=body)["id"])
    for place, parts in settings_of_the_dataset():
        call(owner, "POST", f"/datasets/{dataset}/{place}", json=parts | {"title": parts["name"]})
    call(owner, "PUT", f"/datasets/{dataset}/publish")
    return dataset


def settings_of_the_dataset() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, kind in {"head": "text", "body": "text", "talk": "chat"}.items():
        yield "fields", {"name": name, "required": name == "head", "settings": {"type": kind, "use_markdown": False}}
    labels = [{"value": value, "text": value} for value in LABELS]
    topics = [{"value": value, "text": value} for value in TOPICS]
    for name, settings in {
        "label": {"type": "label_selection", "options": labels},
        "topics": {"type": "multi_label_selection", "options": topics},
        "quality": {"type": "rating", "options": [{"value": number} for number in range(1, 6)]},
        "comment": {"type": "text"},
    }.items():
        yield "questions", {"name": name, "required": name == "label", "settings": settings}
    for name, kind in {"kind": "terms", "tags": "terms", "rank": "integer", "weight": "float", "none": "float"}.items():
        yield "metadata-properties", {"name": name, "settings": {"type": kind}}
    yield "vectors-settings", {"name": "meaning", "dimensions": DIMENSIONS}


def text(chance: random.Random, words: int) -> str:
    """Some words of either language with what stands between words, or a sentence of Japanese words."""
    if chance.random() < 0.2:
        return "は".join(chance.choices((("安全", "治験", "接種", "効果")), k=chance.randint(1, 3))) + "です。"
    return "".join(chance.choice(WORDS) + chance.choice(BETWEEN) for _ in range(words))


def record(chance: random.Random, number: int, questions: Mapping[str, str]) -> dict[str, Any]:
    """A record as the server takes it; each part but the first field is missing now and then."""
    fields: dict[str, Any] = {"head": text(chance, chance.randint(1, 5))}
    if chance.random() < 0.8:
        fields["body"] = text(chance, chance.randint(3, 25))
    if chance.random() < 0.4:
        fields["talk"] = [{"role": role, "content": text(chance, 4)} for role in ROLES[: chance.randint(1, 2)]]
    values: dict[str, Any] = {
        "kind": chance.choice(KINDS),
        "tags": chance.sample(TOPICS, chance.randint(1, 3)),
        "rank": chance.randint(-2, 6),
        "weight": chance.randint(-8, 24) / 8,
        "undeclared": "news",
    }
    made: dict[str, Any] = {"external_id": f"r{number:02}", "fields": fields}
    made["metadata"] = {name: value for name, value in values.items() if chance.random() < 0.75}
    made["suggestions"] = [
        {"question_id": questions[name]} | parts for name, parts in suggestions(chance) if chance.random() < 0.5
    ]
    if chance.random() < 0.7:
        made["vectors"] = {"meaning": [chance.uniform(-1, 1) for _ in range(DIMENSIONS)]}
    return made


def suggestions(chance: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """A suggestion for each question that can be searched; those of labels and topics with scores."""
    made = {"agent": chance.choice(AGENTS), "type": chance.choice(("model", "human"))}
    yield "label", {"value": chance.choice(LABELS), "score": chance.randint(0, 16) / 16} | made
    topics = chance.sample(TOPICS, chance.randint(1, 2))
    yield "topics", {"value": topics, "score": [chance.randint(0, 16) / 16 for _ in topics]} | made
    yield "quality", {"value": chance.randint(1, 5)}


def response(chance: random.Random) -> dict[str, Any] | None:
    status = chance.choice(("submitted", "submitted", "draft", "discarded", None, None))
    if status is None:
        return None
    values = {
        "label": chance.choice(LABELS),
        "topics": chance.sample(TOPICS, chance.randint(1, 2)),
        "quality": chance.randint(1, 5),
        "comment": "safe",
    }
    kept = {name: {"value": value} for name, value in values.items() if name == "label" or chance.random() < 0.6}
    return {"status": status, "values": {} if status == "discarded" and chance.random() < 0.5 else kept}
