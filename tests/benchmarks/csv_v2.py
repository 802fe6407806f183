"""CSV v2 written, read and checked, against csv.writer and csv.reader alone on the same 200,000 rows."""

import csv
import gc
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from pipeline.citations.addresses import source_domain
from pipeline.core.schema import CSV_COLUMNS, PROVIDERS, SearchResult, StoredAnswer
from pipeline.csv.file import read_answers, write_answers
from pipeline.csv.rows import answer_cells
from tests.benchmarks.measure import log, medians, report, seconds
from tests.support.csv_check import check_file

ROWS = 200_000

# Bodies of 0.2 kB are far below those of the providers (18 to 266 kB): the smaller the cells, the more each row's own
# work weighs against `csv`, so the real ratio is lower.
TEXT = "Nein; der Impfstoff ist sicher. „Quelle“: 厚生労働省の公式データによると安全です。\n" * 2


def made_up_answer(number: int) -> StoredAnswer:
    """An answer of each provider in turn, with five citations, or five times four with Perplexity's results."""
    model = PROVIDERS[number % len(PROVIDERS)]
    citations = tuple(f"https://www.site{number % 97}-{index}.example/seite/{number}?q=1,2" for index in range(5))
    results = tuple(
        SearchResult(url=url, title=f'Titel "{number}"', snippet="Auszug, mit Komma. " * 10) for url in citations[:4]
    )
    return StoredAnswer(
        narrative_id=f"N{number:05}",
        narrative_type="misinformation",
        narrative_prompt="ワクチンは危険である",
        model_name=model,
        model_version="model-1",
        answer_id=str(UUID(int=number)),
        answer_prompt="ワクチンは危険である\n\nはい、いいえ?",
        answer_text=TEXT,
        answer_raw_json=json.dumps({"id": number, "text": TEXT}, ensure_ascii=False),
        answer_timestamp="2025-12-29T17:30:00.123456+00:00",
        citations=citations,
        domains=tuple(source_domain(url) for url in citations),
        search_results=results if model == "perplexity" else (),
    )


def plain_rows(answer: StoredAnswer) -> list[list[str]]:
    """The answer's rows as lists of cells, ready for csv.writer."""
    cells = answer_cells(answer)
    return [[*cells.shared, *source, *result] for source in cells.sources for result in cells.results]


def with_csv_alone(path: Path, rows: list[list[str]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(CSV_COLUMNS)
        writer.writerows(rows)
    with open(path, encoding="utf-8", newline="") as file:
        check(sum(1 for _ in csv.reader(file)) - 1, len(rows))


def with_csv_v2(path: Path, answers: list[StoredAnswer]) -> None:
    write_answers(path, answers)
    check(sum(1 for _ in read_answers(path)), len(answers))
    if violations := check_file(path):
        raise SystemExit(f"the made-up file is not right: {violations[0]}")


def check(found: int, wanted: int) -> None:
    if found != wanted:
        raise SystemExit(f"{found} instead of {wanted}")


def main() -> None:
    answers = [made_up_answer(number) for number in range(ROWS // 40 * len(PROVIDERS))]  # 40 rows a round of the five
    rows = [row for answer in answers for row in plain_rows(answer)]
    check(len(rows), ROWS)
    gc.freeze()  # the rows of the baseline, held for it alone, are not to slow down either side
    with TemporaryDirectory() as folder:
        baseline, file = Path(folder, "alone.csv"), Path(folder, "answers.csv")
        alone, ours = medians(
            (seconds(lambda: with_csv_alone(baseline, rows)), seconds(lambda: with_csv_v2(file, answers)))
            for _ in range(3)
        )
        if baseline.read_bytes() != file.read_bytes():
            raise SystemExit("the two files differ")
    log(f"alone {alone:.2f} s, CSV v2 {ours:.2f} s, {ROWS:,} rows")
    report("csv_v2_write_read_check", ours / alone, 3.0)
