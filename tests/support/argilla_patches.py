"""What is changed in argilla-server, read as text: to import the table loads all of it."""

import tomllib

from tests.support.places import ROOT


def patch_rows() -> list[tuple[str, str, str]]:
    """Of each changed place its name, the digest of the source that was read, and what changes it."""
    table = tomllib.loads((ROOT / "annotation/server/patches/table.toml").read_text(encoding="utf-8"))
    return [(place, digest, change) for place, digest, change in table["patches"]]
