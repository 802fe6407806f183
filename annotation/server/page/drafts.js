// What she has answered and not submitted. Of a record that waits for her it becomes a draft on the server. Of one
// that she has submitted or discarded it is a correction, which stays in this browser, hers alone, until she submits
// or drops it: a draft would take the answer that counts out of the exports.
(() => {
  "use strict";
  const page = window.citejury;
  if (!page?.keep) return; // a script before this one did not come
  const { user, read, keep, forget, keptUnder, newEntry, held, form, recordShown, call } = page;
  const { locale, say, element, watch } = page;
  const SECOND = 1000;
  const PAUSE = 4 * SECOND; // a half-filled form becomes a draft after it
  const PREFIX = "citejury-correction:";
  const TAB = "citejury-tab"; // in the tab's own storage, which a reload leaves and no other tab has
  let told = ["", 0]; // a text, and until when it is shown
  let followed, shown, box;
  const tell = (name) => { told = [name, Date.now() + PAUSE]; };
  const tab = (() => {
    try {
      const known = sessionStorage.getItem(TAB) || String(Math.random());
      sessionStorage.setItem(TAB, known);
      return known;
    } catch { return String(Math.random()); } // a browser may forbid it
  })();

  const valuesOf = (record) => Object.fromEntries(record.questions
    .filter(({ answer }) => answer.isValid || answer.isPartiallyValid)
    .map(({ name, answer }) => [name, { value: answer.valuesAnswered }]));
  const isAnswered = (record) => ["submitted", "discarded"].includes(record?.status);

  const saveDraft = (record) => {
    const draft = newEntry(record.id, null, { status: "draft", values: valuesOf(record) }, PAUSE);
    const before = read(draft.key);
    if (!held.has(draft.key) && (!before || before.status === "draft") && Object.keys(draft.values).length) keep(draft);
  };
  page.draftStored = (entry, there) => {
    tell("draft");
    const record = recordShown();
    // Otherwise the page would count the record as pending and leave one out.
    if (record?.id === entry.record && !record.answer) {
      record.answer = { id: there.id, status: there.status, value: there.values, updatedAt: there.updated_at };
    }
  };

  const keyOf = (id) => `${PREFIX}${user()}:${id}`;
  const correctionOf = (record) => (user() && isAnswered(record) ? read(keyOf(record.id)) : null);
  const corrections = () => (user() ? keptUnder(`${PREFIX}${user()}:`) : []);
  const drop = (id) => { const entry = read(keyOf(id)); if (entry) forget(entry); };
  const sorted = (value) => (Array.isArray(value)
    ? value.map((each) => JSON.stringify(Object.entries(each).sort())).sort() : value);
  const plain = (values) => JSON.stringify(Object.entries(values || {})
    .map(([name, { value }]) => [name, sorted(value)])
    .filter(([, value]) => value !== "" && !(Array.isArray(value) && !value.length)).sort());
  const beginning = (record) => { // what she knows the record by
    const { content } = record.fields.find(({ name }) => name === "query") || record.fields[0] || {};
    return new DOMParser().parseFromString(content || "", "text/html").body.textContent.slice(0, 60);
  };
  const keepCorrection = (record) => {
    const values = valuesOf(record);
    if (plain(values) === plain(record.answer.value)) { drop(record.id); return; }
    const place = new URLSearchParams(window.location.search).get("page");
    keep({
      key: keyOf(record.id), record: record.id, dataset: page.dataset()?.id, tab, place, values, status: record.status,
      base: record.answer.updatedAt, text: beginning(record), at: Date.now(),
    });
  };
  const fill = (record, values) => {
    record.questions.forEach(({ name, answer }) => {
      if (values?.[name]) answer.response(values[name]);
      else answer.clear();
      if (Array.isArray(answer.values) && answer.type?.isSpanType) fillSpans(answer);
    });
  };
  const fillSpans = (answer) => { // a field that is on the page has its own list of what is marked in it
    const spans = answer.valuesAnswered.map(({ label, start, end }) => (
      { entity: { id: answer.options.find((option) => option.value === label)?.id }, from: start, to: end }));
    document.querySelectorAll("[id^=entity-span-container-]").forEach((container) => {
      let at = container;
      while (at && !at.__vue__?.highlighting) at = at.parentElement;
      at?.__vue__.highlighting.removeAllHighlights();
      at?.__vue__.highlighting.loadHighlights(spans);
    });
  };
  const takeUp = (record) => {
    const entry = correctionOf(record);
    if (!entry) return;
    keep({ ...entry, tab });
    fill(record, entry.values);
  };
  const giveUp = (record) => {
    drop(record.id);
    fill(record, record.answer.value);
    record.initialize();
  };
  page.answered = (entry) => drop(entry.record); // what she sends now is newer

  // What she sends from another tab or browser is newer than a correction of what was there before.
  const isOutdated = (entry, status, date) => entry.status !== status || entry.base !== date;
  const onShown = (record) => {
    const entry = user() && read(keyOf(record.id));
    if (!entry) return;
    if (isOutdated(entry, record.status, record.answer?.updatedAt)) {
      forget(entry);
      tell("outdated");
    } else if (entry.tab === tab) fill(record, entry.values);
  };
  const onChange = (record) => {
    if (!user() || !record) return;
    if (record !== shown) {
      shown = record;
      onShown(record);
    } else if (isAnswered(record)) keepCorrection(record);
    else saveDraft(record);
    notice();
  };
  const follow = () => { // the form is another one for each record
    const now = form();
    if (!now || now === followed || !now.record) return;
    followed = now;
    const state = () => [now.record, now.record && JSON.stringify([now.record.status, valuesOf(now.record)])];
    let before = "";
    now.$watch(state, ([record, values]) => {
      if (record === shown && values === before) return;
      before = values;
      onChange(record);
    });
    before = state()[1];
    onChange(now.record);
  };

  const notice = () => {
    const [record, footer] = [recordShown(), document.querySelector("form.questions-form .footer-form")];
    const entry = record && footer && correctionOf(record);
    if (!entry) { if (box) box.hidden = true; return; }
    if (!box) {
      box = element("div", { id: "citejury-correction" });
      box.append(element("span"), element("button", { type: "button" }), element("button", { type: "button" }));
      box.setAttribute("role", "status");
      const [, take, give] = box.children;
      take.addEventListener("click", () => takeUp(recordShown()));
      give.addEventListener("click", () => giveUp(recordShown()));
      box.addEventListener("keydown", (event) => event.stopPropagation()); // Enter would submit
    }
    const isHere = entry.tab === tab;
    const [text, take, give] = box.children;
    [[box, "lang", locale()], [text, "textContent", say(isHere ? "correction" : "correction_elsewhere")],
      [take, "textContent", say("take_up")], [give, "textContent", say("drop")], [take, "hidden", isHere],
      [box, "hidden", false]].forEach(([part, name, value]) => { if (part[name] !== value) part[name] = value; });
    if (!box.isConnected || box.parentNode !== footer.parentNode) footer.before(box);
  };
  // She goes to a record whose correction waits, unless it is gone or was answered later elsewhere.
  const goTo = async (entry) => {
    const found = await call("GET", `records/${entry.record}`).catch(() => null);
    const mine = found?.status === 200 && JSON.parse(found.text).responses.find((each) => each.user_id === user());
    if (found?.status === 404 || (mine && isOutdated(entry, mine.status, mine.updated_at))) {
      forget(entry);
      tell("outdated");
    } else if (found) {
      const query = new URLSearchParams({ page: entry.place || 1, status: entry.status });
      window.location.assign(new URL(`dataset/${entry.dataset}/annotation-mode?${query}`, document.baseURI));
    }
  };

  watch(() => { follow(); notice(); });
  const toldNow = () => (Date.now() < told[1] ? told[0] : "");
  // Those of the dataset that is open, apart from the one before her.
  const correctionsElsewhere = () => corrections().filter((entry) => entry.dataset === page.dataset()?.id
    && entry.record !== recordShown()?.id);
  Object.assign(page, { valuesOf, toldNow, correctionsElsewhere, goTo });
})();
