"""From Enter to the next record, in the annotator's page with our scripts against the same page without them.

Headless Chromium answers by keyboard, one key after another, and the page itself takes the time: from the key that
submits until the next record is there and its first question has the focus. The keys of a record are counted too.
"""

import statistics

from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS, TaskName
from tests.benchmarks.measure import embedded, log, report
from tests.support.page_campaign import campaign, opened
from tests.support.page_driver import answer, forget, press, start_browser, wait

RECORDS = 12
OURS = "*/citejury/*"
WATCH = """window.taken = [];
const shown = () => document.querySelector("form.questions-form")?.__vue__?.record?.id;
let begun, before;
const start = ({ key }) => { if (key === "Enter") [begun, before] = [performance.now(), shown()]; };
addEventListener("keydown", start, true);
const look = () => {
  if (begun && shown() && shown() !== before && document.activeElement.id.endsWith("_yes")) {
    window.taken.push(performance.now() - begun);
    begun = null;
  }
  requestAnimationFrame(look);
};
look();"""


def annotate(driver: Chrome, owner: Argilla, url: str, task: TaskName, blocked: list[str]) -> tuple[int, list[float]]:
    """Keys a record, and seconds from each submission but the last to the record after it."""
    work = campaign(owner, records=RECORDS, annotators=1, task=task)
    forget(driver, url)
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": blocked})
    # Before the page's own scripts, which take Enter for themselves while nothing is typed in the notes.
    watch = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    opened(driver, work, url)
    if bool(driver.execute_script("return Boolean(window.citejury)")) == bool(blocked):
        raise SystemExit("the page has scripts that it should not have, or none where it should")
    keys = 0
    for done in range(1, RECORDS + 1):
        answer(driver, ((label, True) for label in LABELS[task]))  # a key each
        press(driver, Keys.RETURN)
        keys += len(LABELS[task]) + 1
        wait(driver, lambda done=done: len(driver.execute_script("return taken")) == min(done, RECORDS - 1))
    wait(driver, lambda: work.statuses() == ["submitted"] * RECORDS)
    driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", watch)
    return keys // RECORDS, [each / 1000 for each in driver.execute_script("return taken")]


def main() -> None:
    ours: list[float] = []
    without: list[float] = []
    with embedded() as (folder, server, owner):
        driver = start_browser(folder / "profile")
        try:
            for task in TASKS:
                _, plain = annotate(driver, owner, server.url, task, [OURS])
                keys, mine = annotate(driver, owner, server.url, task, [])
                ours, without = ours + mine, without + plain
                taken = f"{statistics.median(mine):.2f} s, {statistics.median(plain):.2f} s without our scripts"
                log(f"{task}: {keys} keys a record, to the next one {taken}")
        finally:
            driver.quit()
    report("submit", statistics.median(ours) / statistics.median(without), 1.5)
