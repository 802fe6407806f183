"""What is changed in argilla-server, read as text: to import the table loads all of it."""

import ast

from tests.support.places import ROOT


def patch_targets() -> list[dict[str, str]]:
    """Of each change its places, each with a digest of the source that was read."""
    table = ast.parse((ROOT / "annotation/embedded/patches/table.py").read_text(encoding="utf-8"))
    rows = (node for node in ast.walk(table) if isinstance(node, ast.Call) and ast.unparse(node.func) == "_Patch")
    return [ast.literal_eval(row.args[2]) for row in rows]
