// The page as it was read, read anew: its place, its open folds and the field in use stay as they were.
const { written, every } = document.body.dataset;
const hold = document.getElementById("hold");
const folds = [...document.querySelectorAll("details")];
const kept = history.state;
if (kept) {
  for (const fold of folds) fold.open = kept.open.includes(fold.id);
  hold.checked = kept.hold;
  document.getElementById(kept.focus)?.querySelector("summary")?.focus({ preventScroll: true });
  scrollTo(0, kept.y);
}
history.scrollRestoration = "manual";

function keep() {
  const open = folds.filter((fold) => fold.open).map((fold) => fold.id);
  const focus = document.activeElement?.closest("details")?.id ?? "";
  history.replaceState({ y: scrollY, open, hold: hold.checked, focus }, "");
}

function tell() {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(written)) / 1000));
  const minutes = Math.round(seconds / 60);
  document.getElementById("age").textContent = seconds < 100 ? `, ${seconds} s ago` : `, ${minutes} min ago`;
  if (seconds > 3 * every + 30) document.body.classList.add("old");
}

tell();
setInterval(tell, 1000);
setInterval(() => {
  // Nothing moves under the hands of somebody who holds the page or copies from it.
  if (hold.checked || getSelection().toString()) return;
  keep();
  location.reload();
}, 1000 * every);
addEventListener("pagehide", keep);
