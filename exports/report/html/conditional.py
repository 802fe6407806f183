"""Labels bound by a rule: agreement where the rule leaves the answer open."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from exports.agreement.figures import ConditionalAgreement
from exports.agreement.schema import TaskAgreement
from exports.report.html.cells import cell, estimated, head, number, row, table
from exports.report.html.elements import Child, element
from exports.report.words import percent

MEANING = (
    "Where a rule settles a label, its no says nothing about agreement and flatters AC1 and percent agreement. Here "
    "only annotators count who say that the premise holds, on units where at least two do. In brackets the figure on "
    "all units. Broken: responses that break the rule."
)


def conditional_section(figures: TaskAgreement) -> list[Child]:
    """The figures of each rule, and how many responses break it; nothing in tasks without rules."""
    if not figures.conditional:
        return []
    return [element("h3", "Labels bound by a rule"), conditional_table(figures, figures.conditional)]


def conditional_table(figures: TaskAgreement, rules: Sequence[ConditionalAgreement]) -> Element:
    """One row for each rule."""
    columns = ("Label", "where", "N′", "α [95 %]", "AC1", "agree", "yes", "broken")
    rows = (rule_row(figures, found) for found in rules)
    return table("Agreement where a rule leaves the label open", columns, rows, "figures whole second", MEANING)


def rule_row(figures: TaskAgreement, found: ConditionalAgreement) -> Element:
    """One rule."""
    whole = figures.labels[found.label]
    broken = figures.constraint_violations.get(found.rule, 0)
    return row(
        head(found.label),
        element("td", f"{found.premise} is {'yes' if found.premise_value else 'no'}", class_="words"),
        cell(f"{found.n_pairable_items:,}"),
        cell(
            estimated(found.krippendorff_alpha, found.interval, found.undefined.get("krippendorff_alpha")),
            beside(number(whole.krippendorff_alpha)),
        ),
        cell(number(found.gwet_ac1, found.undefined.get("gwet_ac1")), beside(number(whole.gwet_ac1))),
        cell(percent(found.percent_agreement), beside(percent(whole.percent_agreement))),
        cell(percent(found.prevalence), beside(percent(whole.prevalence))),
        cell(f"{broken:,}"),
    )


def beside(figure: Child) -> Element:
    """The figure on all units."""
    return element("small", " (", figure, ")", class_="why")
