"""Where tests find things: the checkout, their own data, and the recordings beside it, which may be missing."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared"
NO_SHARED = "the folder `shared` is not beside the clone"
