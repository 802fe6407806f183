"""Real answers as annotators would get them: the demo's always, recordings and reports where they are at hand.

`python -m tests.support.real_answers` says how many of them are shown as written, and how long showing one takes.
"""

import json
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

from annotation.argilla.rendering import rendered_answer
from pipeline.providers import provider_name, read_payload
from pipeline.records.citation_form import to_one_form
from tests.support.places import ROOT, SHARED

_RECORDINGS = SHARED / "recordings"
_DEMO = ROOT / "exports" / "demo_data" / "payloads"
_REPORTS = SHARED / "corpora" / "reports" / "open_deep_research_gpt-4.1.jsonl"


def real_answers() -> dict[str, list[str]]:
    """Canonical answers by where they are from."""
    sidecars = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(_RECORDINGS.glob("*/*.meta.json"))]
    recorded = [
        _answer(each["provider"], (_RECORDINGS / each["provider"] / each["file"].rpartition("/")[2]))
        for each in sidecars
        if each["api_shape"] not in ("error", "non-json")
    ]
    reports = _REPORTS.read_text(encoding="utf-8").splitlines() if _REPORTS.is_file() else []
    demo = [_answer(path.parent.name, path) for path in sorted(_DEMO.glob("*/*.json"))]
    return {
        "demo": demo,
        "recordings": [answer for answer in recorded if answer.strip()],
        "reports": [json.loads(line)["article"] for line in reports],
    }


def _answer(provider: str, payload: Path) -> str:
    return to_one_form(read_payload(provider_name(provider), payload.read_text(encoding="utf-8"))).text


def main() -> None:
    for name, answers in real_answers().items():
        if not answers:
            sys.stdout.write(f"{name}: not at hand\n")
            continue
        rendered_answer("warm")
        rendered_answer.cache_clear()
        seconds, kinds, shown = [], Counter[str](), []
        for answer in answers:
            began = time.perf_counter()
            shown.append(rendered_answer(answer))
            seconds.append(time.perf_counter() - began)
            kinds.update(shown[-1].repairs.keys())
        repaired, given_up = sum(bool(each.repairs) for each in shown), sum(bool(each.given_up) for each in shown)
        sys.stdout.write(
            f"{name}: {len(answers)} answers, {repaired} repaired, {given_up} given up "
            f"({given_up / len(answers):.1%}); median {statistics.median(seconds) * 1000:.1f} ms, longest "
            f"{max(seconds) * 1000:.0f} ms; answers by kind of repair: "
            f"{', '.join(f'{kind} {count}' for kind, count in kinds.most_common())}\n"
        )


if __name__ == "__main__":
    main()
