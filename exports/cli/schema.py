"""Options of commands that write figures: `--schema`, the JSON Schema of the file, and tables for spreadsheets."""

import json
from collections.abc import Callable
from importlib import import_module

import click

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""What pydantic writes: https://docs.pydantic.dev/latest/concepts/json_schema/."""


safe_tables_option = click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="In the CSV tables, put ' before texts that a spreadsheet takes for formulas, and a BOM at the start.",
)


def schema_option(file: str, module: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """An option that prints the schema of `file`, such as `results.json`, and ends.

    Its model is the class `Results` of the module, which is loaded only then; `OPTIONAL` there has the names of fields
    that are not always written.
    """

    def print_schema(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
        if not wanted or ctx.resilient_parsing:
            return
        loaded = import_module(module)
        schema = getattr(loaded, file.removesuffix(".json").capitalize()).model_json_schema(mode="serialization")
        for model in (schema, *schema["$defs"].values()):
            if "properties" in model:
                # Those with a default are always written too, save a few.
                model["required"] = [name for name in model["properties"] if name not in loaded.OPTIONAL]
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
