// What she has answered and not submitted. Of a record that waits for her it becomes a draft on the server. Of one
// that she has submitted or discarded it is a correction, which stays in this browser, hers alone, until she submits
// or drops it: a draft would take the answer that counts out of the exports.
(() => {
  "use strict";
  const page = window.citejury;
  if (!page?.keep) return; // a script before this one did not come
  const { user, read, keep, know, foreign, forget, keptUnder, newEntry, held, form, recordShown, call } = page;
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
    const [before, other] = [read(draft.key), foreign(draft.key)];
    Object.assign(draft, { text: beginning(record), newer: before?.newer });
    if (other?.status === "draft" && plain(other.values) !== plain(draft.values)) { // both are kept until she has chosen
      const { status, values, at } = other;
      draft.newer = { status, values, isHere: true, updated_at: new Date(at).toISOString().slice(0, -1) };
    }
    const says = Object.keys(draft.values).length || record.answer; // or she has taken back what a draft says
    if (!held.has(draft.key) && (!before || before.status === "draft") && says) keep(draft);
    open(record.id, draft.values);
  };
  page.draftStored = (entry, there) => {
    tell("draft");
    const record = recordShown();
    // Otherwise the page would count the record as pending and leave one out.
    if (record?.id === entry.record && !record.answer) {
      record.answer = { id: there.id, status: there.status, value: there.values, updatedAt: there.updated_at };
    }
  };

  // What a reload of this tab comes back to: record.js opens it, and here is what she had entered.
  const OPEN = "citejury-open";
  const open = (record, values) => {
    try { sessionStorage.setItem(OPEN, JSON.stringify({ record, dataset: page.dataset()?.id, values })); } catch { /* or not */ }
  };
  const reopen = (record) => {
    if (!record.id) return; // an empty queue has a form too
    let left = null;
    try { left = JSON.parse(sessionStorage.getItem(OPEN)); } catch { return; }
    const entry = read(newEntry(record.id, null, {}).key);
    const values = entry?.status === "draft" ? entry.values : !record.answer && left?.record === record.id && left.values;
    if (!values || isAnswered(record)) return;
    if (entry) know(entry);
    fill(record, values);
  };
  page.submissionStored = () => { // and from there on to the queue
    const { pathname, searchParams } = new URL(window.location.href);
    const search = searchParams.get("search");
    try { if (!search || search !== sessionStorage.getItem("citejury-resumed")) return; } catch { return; }
    window.location.replace(`${pathname}?${new URLSearchParams({ page: 1, status: "pending" })}`);
  };
  const keyOf = (id) => `${PREFIX}${user()}:${id}`;
  // Each tab has one of its own; those of others are offered, the latest first.
  const correctionsOf = (id) => (user() ? keptUnder(keyOf(id)).sort((a, b) => b.at - a.at) : []);
  const ownKey = (id) => `${keyOf(id)}:${tab}`;
  const firstOf = (id) => correctionsOf(id).find((entry) => entry.tab === tab) || correctionsOf(id)[0];
  const correctionOf = (record) => (isAnswered(record) ? firstOf(record.id) : null);
  const corrections = () => (user() ? keptUnder(`${PREFIX}${user()}:`) : []);
  const drop = (id) => correctionsOf(id).filter((entry) => entry.tab === tab).forEach(forget);
  const offer = (entry, { status, updatedAt: base }) => {
    forget(entry);
    keep({ ...entry, key: `${keyOf(entry.record)}:${entry.at}`, tab: "", status, base });
  };
  const sorted = (value) => (Array.isArray(value)
    ? value.map((each) => JSON.stringify(Object.entries(each).sort())).sort() : value);
  const plain = (values) => JSON.stringify(Object.entries(values || {})
    .map(([name, { value }]) => [name, sorted(value)])
    .filter(([, value]) => value !== "" && !(Array.isArray(value) && !value.length)).sort());
  const beginning = (record) => { // what she knows the record by
    const { content } = record.fields.find(({ name }) => name === "query") || record.fields[0] || {};
    return new DOMParser().parseFromString(content || "", "text/html").body.textContent.slice(0, 60);
  };
  // The reason to discard a record stands below her note, and this browser knows it apart. Where none is known all is note.
  const reasonKey = (id) => `citejury-reason:${user()}:${id}`;
  const withReason = (id, note, reason) => {
    keep({ key: reasonKey(id), reason, at: Date.now() });
    return [note, reason].filter((text) => text.trim()).join("\n");
  };
  const withoutReason = (id, text) => {
    const reason = read(reasonKey(id))?.reason;
    if (text === reason) return "";
    return reason && text.endsWith(`\n${reason}`) ? text.slice(0, -reason.length - 1) : text;
  };
  const keepCorrection = (record) => {
    const [said, notes] = [record.answer.value?.notes?.value, record.questions.find(({ name }) => name === "notes")];
    const values = valuesOf(record);
    const { notes: _, ...answers } = values;
    // Of a discarded record that she takes up again the reason to discard it is none of her notes any more.
    if (record.status === "discarded" && said && notes?.answer.value === said && Object.keys(answers).length
      && plain(answers) !== plain({ ...record.answer.value, notes: { value: "" } })) {
      notes.answer.value = withoutReason(record.id, said);
      if (notes.answer.value) values.notes = { value: notes.answer.value };
      else delete values.notes;
    }
    drop(record.id);
    if (plain(values) === plain(record.answer.value)) return;
    const place = new URLSearchParams(window.location.search).get("page");
    keep({
      key: ownKey(record.id), record: record.id, dataset: page.dataset()?.id, tab, place, values, status: record.status,
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
    forget(entry);
    keep({ ...entry, key: ownKey(record.id), tab });
    fill(record, entry.values);
  };
  const giveUp = (record) => {
    forget(correctionOf(record));
    fill(record, record.answer.value);
    record.initialize();
  };
  page.gaveWay = ({ record, newer }) => { if (recordShown()?.id === record) fill(recordShown(), newer.values); };
  // A draft that comes too late: submitted or discarded in another tab. What it says besides is offered there.
  page.setAside = ({ record, dataset, values, text = "", at }, { status, values: now, updated_at: updatedAt = "" }) => {
    const isNew = ([name, { value }]) => value !== "" && plain({ name: { value } }) !== plain({ name: now?.[name] || { value: "" } });
    if (Object.entries(values || {}).some(isNew)) offer({ record, dataset, values, text, at, place: 1 }, { status, updatedAt });
  };
  page.answered = (entry) => { // what she sends now is newer
    drop(entry.record);
    if (entry.status === "submitted") keptUnder(reasonKey(entry.record)).forEach(forget);
    try { if (JSON.parse(sessionStorage.getItem(OPEN))?.record === entry.record) sessionStorage.removeItem(OPEN); } catch { /* as above */ }
  };

  // What she sends from another tab or browser is newer than a correction of what was there before.
  const isOutdated = (entry, status, date) => entry.status !== status || entry.base !== date;
  const onShown = (record) => {
    const entry = user() && firstOf(record.id);
    if (!entry) { if (user()) reopen(record); return; }
    if (isOutdated(entry, record.status, record.answer?.updatedAt)) {
      offer(entry, { status: record.status, updatedAt: record.answer?.updatedAt }); // and nothing more
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
    if (found?.status === 404) {
      forget(entry);
      tell("outdated");
    } else if (found) {
      const query = new URLSearchParams({ page: entry.place || 1, status: mine?.status || entry.status });
      window.location.assign(new URL(`dataset/${entry.dataset}/annotation-mode?${query}`, document.baseURI));
    }
  };

  watch(() => { follow(); notice(); });
  const toldNow = () => (Date.now() < told[1] ? told[0] : "");
  // Those of the dataset that is open, apart from the one before her.
  const correctionsElsewhere = () => corrections().filter((entry) => entry.dataset === page.dataset()?.id
    && entry.record !== recordShown()?.id);
  Object.assign(page, { valuesOf, toldNow, correctionsElsewhere, goTo, withReason });
})();
