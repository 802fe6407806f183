// Says once that rules have changed since she last worked, in the list's language: what is new in them, and the whole
// guidelines one click away. What she has seen is kept in this browser, by person; where that is not known, what
// changed after her last answer is new.
(() => {
  "use strict";
  if (!window.citejury?.showGuidelines) return; // a script before this one did not come
  const { ask, say, worded, element, watch, me, isLoggedOut, isAnnotator, nameOf, showGuidelines } = window.citejury;
  let asked = null; // whose rules were looked at since the page was loaded
  const key = ({ task, locale }) => `citejury:rules:${me().id}:${task}:${locale}`;
  const seen = (list) => { try { return localStorage.getItem(key(list)); } catch { return null; } };
  const remember = (list) => {
    try { localStorage.setItem(key(list), list.changes.at(-1).version); } catch { /* a browser may forbid it */ }
  };
  const news = (list) => {
    if (!list.answered) return [];
    const known = list.changes.findIndex(({ version }) => version === seen(list));
    return known < 0 ? list.changes.filter(({ is_new: isNew }) => isNew) : list.changes.slice(known + 1);
  };
  const part = (list) => {
    const spoken = worded(list.locale);
    const name = nameOf({ ...list, round: "production" }, spoken);
    const found = element("section", { lang: spoken });
    const text = element("div");
    const html = news(list).map((each) => each.html).join(""); // the server has made tags in it text
    text.append(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
    const guidelines = element("button", { type: "button", textContent: say("guidelines", {}, spoken) });
    guidelines.addEventListener("click", () => showGuidelines(list, name, spoken));
    found.append(element("h2", { textContent: say("rules_changed", { list: name }, spoken) }), text, guidelines);
    return found;
  };
  const show = (lists) => {
    const spoken = worded(lists[0].locale);
    const dialog = element("dialog", { id: "citejury-changed", lang: spoken });
    dialog.setAttribute("aria-label", say("rules_changed", { list: "" }, spoken));
    const close = element("button", { type: "button", textContent: say("close", {}, spoken) });
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("keydown", (event) => event.stopPropagation()); // the page has shortcuts of its own
    dialog.addEventListener("close", () => { lists.forEach(remember); dialog.remove(); });
    dialog.append(close, ...lists.map(part));
    document.body.append(dialog);
    dialog.showModal();
  };
  watch(async () => {
    const person = !isLoggedOut() && isAnnotator() && me()?.id;
    if (!person || !document.body || asked === person) return;
    asked = person;
    const { rules } = await ask("me/rules").catch(() => ({ rules: [] }));
    if (me()?.id !== person) return;
    const changed = rules.filter((list) => news(list).length);
    rules.filter((list) => !changed.includes(list)).forEach(remember);
    if (changed.length) show(changed);
  });
})();
