"""What is changed in argilla-server, read as text: to import the table loads all of it."""

import ast

from tests.support.places import ROOT


def patch_rows() -> list[tuple[str, str, str]]:
    """Of each changed place its name, the digest of the source that was read, and what changes it."""
    (rows,) = (
        node.value
        for node in ast.parse((ROOT / "annotation/server/patches/table.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.AnnAssign)
        and ast.unparse(node.target) == "PATCHES"
        and isinstance(node.value, ast.Tuple)
    )
    triples = (each.elts for each in rows.elts if isinstance(each, ast.Tuple))
    return [
        (ast.literal_eval(place), ast.literal_eval(digest), ast.unparse(change)) for place, digest, change in triples
    ]
