// Asks which of two answers counts: the one given here, to an older state, or what was submitted since in another tab or
// browser. keep.js holds the one from here until they have chosen; nothing is lost before.
(() => {
  "use strict";
  if (!window.citejury?.keep) return; // a script before this one did not come
  const page = window.citejury;
  const { say, locale, element, recordShown } = page;
  let last = Promise.resolve(); // one after the other

  const worded = (question, value) => {
    const text = (each) => question?.answer?.values?.find?.((option) => option.value === each)?.text ?? String(each);
    if (Array.isArray(value)) return value.map((each) => text(each?.label ?? each?.value ?? each)).join(", ") || "–";
    return value === undefined || value === "" ? "–" : text(value);
  };
  const rowsOf = (entry) => {
    const known = recordShown()?.questions || []; // every record of a list has the same
    const names = new Set([...Object.keys(entry.values || {}), ...Object.keys(entry.newer.values || {})]);
    const inOrder = [...known.map(({ name }) => name).filter((name) => names.delete(name)), ...names];
    return inOrder.map((name) => {
      const question = known.find((each) => each.name === name);
      return [question?.title || name, ...[entry, entry.newer].map(({ values }) => worded(question, values?.[name]?.value))];
    });
  };
  const ask = (entry) => new Promise((choose) => {
    const dialog = element("dialog", { id: "citejury-conflict", lang: locale() });
    dialog.setAttribute("aria-labelledby", "citejury-conflict-title");
    const time = new Date(`${entry.newer.updated_at}Z`).toLocaleString(locale());
    const state = (status) => (status === "discarded" ? ` (${say("conflict_discarded")})` : "");
    const table = element("table");
    const row = (name, cells) => {
      const made = table.insertRow();
      cells.forEach((textContent, place) => made.append(element(place ? name : "th", { textContent, dir: "auto" })));
    };
    row("th", ["", say("conflict_here") + state(entry.status), say("conflict_there", { time }) + state(entry.newer.status)]);
    rowsOf(entry).forEach((cells) => row("td", cells));
    const end = (isHers) => { dialog.remove(); choose(isHers); };
    const buttons = [["conflict_other", false], ["conflict_mine", true]].map(([name, isHers]) => {
      const button = element("button", { type: "button", textContent: say(name) });
      button.addEventListener("click", () => end(isHers));
      return button;
    });
    dialog.addEventListener("cancel", (event) => event.preventDefault()); // it is one of the two
    dialog.addEventListener("keydown", (event) => event.stopPropagation()); // the page has shortcuts of its own
    const which = entry.record === recordShown()?.id ? "" : entry.text || "";
    dialog.append(element("h2", { id: "citejury-conflict-title", textContent: say("conflict_title"), tabIndex: -1 }),
      element("p", { textContent: which, hidden: !which, dir: "auto" }), table, ...buttons);
    document.body.append(dialog);
    dialog.showModal();
    dialog.firstChild.focus(); // the key that submitted may still be held down
  });
  page.choose = (entry) => {
    const asked = last.then(() => ask(entry));
    last = asked;
    return asked;
  };
})();
