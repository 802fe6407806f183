"""What cog writes into the documentation: tables of fields, the commands' help, the packages in their order."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

from exports.cli import main

HELP_WIDTH = 110


def field_table(model: type[BaseModel], types: bool = True) -> str:
    """A row for each field as it stands in JSON: name, type with its limits, and the sentence under the field."""
    schema = model.model_json_schema(mode="serialization")
    rows = ["| field | type | |\n|---|---|---|" if types else "| field | |\n|---|---|"]
    for name, field in schema["properties"].items():
        said = " ".join(field.get("description", "").split()).replace("|", "\\|")
        rows.append(f"| `{name}` | {type_of(field)} | {said} |" if types else f"| `{name}` | {said} |")
    return "\n".join(rows) + "\n"


def type_of(schema: dict[str, Any]) -> str:
    """The type in words, such as `integer, 1 to 10` or `"pending" or "failed"`."""
    if "$ref" in schema:
        return f"{schema['$ref'].rpartition('/')[2]}"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_of(each) for each in schema["anyOf"]))
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return " or ".join(f"`{value!r}`".replace("'", '"') for value in values)
    if schema.get("type") == "array":
        least = ", at least one" if schema.get("minItems") else ""
        return f"array of {type_of(schema['items'])}{least}"
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


def folder_table(order: Iterable[str]) -> str:
    """A row for each module or folder with the first sentence of its docstring."""
    rows = ["| | |\n|---|---|"]
    for name in order:
        path = Path(name.replace(".", "/"))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        first = " ".join(said.split("\n\n")[0].split()).partition(". ")[0].rstrip(".").replace("|", "\\|")
        rows.append(f"| `{name}` | {first} |")
    return "\n".join(rows) + "\n"
