"""The status as one HTML page that needs neither network nor script; every text of somebody else is only text.

A Content-Security-Policy lets nothing in but the page's own style, by its hash.
"""

from pathlib import Path

from annotation.pages import own_style, render
from annotation.status._schema import DatasetStatus, Status
from annotation.status.text import CONTROLS_MEANING, minute, out_of_reach, pace, share_text
from pipeline.errors import OutputError
from pipeline.files import staged_file

_BAR_WIDTH = 170
"""Width of a bar, in its own units."""


def write_page(path: Path, status: Status) -> None:
    """Write the page; an earlier one is replaced as a whole.

    Raises:
        OutputError: the file cannot be written.
    """
    try:
        with staged_file(path) as file:
            file.write(render_page(status).encode())
    except OSError as error:
        raise OutputError(f"`{path}` cannot be written: {error.strerror}. Name another `--html`.") from error


def render_page(status: Status) -> str:
    """The page as HTML; the same status gives the same text."""
    several = len(status.workspaces) > 1

    def name_of(dataset: DatasetStatus) -> str:
        """The dataset's name, with its workspace where there are several."""
        return f"{dataset.workspace}/{dataset.dataset}" if several else dataset.dataset

    style, policy = own_style("annotation.status", "status_page.css")
    return render(
        "annotation.status",
        "status_page.html",
        status=status,
        style=style,
        policy=policy,
        name_of=name_of,
        minute=minute,
        pace=pace,
        share_text=share_text,
        out_of_reach=out_of_reach(status),
        controls_meaning=CONTROLS_MEANING,
        bar_parts=_bar_parts,
    )


def _bar_parts(done: int, begun: int, total: int) -> list[tuple[str, float, float]]:
    """Kind, start and width of the parts of a bar, left to right; the figures stand beside it."""
    ends = [_BAR_WIDTH * part / total if total else 0.0 for part in (done, done + begun)]
    places = (("done", 0.0, ends[0]), ("begun", ends[0], ends[1]), ("rest", ends[1], float(_BAR_WIDTH)))
    return [(kind, start, end - start) for kind, start, end in places if end > start]
