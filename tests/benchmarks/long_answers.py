"""How much of a long answer is seen, and what it takes to see each passage that it cites, in the annotator's page.

`python tests/benchmarks/long_answers.py` takes the twelve longest reports of the corpus, or as many as it is told.
Heights are of what can be seen of each text, its tab being shown. The reader presses `n` to the next sentence, and
`c` on to those of its passages that they have not seen; with READER=c in the environment they press `c` only.
"""

import os
import statistics
import sys
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from tests.benchmarks.measure import embedded, log, report
from tests.support.long_reports import SEEN, long_reports, reports_campaign
from tests.support.page_driver import RECORD_ID, focused, log_in, press, start_browser, wait, window_size

FIELDS = ("answer", "context", "sources")
SIZES = ((1366, 768), (1280, 720), (1093, 614), (683, 384), (400, 800))
# Adds up what every box scrolls, and notes which passages' heads have been in view.
WATCH = """window.moved = 0; window.places = new Map();
document.addEventListener("scroll", ({ target }) => {
  const box = target === document ? document.scrollingElement : target;
  window.moved += Math.abs(box.scrollTop - (window.places.get(box) || 0));
  window.places.set(box, box.scrollTop);
}, true);
const numbers = (text) => [...text.matchAll(/\\[(\\d{1,4}(?:, ?\\d{1,4})*)\\]/g)]
  .flatMap((mark) => mark[1].split(",").map(Number));
const numberOf = (head) => Number(/\\[(\\d+)\\]/.exec(String(head))?.[1]);
const heads = () => [...CSS.highlights.get("citejury-head")];
const cited = new Set(numbers(document.querySelector(".citejury-answer").innerText));
window.met = new Set();
// What is left of the passages that the answer cites, of those that the marked sentence cites, and what was scrolled.
window.look = () => {
  const here = new Set(numbers([...CSS.highlights.get("citejury-sentence") || []].map(String).join("")));
  let [all, ofSentence] = [0, 0];
  heads().forEach((head, at) => {
    const box = head.getClientRects()[0];
    const pane = head.startContainer.parentElement.closest("[role=region]").getBoundingClientRect();
    const [top, bottom] = [Math.max(0, pane.top), Math.min(innerHeight, pane.bottom)];
    if (box && box.bottom > top && box.top < bottom) window.met.add(at);
    if (window.met.has(at) || !cited.has(numberOf(head))) return;
    all += 1;
    if (here.has(numberOf(head))) ofSentence += 1;
  });
  return [all, ofSentence, window.moved];
};"""
LOOK = "return new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(window.look()))))"
TWO_FRAMES = "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
MOST = 600


def read(driver: Chrome) -> tuple[int, float, int]:
    """Keys and pixels until each passage has been in view, and passages that never came."""
    driver.execute_script(WATCH)
    key = os.environ.get("READER", "n")
    keys, (left, of_sentence, moved) = 0, driver.execute_script(LOOK)
    while left and keys < MOST:
        press(driver, "c" if of_sentence and keys else key)
        keys += 1
        left, of_sentence, moved = driver.execute_script(LOOK)
    return keys, moved, left


def show(driver: Chrome, url: str, dataset: str, page: int) -> str:
    driver.get(f"{url}/dataset/{dataset}/annotation-mode?page={page}&status=pending")
    wait(driver, lambda: focused(driver).endswith("_yes"))
    wait(driver, lambda: driver.execute_script("return CSS.highlights.get('citejury-head')?.size"))
    return str(driver.execute_script(RECORD_ID))


def measure(
    driver: Chrome, url: str, facts: dict[str, Any], count: int
) -> tuple[dict[tuple[int, int], list[list[float]]], list[Any]]:
    log_in(driver, url, facts["username"], facts["password"])
    heights: dict[tuple[int, int], list[list[float]]] = {size: [] for size in SIZES}
    readings = []
    with window_size(driver, *SIZES[0]):
        shown = show(driver, url, facts["datasets"]["grounding"], 1)
        for place in range(count):
            for width, height in SIZES:
                with window_size(driver, width, height):
                    wait(driver, lambda width=width: driver.execute_script("return innerWidth") == width)
                    driver.execute_script(TWO_FRAMES)
                    heights[width, height].append([driver.execute_script(SEEN, name) for name in FIELDS])
            driver.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": 1366, "height": 768, "deviceScaleFactor": 1, "mobile": False},
            )
            readings.append(read(driver))
            log(f"report {place + 1}: {readings[-1]}")
            if place + 1 < count:
                press(driver, Keys.ARROW_RIGHT)
                wait(driver, lambda shown=shown: driver.execute_script(RECORD_ID) not in (None, shown))
                shown = driver.execute_script(RECORD_ID)
                wait(driver, lambda: focused(driver).endswith("_yes"))
    return heights, readings


def main(count: int = 12) -> None:
    with embedded() as (folder, server, owner):
        driver = start_browser(folder / "profile")
        try:
            heights, readings = measure(driver, server.url, reports_campaign(owner, long_reports(count)), count)
        finally:
            driver.quit()
    for (width, height), found in heights.items():
        for name, seen in zip(FIELDS, zip(*found, strict=True), strict=True):
            log(f"{width}×{height} {name}: median {statistics.median(seen):.0f} px, {min(seen):.0f} to {max(seen):.0f}")
    keys, moved, unseen = (sum(each) for each in zip(*readings, strict=True))
    log(f"{keys} keys, {moved:,.0f} pixels, {unseen} passages never seen, in {count} reports")
    report("long_answers", min(seen for seen, *_ in heights[SIZES[0]]) / SIZES[0][1], 0.45, is_at_least=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
