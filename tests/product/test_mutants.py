from pathlib import Path

import pytest

from tests.support.places import ROOT

MODULE = '''
LIMIT = 3


def most(values: list[int]) -> int:
    """The most of them."""
    if not values:
        raise ValueError(f"There are {len(values)} values, 1 is needed.")
    remark = "none of them is small"
    kind = "word"
    return max(values) + 1
'''


@pytest.fixture
def module(tmp_path: Path) -> str:
    (tmp_path / "module.py").write_text(MODULE, encoding="utf-8")
    return str(tmp_path / "module.py")


def test_what_functions_do_is_changed_and_what_they_say_is_not_and_what_no_test_runs_is_alive(module: str) -> None:
    from tests.mutants import mutant_of, mutations_of

    found = {mutant.change: mutant for mutant in (mutant_of(module, *each) for each in mutations_of(module))}
    opposite = found["- if not values:\n+ if values:"]
    assert opposite.line == MODULE.splitlines().index("    if not values:") + 1
    assert opposite.text == MODULE.replace("if not values:", "if values:")
    assert "- return max(values) + 1\n+ return max(values) - 1" in found
    assert '- kind = "word"\n+ kind = "XXwordXX"' in found
    assert '- remark = "none of them is small"\n+ remark = None' in found
    assert not [change for change in found if "raise" in change or "LIMIT" in change or "XXnone" in change]
    from tests.mutants import Baseline, Mutant, try_all

    assert try_all([Mutant(module, 1, "", "- a\n+ b")], Baseline({}, {module: {1: set()}}), []) == ({0}, {0})


@pytest.mark.rare
def test_all_changes_of_a_line_can_be_asked_for() -> None:
    from tests.mutants import parsed, sampled

    path = "pipeline/text/sentences.py"
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if "[:1].islower()" in text)
    found = sampled(parsed([f"{path}:{line}"]))
    assert {(mutant.path, mutant.line) for mutant in found} == {(path, line)}
    assert any("[:2].islower()" in mutant.change for mutant in found)
