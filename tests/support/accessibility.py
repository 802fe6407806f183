"""What axe-core finds in a page, as `make axe` installs it: https://github.com/dequelabs/axe-core."""

from collections.abc import Iterator

import pytest
from selenium import webdriver

from tests.support.page_driver import PATIENCE
from tests.support.places import ROOT

_AXE = ROOT / ".venv" / "axe-core" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """const done = arguments[0];
axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => done(violations
  .flatMap(({ id, impact, nodes }) => nodes
    .map(({ target, failureSummary }) => [impact, id, target.join(" "), failureSummary]))))"""


def load_axe() -> str:
    if not _AXE.exists():
        pytest.skip("`make axe` could not install axe-core here.")
    return _AXE.read_text(encoding="utf-8")


def barriers(driver: webdriver.Chrome, axe: str) -> list[tuple[str, str, str, str]]:
    """Impact, rule, place and explanation of all that is found in the page as it is, without leaving anything there."""
    driver.execute_script(f"{axe}; window.axe = axe")
    driver.set_script_timeout(PATIENCE)
    return [(each[0], each[1], each[2], each[3]) for each in driver.execute_async_script(_RUN)]


def harmful_barriers(driver: webdriver.Chrome, axe: str) -> list[tuple[str, str, str, str]]:
    return [each for each in barriers(driver, axe) if each[0] in (("serious", "critical"))]


def in_light_and_dark(driver: webdriver.Chrome) -> Iterator[str]:
    """The page in its light colours, then in its dark ones, by Argilla's own switch and by what the system wishes."""
    for theme in ("light", "dark"):
        wish = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)
        driver.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
        # A colour on its way to another is neither.
        driver.execute_script(
            "document.getAnimations().forEach((each) => each instanceof CSSTransition && each.finish())"
        )
        yield theme
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
