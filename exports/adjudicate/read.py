"""Adjudicators' answers brought back from Argilla, over the same way as any other export."""

from pathlib import Path
from tempfile import TemporaryDirectory

from annotation.client import Argilla
from exports.adjudicate.adjudication import ROUND, Outcome, adjudication_workspace, decide
from exports.csv.fetch import Progress
from exports.csv.write import export_csv
from exports.reading.read import export_files, read_tables
from exports.schema import ExportFilters
from pipeline.errors import NotFoundError


def read_outcome(argilla: Argilla, workspace: str, progress: Progress = lambda name, read, total: None) -> Outcome:
    """What adjudicators submitted, in both kinds of adjudication of the workspace; nothing on the server changes.

    Raises:
        NotFoundError: the workspace has no adjudication, or nobody has submitted anything in it.
        ArgillaError: Argilla does not answer, or its records keep changing.
    """
    wanted = (adjudication_workspace(workspace, "blind"), adjudication_workspace(workspace, "votes"))
    known = argilla.workspaces()
    there = [name for name in wanted if name in known and argilla.datasets(known[name])]
    if not there:
        raise NotFoundError(
            f"Argilla at {argilla.api_url} has no workspace {' or '.join(map(repr, wanted))}, so there is no "
            f"adjudication of {workspace!r}. Begin one with `citejury exports adjudicate push`."
        )
    with TemporaryDirectory(prefix="citejury-") as folder:
        export = Path(folder) / "adjudicated"
        export_csv(argilla, there, export, ExportFilters(rounds=(ROUND,)), progress=progress)
        return decide(read_tables(export_files([export])).tables)
