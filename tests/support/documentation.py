"""What cog writes into the documentation, a function for each part; the pages themselves import nothing else."""

import ast
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import click
import yaml
from pydantic import BaseModel

from annotation.argilla.labels import RULES, TASKS, Decision, task_named
from annotation.argilla.wording import read_wording
from exports.cli import main
from exports.csv import schema
from exports.csv.rows import EXTENDED_COLUMNS
from exports.statistics.scales import SCALED_STATISTICS
from exports.statistics.table import PAIR_STATISTICS, STATISTICS, Statistic
from pipeline.asking.ask_live import OPTION_NAMES
from pipeline.core.schema import AnswerRow, AskOptions
from pipeline.providers import every_provider
from pipeline.providers.provider import Api, Batches, Provider
from pipeline.records.causes import STATES, SourceState
from pipeline.records.schema import Passage, Provenance, QueryResponse, Source
from pipeline.research.contracts import PAYLOADS
from tests.product.test_layout import OLD_NAME, ORDER, PACKAGES, is_folder, modules, place
from tests.support.argilla_patches import patch_rows

HELP_WIDTH = 110


def table(header: str, rows: Iterator[str]) -> str:
    return "\n".join([f"| {header} |", "|---" * (header.count("|") + 1) + "|", *(f"| {row} |" for row in rows)]) + "\n"


def sentence(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def help_of(*names: str) -> str:
    """The help of the commands of these names and of all that stand below them."""
    context = click.Context(main)
    return "\n".join(page for name in names for page in help_pages(main.get_command(context, name), f"citejury {name}"))


def help_pages(command: click.Command | None, path: str) -> Iterator[str]:
    assert command is not None, path
    context = click.Context(command, info_name=path, max_content_width=HELP_WIDTH, terminal_width=HELP_WIDTH)
    yield f"```text\n$ {path} --help\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from help_pages(command.get_command(context, name), f"{path} {name}")


def field_table(model: type[BaseModel]) -> str:
    """A row for each field as it stands in JSON: name, type with its limits, and the sentence under the field."""
    fields = model.model_json_schema(mode="serialization")["properties"].items()
    return table(
        "field | type | ",
        (f"`{name}` | {type_of(field)} | {sentence(field.get('description'))}" for name, field in fields),
    )


def fields(module: str, name: str) -> str:
    """The table of a model, found by its name."""
    return field_table(getattr(import_module(module), name))


def models(module: str, *names: str, level: str = "###") -> str:
    """The tables of several models, each under its name and what it is."""

    def part(name: str) -> str:
        said = sentence(getattr(import_module(module), name).__doc__).partition(" (")[0].rstrip(".")
        return f"{level} {name}\n\n{said}.\n\n{fields(module, name)}"

    return "\n".join(map(part, names))


def type_of(schema: dict[str, Any]) -> str:
    """The type in words, such as `integer, 1 to 10` or `"pending" or "failed"`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_of(each) for each in schema["anyOf"]))
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return " or ".join(f"`{value!r}`".replace("'", '"') for value in values)
    if schema.get("type") == "array":
        least = ", at least one" if schema.get("minItems") else ""
        return f"array of {type_of(schema['items'])}{least}" if "items" in schema else "array"
    if schema.get("type") == "object":
        return "object"
    return ", ".join([schema.get("type", "any"), *limits(schema)])


def limits(schema: dict[str, Any]) -> Iterator[str]:
    """What a value of the type has to keep to."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None:
        yield f"{low:g} to {high:g}" if high is not None else f"{low:g} or more"
    if "maxLength" in schema:
        yield f"at most {schema['maxLength']:,} characters"
    elif schema.get("minLength"):
        yield "not empty"
    if "pattern" in schema:
        yield f"`{schema['pattern']}`"
    if "format" in schema:
        yield schema["format"]


def folders() -> str:
    """The packages' folders from top to bottom, each with the first sentence of its docstring."""
    places = [f"{package}.{folder}" for package, rooms in ORDER.items() for folder in (*rooms, "")]

    def said(name: str) -> str:
        doc = ast.get_docstring(modules()[name]) or ""
        return sentence(doc.split("\n\n")[0].replace("\n", " ").partition(". ")[0].rstrip("."))

    names = [
        name for name in modules() if (is_folder(name) or name == place(name)) and name not in {*PACKAGES, OLD_NAME}
    ]
    names.sort(key=lambda name: (places.index(place(name)), name))
    return table(" | ", (f"`{name}` | {said(name)}" for name in names))


def spoken_to() -> Iterator[tuple[Provider, Api, str]]:
    """Each provider's ways to be spoken to, the usual one first, with what the tables call them."""
    for provider in every_provider():
        for api in provider.apis:
            usual = api is provider.apis[0]
            yield provider, api, provider.name if usual else f"{provider.name}, spoken to by `{api.name}`"


def providers() -> str:
    def rows() -> Iterator[str]:
        for provider, api, called in spoken_to():
            keys = " or ".join(f"`{variable}`" for variable in provider.key_variables)
            if api is provider.apis[0]:
                yield f"{called} | {keys} | `{api.model}` | `{provider.base_url}`"
            elif api.model != provider.apis[0].model:
                yield f"{called} | {keys} | `{api.model}` | the server's"

    return table("provider | key in | model, unless you name one | base URL", rows())


def options() -> str:
    """Which option of `pipeline ask` reaches whom, and where it goes in the request."""
    seen: dict[str, Api] = {}
    for provider, api, _ in spoken_to():
        if api is provider.apis[0] or api.options != provider.apis[0].options:
            seen[provider.name if api is provider.apis[0] else f"`{api.name}`"] = api

    def row(option: str) -> str:
        places = [api.options.get(option) for api in seen.values()]
        shown = " | ".join(f"`{place}`" if place else "–" for place in places)
        return f"`--{OPTION_NAMES.get(option, option)}` | {shown}"

    return table(" | ".join(["option", *seen]), map(row, AskOptions.model_fields))


def batches() -> str:
    """Who can be asked in batches, and where that is written."""
    seen: list[tuple[Batches, str]] = []
    for _, api, called in spoken_to():
        if all(api.batches != batches for batches, _ in seen):
            seen.append((api.batches, called))

    def rows() -> Iterator[str]:
        for batches, called in seen:
            api = batches.api
            most = f"{api.limits.requests} calls, {api.limits.bytes // 1_000_000} MB" if api else "–"
            may = ("yes" if batches.is_documented else "yes, not by its own words") if api else "no"
            source = f"[{batches.read}]({batches.source})"
            yield f"{called} | {may} | {most} | {sentence(batches.words)} | {source}"

    return table("provider | web search in batches | in one batch at most | in words | read", rows())


def csv_v2_columns() -> str:
    fields = AnswerRow.model_fields.items()
    return table("column | ", (f"`{name}` | {sentence(field.description)}" for name, field in fields))


def export_columns() -> str:
    return "\n".join(f"**{task}.csv**\n\n{columns(schema.described_columns(task_named(task)))}" for task in TASKS)


def columns(described: dict[str, str]) -> str:
    return table("column | ", (f"`{name}` | {sentence(text)}" for name, text in described.items()))


def extended_columns() -> str:
    return ", ".join(f"`{name}`" for name in EXTENDED_COLUMNS) + ".\n"


WHERE = {"terminal": "terminal", "page": "Markdown and report", "card": "data card"}


def statistics() -> str:
    """The statistics of a label: the table that the product reads."""

    def row(name: str, entry: Statistic) -> str:
        shown = {place for column in entry.shown for place in column.places}
        where = ", ".join(said for place, said in WHERE.items() if place in shown) or "`labels.csv` only"
        return f"{entry.title} | `{name}` | {entry.formula} | {entry.undefined} | {entry.over} | {where}"

    header = "name | key | formula | undefined when | over | read in"
    return table(header, (row(name, entry) for name, entry in STATISTICS.items()))


def pair_statistics() -> str:
    rows = (f"{e.title} | `{name}` | {e.formula} | {e.undefined}" for name, e in PAIR_STATISTICS.items())
    return table("name | key | formula | undefined when", rows)


def scaled_statistics() -> str:
    """The statistics of a label on a scale: the table that the product reads."""
    rows = (
        f"{e.title} | `{name}` | {e.formula} | {e.over}{', values counted' if e.counts_values else ''}"
        for name, e in SCALED_STATISTICS.items()
    )
    return table("name | key | formula | over", rows)


def statistic_names() -> str:
    names = [f"`{name}`" for name in STATISTICS]
    return f"Statistics of a label: {', '.join(names[:-1])} and {names[-1]}.\n"


def label_rules() -> str:
    rows = (
        f"`{rule.name}` | `{name}` ⇒ {'' if then == 'yes' else 'not '}`{consequent}`"
        for task in TASKS
        for rule in RULES[task]
        for name in rule.condition
        for consequent, (then,) in rule.then.items()
    )
    return table("rule | ", rows)


def decisions() -> str:
    def row(task: str, decision: Decision) -> str:
        follows = (
            f"`{name}`: {', '.join(f'`{label}` {value}' for label, value in answers.items())}"
            for name, answers in decision.conditions.items()
        )
        words = read_wording("en").decisions[task][decision.id]
        return f"{task} | `{decision.id}` | {words} | {'; '.join(follows) or 'no label'}"

    rows = (row(task, each) for task in TASKS for each in task_named(task).decisions)
    return table("task | id | case and decision | what follows", rows)


def records() -> str:
    titles = {QueryResponse: "The record", Source: "A source", Passage: "A passage", Provenance: "Provenance"}
    return "\n".join(f"## {title}\n\n{model.__doc__}\n\n{field_table(model)}" for model, title in titles.items())


def states() -> str:
    def row(state: SourceState) -> str:
        reasons = [f"`{reason}`" for reason, known in STATES.items() if known == state]
        return f"`{state}` | {', '.join(reasons)}{', `status_<n>` for every other status' if state == 'unread' else ''}"

    return table("state | reasons", map(row, get_args(SourceState)))


def traces() -> str:
    rows = (
        f"`{kind}` | {', '.join(f'`{name}`' for name in payload.model_fields)}" for kind, payload in PAYLOADS.items()
    )
    return table("kind | payload, at least", rows)


def stack() -> str:
    """How docker/make-secrets is called, and the services of docker/compose.yaml."""
    script = subprocess.run(["docker/make-secrets", "--help"], capture_output=True, text=True, check=False)
    services = yaml.safe_load(Path("docker/compose.yaml").read_text(encoding="utf-8"))["services"]

    def row(name: str) -> str:
        command = services[name].get("command") or []
        words = command if isinstance(command, str) else " ".join(command)
        return f"`{name}` | `{services[name]['image']}` | {f'`{words}`' if words else 'the image’s own'}"

    usage = f"```text\n$ docker/make-secrets --help\n{script.stderr.strip()}\n```\n"
    return f"{usage}\n{table('service | image | command', map(row, services))}"


def patched_places() -> str:
    """How many places of argilla-server are changed."""
    rows = patch_rows()
    places, changes = {place for place, _, _ in rows}, {change for _, _, change in rows}
    what = "[one list](annotation/server/patches/table.toml), each with a digest of the source that was read"
    return f"citejury changes {len(places)} places of argilla-server, for {len(changes)} reasons: {what}."
