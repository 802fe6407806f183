"""What commands print and write, from figures: agreement and results in every form."""

from exports.report import agreement_page, results_page
from exports.report.sections import markdown_text, terminal_text
from exports.statistics.agreement_schema import Agreement
from exports.statistics.results_schema import Results


def results_markdown(found: Results) -> str:
    return markdown_text("exports results", results_page.results_sections(found))


def agreement_terminal(found: Agreement, results: Results | None = None) -> str:
    return terminal_text(agreement_page.short_sections(found, results))


def agreement_markdown(found: Agreement) -> str:
    return markdown_text("exports agreement", agreement_page.agreement_sections(found))
