"""The report as one HTML file that needs no network: verdicts, warnings, each task, disagreements and methods.

Its Content-Security-Policy lets nothing in but its own style and script, by their hashes. Without JavaScript
everything is there but the form that filters the disagreements.
"""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from xml.etree.ElementTree import Element

from annotation.labels import TaskName
from exports.agreement.disagreement import Disagreement
from exports.agreement.schema import Agreement, TaskAgreement
from exports.report.html.annotator_panel import annotator_section
from exports.report.html.browser import browser_section
from exports.report.html.conditional import conditional_section
from exports.report.html.elements import element, embedded, to_html
from exports.report.html.forest import label_section
from exports.report.html.heat_map import pair_section
from exports.report.html.judges import judges_section
from exports.report.html.methods import methods_section
from exports.report.html.summary import coverage, fitness_section, report_head, warnings_section
from exports.report.html.timeline import time_section
from pipeline.errors import OutputError
from pipeline.staging import staged_file


def write_report(
    path: Path, agreement: Agreement, disagreements: Sequence[Disagreement], *, remarks: Sequence[str] = ()
) -> None:
    """Write the report as one HTML file; an earlier one is replaced as a whole.

    Args:
        path: Where to.
        agreement: The figures.
        disagreements: Where annotators differ, those that weigh most first in each task.
        remarks: Plain sentences about rows that were left out of the figures.

    Raises:
        OutputError: the file cannot be written.
    """
    text = render_report(agreement, disagreements, remarks=remarks)
    try:
        with staged_file(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise OutputError(f"`{path}` cannot be written: {error.strerror}. Choose another `--out`.") from error


def render_report(agreement: Agreement, disagreements: Sequence[Disagreement], *, remarks: Sequence[str] = ()) -> str:
    """The report as HTML; the same figures give the same text."""
    style, style_hash = embedded("style", "style.css")
    script, script_hash = embedded("script", "browser.js")
    policy = (
        f"default-src 'none'; style-src {style_hash}; script-src {script_hash}; base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="generator", content=f"citejury {version('citejury')}"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"Agreement: {', '.join(agreement.tasks)}"),
        style,
    )
    body = element(
        "body",
        navigation(agreement),
        element(
            "main",
            report_head(agreement, remarks),
            fitness_section(agreement),
            warnings_section(agreement),
            (task_section(task, figures) for task, figures in agreement.tasks.items()),
            judges_section(agreement.judges),
            browser_section(disagreements),
            methods_section(agreement),
        ),
        script,
    )
    return "<!DOCTYPE html>\n" + to_html(element("html", head, body, lang="en-GB")) + "\n"


def navigation(agreement: Agreement) -> Element:
    """Links to the parts of the report."""
    parts = [("fit", "Fit for use"), ("mind", "Mind first"), *((task, task) for task in agreement.tasks)]
    parts += [("judges", "Judges")] if agreement.judges else []
    parts += [("disagreements", "Disagreements"), ("methods", "Methods")]
    return element(
        "nav", (element("a", text, href=f"#{part}") for part, text in parts), aria_label="Parts of the report"
    )


def task_section(task: TaskName, figures: TaskAgreement) -> Element:
    """All figures of one task."""
    return element(
        "section",
        element("h2", task.capitalize(), id=task),
        coverage(figures),
        label_section(figures),
        pair_section(figures),
        annotator_section(figures),
        time_section(figures),
        conditional_section(figures),
    )
