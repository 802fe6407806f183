import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from annotation.argilla.client import Argilla
from annotation.argilla.labels import forget_tasks
from annotation.server.launch import ServerHandle
from exports.cli import main
from tests.support.claims_task import claims_known
from tests.support.export_bench import Bench, new_bench, record

pytestmark = pytest.mark.server

PEOPLE = ("anna", "ben")


@pytest.fixture
def answered(argilla_server: ServerHandle, client: Argilla, users: dict[str, str], tmp_path: Path) -> Iterator[Bench]:
    """Twelve answers of two models to six narratives; of the second model's most are wrong."""
    with claims_known(tmp_path / "project"):
        bench = new_bench(argilla_server, client, users, "claims")
        records = []
        for narrative in range(6):
            for model in ("claude", "gemini"):
                is_good = model == "claude" or narrative == 0
                given = {"accuracy": "right" if is_good else "wrong", "complete": "yes" if is_good else "no"}
                given |= {"kind": "fact" if narrative % 2 else "opinion", "sureness": "2" if is_good else "0.5"}
                dissent = {"accuracy": "partly", "sureness": "1"} if narrative == 1 else {}
                said = [bench.response(who, **given | (dissent if who == "ben" else {})) for who in PEOPLE]
                origin = {"model_name": model, "narrative_id": f"n{narrative}"}
                records.append(record("claims", f"{model}-{narrative}", *said, provenance=origin))
        bench.put("claims", *records)
    yield bench
    forget_tasks()


def run(*words: object) -> str:
    """What the command prints; it knows of no task but ours before."""
    forget_tasks()
    result = CliRunner().invoke(main, ["exports", *map(str, words)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_four_questions_on_four_scales_go_from_the_server_to_findings_without_code(
    answered: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_KEY", answered.server.owner_api_key)
    run("csv", "export", "--workspace", answered.workspace, "--api-url", answered.server.url)
    printed = run("results", "export", "--out", "agreement", "--resamples", "200", "--fail-under", "-0.9")
    agreed = json.loads((tmp_path / "agreement" / "agreement.json").read_bytes())["tasks"]
    assert list(agreed) == ["claims"]
    labels = agreed["claims"]["labels"]
    assert {label: found.get("scale", "boolean") for label, found in labels.items()} == {
        "accuracy": "ordinal",
        "complete": "boolean",
        "kind": "nominal",
        "sureness": "interval",
    }
    assert (labels["kind"]["krippendorff_alpha"], labels["complete"]["krippendorff_alpha"]) == (1, 1)
    assert 0.5 < labels["accuracy"]["krippendorff_alpha"] < 1
    for text in (
        printed,
        *((tmp_path / "agreement" / name).read_text("utf-8") for name in ("agreement.md", "details.html")),
    ):
        assert all(label in text for label in ("claims", *labels))

    printed = run("results", "export", "--out", "results")
    found = json.loads((tmp_path / "results" / "results.json").read_bytes())["tasks"]["claims"]
    rates = {each["by"]["model_name"]: each["rate"] for each in found["labels"]["complete"]["groups"]}
    assert rates == {"claude": 1, "gemini": pytest.approx(1 / 6)}
    means = {each["by"]["model_name"]: each["rate"] for each in found["scaled"]["accuracy"]["mean"]["groups"]}
    assert means == {"claude": pytest.approx(35 / 12), "gemini": pytest.approx(17 / 12)}
    (difference,) = found["scaled"]["sureness"]["mean"]["differences"]
    assert (difference["a"], difference["b"], difference["n_narratives"]) == ("claude", "gemini", 6)
    assert set(found["scaled"]["kind"]["shares"]) == {"fact", "opinion", "=advice"}
    for text in (printed, (tmp_path / "results" / "results.md").read_text("utf-8")):
        assert all(label in text for label in ("accuracy", "complete", "kind", "sureness"))
