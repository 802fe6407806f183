"""A task's guidelines as one page to print: self-contained HTML for A4, in the annotator's language.

It holds what the guidelines hold, so that the two cannot differ, and between its rules and its sections an example of
yes and of no for each label.
"""

from html import escape

from annotation.labels import LABELS, TaskName
from annotation.wording import ANSWERS, Wording

STYLE = """
@page { size: A4; margin: 16mm 15mm; }
* { box-sizing: border-box; }
body { font: 10.5pt/1.45 system-ui, "Noto Sans", "Noto Sans CJK JP", "Hiragino Sans", "Yu Gothic", sans-serif;
  color: #111; max-width: 180mm; margin: 0 auto; padding: 6mm 0; }
h1 { font-size: 16pt; line-height: 1.25; margin: 0 0 3mm; }
h2 { font-size: 12pt; margin: 5mm 0 1.5mm; break-after: avoid; }
p, ul, ol { margin: 1.5mm 0; }
ul, ol { padding-left: 6mm; }
table { border-collapse: collapse; width: 100%; margin: 2mm 0 3mm; }
th, td { text-align: left; vertical-align: top; padding: 1.2mm 2mm; border-bottom: .2mm solid #bbb; }
th { background: #eee; }
section { break-inside: avoid; margin: 3mm 0; }
section h3 { font-size: 10.5pt; margin: 0; }
section p { margin: .5mm 0; color: #444; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .8mm 3mm; margin: 1mm 0 0; }
dt { font-weight: bold; border: .2mm solid #888; border-radius: 1mm; padding: 0 1.5mm; align-self: start; }
dd { margin: 0; }
.case { border-left: 1mm solid #888; padding: 1mm 3mm; background: #f5f5f5; }
"""


def render_page(task: TaskName, wording: Wording) -> str:
    """The page of one task, complete; the same task and wording give the same text."""
    rules, sections = split_guidelines(wording.guidelines[task])
    title = rules.partition("\n")[0].lstrip("# ")
    return "\n".join(
        (
            f'<!DOCTYPE html>\n<html lang="{escape(wording.locale)}">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
            to_html(rules),
            examples(task, wording),
            to_html(sections),
            "</body>\n</html>\n",
        )
    )


def split_guidelines(text: str) -> tuple[str, str]:
    """The heading with the rules, and the sections after them; the second is empty where there are none."""
    rules, mark, sections = text.partition("\n## ")
    return rules, f"{mark}{sections}".lstrip()


def to_html(markdown: str) -> str:
    """The Markdown as HTML; tags in it are shown as text."""
    from markdown_it import MarkdownIt

    rendered: str = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return rendered


def examples(task: TaskName, wording: Wording) -> str:
    """The examples of the task: the case, then each label's question and nuance with a yes and a no."""
    given = wording.examples[task]
    return "\n".join(
        (
            f'<h2>{escape(wording.examples_heading)}</h2>\n<p class="case">{escape(given.case)}</p>',
            *(label_examples(task, label, wording) for label in LABELS[task]),
        )
    )


def label_examples(task: TaskName, label: str, wording: Wording) -> str:
    """One label's question, nuance and examples."""
    question, given = wording.questions[task][label], wording.examples[task].labels[label]
    rows = "".join(f"<dt>{escape(wording.answers[answer])}</dt><dd>{escape(given[answer])}</dd>" for answer in ANSWERS)
    return f"<section><h3>{escape(question.title)}</h3><p>{escape(question.description)}</p><dl>{rows}</dl></section>"
