"""Where tests find things: the checkout, their own data, and the recordings beside it, which may be missing."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared"
NO_SHARED = "the folder `shared` is not beside the clone"


def cases(name: str) -> dict[str, Any]:
    return json.loads((DATA / "cases" / f"{name}.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]
