"""The versions of the software that a home was last used with, and whether this software may go on with it."""

import contextlib
import re
import sqlite3
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from annotation.server.environment import site_packages
from annotation.server.home.folder import VERSIONS_FILE
from pipeline.core.errors import ServerStartError
from pipeline.core.schema import Frozen

UNKNOWN_RELEASE = "0"
Word = Annotated[str, Field(pattern=r"^[0-9A-Za-z_.+!-]{0,64}$")]
"""A version as releases are named: it becomes part of a file's name, and is shown in a terminal."""


class Versions(Frozen):
    citejury: Word
    """Version of citejury, whose own tables and triggers are in the database; `0` where a home does not say."""
    argilla_server: Word
    """Version of argilla-server."""
    schema_revision: Word
    """Revision of the database's tables, as argilla-server's migrations name them."""

    def described(self) -> str:
        return f"citejury {self.citejury} with argilla-server {self.argilla_server}"


def software_versions() -> Versions:
    _, head = read_migrations()
    (server,) = distributions(name="argilla-server", path=[str(site_packages())])
    return Versions(citejury=version("citejury"), argilla_server=server.version, schema_revision=head)


def read_migrations() -> tuple[set[str], str]:
    """All revisions and the last, which a started server's database has; as text: an import would load all of it."""
    paths = (site_packages() / "argilla_server" / "alembic" / "versions").glob("*.py")
    revisions = re.compile(r'^revision = "(\w+)"$.*?^down_revision = (?:"(\w+)"|None)$', re.MULTILINE | re.DOTALL)
    found = [match.groups() for path in paths if (match := revisions.search(path.read_text(encoding="utf-8")))]
    known = {str(revision) for revision, _ in found}
    heads = known - {before for _, before in found}
    if len(heads) != 1:
        raise ServerStartError("The installed argilla-server has no migrations as expected. Install citejury again.")
    return known, heads.pop()


def read_versions(home: Path) -> Versions | None:
    path = home / VERSIONS_FILE
    try:
        return Versions.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ServerStartError(
            f"`{path}` cannot be read as the versions of the server. Remove it, and the next start keeps a copy of "
            "everything before it goes on."
        ) from error


def schema_revision(database: Path) -> str:
    """Empty where no migration has run to its end."""
    try:
        with contextlib.closing(sqlite3.connect(database)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
                return ""
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise ServerStartError(
            f"The database `{database}` cannot be read: {error}. Restore a backup into another folder with "
            "`citejury annotation restore`."
        ) from error
    return str(row[0]) if row else ""


def refuse_newer(recorded: Versions | None, revision: str, holder: str) -> None:
    ours = software_versions()
    newer = recorded is not None and any(
        [int(part) for part in re.findall(r"\d+", theirs)] > [int(part) for part in re.findall(r"\d+", own)]
        for theirs, own in zip(release_of(recorded), release_of(ours), strict=True)
    )
    if newer or (revision and revision not in read_migrations()[0]):
        theirs = recorded.described() if recorded else f"a newer argilla-server (tables of revision {revision})"
        raise ServerStartError(
            f"{holder} was last used by {theirs}, and this is {ours.described()}, which could damage it. Install the "
            "newer one again, or use a backup from before."
        )


def release_of(versions: Versions) -> tuple[str, str]:
    """The two releases; the database's tables follow from them."""
    return versions.citejury, versions.argilla_server
