"""Skips where the tests run for others: each one fails there, unless that machine says that it lacks what is needed.

`CI` is set by every service that runs tests. `MAY_SKIP` names what such a machine does not have, by words of the
reasons with commas between them: `MAY_SKIP=shared,Chromium`.
"""

import os
from collections.abc import Generator
from typing import Any

import pytest

_ELSEWHERE = ("only Linux", "on Windows")
"""What no Linux machine skips, by words of the reasons."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips where it may not."""
    report = yield
    _fail_if_unexpected(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a file that skips as a whole where it may not."""
    report = yield
    _fail_if_unexpected(report)
    return report


def _fail_if_unexpected(report: Any) -> None:
    if report.outcome != "skipped" or hasattr(report, "wasxfail") or not os.environ.get("CI"):
        return
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    named = [word.strip() for word in os.environ.get("MAY_SKIP", "").split(",") if word.strip()]
    if not any(word.casefold() in reason.casefold() for word in (*_ELSEWHERE, *named)):
        report.outcome = "failed"
        report.longrepr = f"{reason}. Nothing may skip where CI is set, except what MAY_SKIP names."
