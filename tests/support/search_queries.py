"""Generated searches, as Argilla's page and its clients send them."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.search_data import AGENTS, KINDS, LABELS, RECORDS, TOPICS, WORDS

STATUSES = ("pending", "draft", "submitted", "discarded")
ORDERS = ("asc", "desc")
RECORD = {"entity": "record"}
Filter = dict[str, Any]


def search(chance: random.Random) -> dict[str, Any]:
    """The body of a search: text, filters and an order, each of them or not, and never none of them."""
    body: dict[str, Any] = {}
    while not body:
        if chance.random() < 0.4:
            body["query"] = {"text": text_query(chance)}
        if chance.random() < 0.7:
            body["filters"] = {"and": [a_filter(chance) for _ in range(chance.choice((1, 1, 1, 2, 2, 3)))]}
        if chance.random() < 0.5:
            # The external id makes it an order without ties.
            body["sort"] = [*(an_order(chance) for _ in range(chance.randint(0, 2))), by_external_id(chance)]
    return body


def text_query(chance: random.Random) -> dict[str, Any]:
    """What somebody types, in all fields or in one."""
    typed = words(chance, depth=2)
    return {"q": typed} if chance.random() < 0.6 else {"q": typed, "field": chance.choice(("head", "body", "talk"))}


def words(chance: random.Random, depth: int) -> str:
    """Words, phrases, beginnings of words, and signs between them."""
    parts = [part(chance, depth) for _ in range(chance.choice((1, 1, 2, 2, 3)))]
    between = [chance.choice((" ", " ", " ", " | ", " + ", "|")) for _ in parts[1:]]
    return parts[0] + "".join(sign + each for sign, each in zip(between, parts[1:], strict=True))


def part(chance: random.Random, depth: int) -> str:
    word = chance.choice(WORDS)
    kind = chance.random()
    if kind < 0.15:
        return f'"{word} {chance.choice(WORDS)}"'
    if kind < 0.3:
        return f"{word[: chance.randint(2, len(word))]}*"
    if kind < 0.4:
        return f"-{word}"
    if kind < 0.5 and depth:
        return f"({words(chance, depth - 1)})"
    return chance.choice((word, word.lower(), word.upper()))


def a_filter(chance: random.Random) -> Filter:
    return chance.choice(FILTERS)(chance)


def terms(scope: Filter, *values: Any) -> Filter:
    return {"type": "terms", "scope": scope, "values": list(values)}


def between(chance: random.Random, scope: Filter, low: Any, high: Any) -> Filter:
    """From the low to the high value, both included, or only one of the ends."""
    bounds: Mapping[str, Any] = chance.choice(({"ge": low, "le": high}, {"ge": low}, {"le": high}))
    return {"type": "range", "scope": scope, **bounds}


def some(chance: random.Random, *values: Any) -> list[Any]:
    return chance.sample(values, chance.randint(1, min(3, len(values))))


def key(chance: random.Random) -> str:
    return f"r{chance.randrange(RECORDS + 5):02}"


def numbers(chance: random.Random, low: int, high: int, of: int = 1) -> tuple[float, float]:
    """Two numbers in order, in steps of one `of`th."""
    first, second = sorted(chance.randint(low * of, high * of) for _ in range(2))
    return (first / of, second / of) if of > 1 else (first, second)


def letters(chance: random.Random) -> list[str]:
    return sorted(chance.sample("abhklmnoprsuyz", 2))


def by_record(chance: random.Random) -> Filter:
    wanted = [f"r{number:02}" for number in some(chance, *range(RECORDS))]
    times = sorted(chance.sample(range(RECORDS), 2))
    return chance.choice(
        (
            terms(RECORD | {"property": "status"}, *some(chance, "pending", "completed")),
            terms(RECORD | {"property": "external_id"}, key(chance), key(chance)),
            terms(RECORD | {"property": "id"}, *(f"@id {each}" for each in wanted)),
            between(chance, RECORD | {"property": "external_id"}, *sorted((key(chance), key(chance)))),
            between(chance, RECORD | {"property": "inserted_at"}, *(f"@inserted_at r{number:02}" for number in times)),
            between(
                chance, RECORD | {"property": "inserted_at"}, *chance.choice((("@year", "@day"), ("@month", "@hour")))
            ),
            terms(RECORD | {"property": "inserted_at"}, *some(chance, "@day", "@month", "2020-02-29", "1600000000000")),
            between(chance, RECORD | {"property": "status"}, *letters(chance)),
        )
    )


def by_metadata(chance: random.Random) -> Filter:
    scopes = {name: {"entity": "metadata", "metadata_property": name} for name in ("kind", "tags", "rank", "weight")}
    return chance.choice(
        (
            terms(scopes["kind"], *some(chance, *KINDS, "nothing of the kind")),
            terms(scopes["tags"], *some(chance, *TOPICS)),
            terms(scopes["rank"], *some(chance, *range(-2, 7))),
            between(chance, scopes["kind"], *letters(chance)),
            between(chance, scopes["tags"], *letters(chance)),
            between(chance, scopes["kind"], *numbers(chance, 0, 9)),
            between(chance, scopes["rank"], *numbers(chance, -3, 7)),
            between(chance, scopes["rank"], *map(str, numbers(chance, -3, 7))),
            between(chance, scopes["weight"], *numbers(chance, -1, 3, of=8)),
        )
    )


def by_suggestion(chance: random.Random) -> Filter:
    def scope(question: str, name: str) -> Filter:
        return {"entity": "suggestion", "question": question, "property": name}

    return chance.choice(
        (
            terms(scope("label", "value"), *some(chance, *LABELS)),
            terms(scope("topics", "value"), *some(chance, *TOPICS)),
            terms(scope("quality", "value"), *some(chance, 1, 2, 3, 4, 5)),
            between(chance, scope("quality", "value"), *numbers(chance, 0, 6)),
            between(chance, scope("label", "score"), *numbers(chance, 0, 1, of=16)),
            between(chance, scope("topics", "score"), *numbers(chance, 0, 1, of=16)),
            between(chance, scope(chance.choice(("label", "topics")), "value"), *letters(chance)),
            between(chance, scope("label", "agent"), *sorted((AGENTS[0], chance.choice(AGENTS)))),
            between(chance, scope("topics", "type"), *letters(chance)),
            terms(scope("label", "agent"), *some(chance, *AGENTS)),
            terms(scope("topics", "type"), chance.choice(("model", "human"))),
        )
    )


def by_response(chance: random.Random) -> Filter:
    def scope(question: str) -> Filter:
        return {"entity": "response", "question": question}

    return chance.choice(
        (
            terms({"entity": "response", "property": "status"}, *some(chance, *STATUSES)),
            terms({"entity": "response", "property": "status"}, chance.choice(STATUSES)),
            terms(scope("label"), *some(chance, *LABELS)),
            terms(scope("topics"), *some(chance, *TOPICS)),
            terms(scope("quality"), *some(chance, 1, 2, 3, 4, 5)),
            between(chance, scope("quality"), *numbers(chance, 0, 6)),
            between(chance, scope(chance.choice(("label", "topics"))), *letters(chance)),
        )
    )


FILTERS: tuple[Callable[[random.Random], Filter], ...] = (by_record, by_metadata, by_suggestion, by_response)


def by_external_id(chance: random.Random) -> Filter:
    return {"scope": RECORD | {"property": "external_id"}, "order": chance.choice(ORDERS)}


def an_order(chance: random.Random) -> Filter:
    """One order by any entity that has one value for each record."""
    return {"scope": chance.choice(SORTED_BY), "order": chance.choice(ORDERS)}


SORTED_BY = (
    *(RECORD | {"property": name} for name in ("inserted_at", "status", "external_id")),
    *({"entity": "metadata", "metadata_property": name} for name in ("kind", "tags", "rank", "weight", "none")),
    *({"entity": "suggestion", "question": name, "property": "value"} for name in ("label", "topics", "quality")),
    *({"entity": "suggestion", "question": name, "property": "score"} for name in ("label", "topics")),
    {"entity": "suggestion", "question": "label", "property": "agent"},
)
OWN_RATING = {"entity": "response", "question": "quality"}


def known_here(body: Any, known: Mapping[str, str]) -> Any:
    """The body with what a server knows by another name than the other one."""
    if isinstance(body, dict):
        return {name: known_here(value, known) for name, value in body.items()}
    if isinstance(body, list):
        return [known_here(value, known) for value in body]
    return known[body] if isinstance(body, str) and body.startswith("@") else body


def searches(seed: int, number: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(seed)
    return (search(chance) for _ in range(number))
