"""Data frames with nullable types, the same whatever the figures are."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pipeline.tables import Table

if TYPE_CHECKING:
    import pandas
    from pydantic import BaseModel


def field_types(*models: "type[BaseModel]") -> dict[str, Any]:
    """The type of each field of the models by name."""
    return {name: field.annotation for model in models for name, field in model.model_fields.items()}


def typed_frame(
    columns: Mapping[str, list[Any]], types: Mapping[str, Any], objects: Collection[str] = ()
) -> "pandas.DataFrame":
    """A data frame of the columns.

    Args:
        columns: The cells of each column by name; None where there is nothing.
        types: The types of `field_types`; of what was spread over several columns the name tells it.
        objects: Columns whose cells stay as they are, such as dicts.
    """
    import pandas

    return pandas.DataFrame(
        {
            name: pandas.Series(cells, dtype="object" if name in objects else _column_type(name, types))
            for name, cells in columns.items()
        }
    )


def frame_of_table(table: Table, types: Mapping[str, Any]) -> "pandas.DataFrame":
    """A data frame of a table whose first row names its columns."""
    names, *rows = table.rows
    return typed_frame({str(name): [row[at] for row in rows] for at, name in enumerate(names)}, types)


def _column_type(name: str, types: Mapping[str, Any]) -> str:
    """The pandas type of a column, told by its field in the models or, where an interval was spread, by its name."""
    annotation = types.get(name)
    kinds = set() if get_origin(annotation) in (dict, tuple) else {annotation, *get_args(annotation)}
    if bool in kinds:
        return "boolean"
    if int in kinds or (annotation is None and name.startswith("n_")):
        return "Int64"
    if float in kinds or name.startswith("p_below") or name.endswith(("_low", "_high", "_share")):
        return "Float64"
    return "string"
