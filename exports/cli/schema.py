"""The option `--schema`: the JSON Schema of a file that a command writes."""

import json
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pydantic import BaseModel

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""What pydantic writes: https://docs.pydantic.dev/latest/concepts/json_schema/."""


def schema_option(
    file: str, load: "Callable[[], type[BaseModel]]", optional: Callable[[], Collection[str]] = tuple
) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """An option that prints the schema of the model behind `file` and ends; the model is loaded only then.

    `optional` gives the names of fields that are not always written.
    """

    def print_schema(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
        if not wanted or ctx.resilient_parsing:
            return
        left_out = optional()
        schema = load().model_json_schema(mode="serialization")
        for model in (schema, *schema["$defs"].values()):
            if "properties" in model:
                # Those with a default are always written too, save a few.
                model["required"] = [name for name in model["properties"] if name not in left_out]
        click.echo(json.dumps({"$schema": _DIALECT, **schema}, indent=2, ensure_ascii=False))
        ctx.exit()

    return click.option(
        "--schema",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=print_schema,
        help=f"Print the JSON Schema of {file}, and end.",
    )
