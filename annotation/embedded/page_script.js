// Keeps what an annotator answers until the server has it, and helps her before she submits. For Argilla 2.8.0, whose
// page sends answers by XMLHttpRequest and holds its Vue 2 components in `__vue__` of their elements. Where the page is
// not as expected, answers are still kept and sent.
(() => {
  "use strict";
  const { rules, texts } = JSON.parse(document.currentScript.dataset.citejury);
  const API = new URL("api/v1/", document.baseURI).pathname;
  const [SECOND, UUID] = [1000, "[0-9a-f-]{36}"];
  const PAUSE = 4 * SECOND; // a half-filled form becomes a draft after it
  const LONGEST_HOLD = 10 * SECOND; // that a server which answers nothing at all keeps her from the next record
  const memory = new Map(); // what localStorage has no room for
  const ids = new Map(); // key of an entry → id of her response on the server
  const flying = new Map(); // key → the request under way: one at a time for a record, lest an older one come last
  const held = new Set(); // keys for which the page itself waits
  let own = null; // the login that this tab began with: in another one somebody else may have logged in since
  let locale = navigator.language.slice(0, 2), expired = null, leaving = false, told = "", toldUntil = 0, bar, hint;
  const say = (name, n) => (texts[locale] || texts.en)[name].replace("{n}", n);
  const stored = (action) => { try { return action(localStorage); } catch { return null; } }; // a browser may forbid it
  const parsed = (text) => { try { return JSON.parse(text); } catch { return null; } };
  const person = (login) => { // whose "Bearer …" it is; "false" is nobody's
    try { return JSON.parse(atob(login.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"))).identity; }
    catch { return null; }
  };
  const token = () => {
    const now = stored((all) => all.getItem("auth._token.local"));
    return own && person(own) !== person(now) ? own : now;
  };
  const user = () => person(token());

  const read = (key) => parsed(memory.get(key) || stored((all) => all.getItem(key)));
  const keep = (entry) => {
    const text = JSON.stringify(entry);
    try { localStorage.setItem(entry.key, text); memory.delete(entry.key); } catch { memory.set(entry.key, text); }
  };
  const newest = (entry) => (read(entry.key) || {}).at === entry.at;
  const forget = (entry) => {
    if (!newest(entry)) return;
    memory.delete(entry.key);
    stored((all) => all.removeItem(entry.key));
  };
  const kept = (whose) => [...new Set([...(stored(Object.keys) || []), ...memory.keys()])]
    .filter((key) => key.startsWith(`citejury:${whose}`)).map(read).filter((entry) => entry?.key);
  const unsaved = () => kept(user() ? `${user()}:` : "")
    .filter((entry) => entry.tries || (entry.status !== "draft" && Date.now() - entry.at > 2 * SECOND));
  const newEntry = (record, response, { status, values }, wait = 10 * SECOND) => ({
    key: `citejury:${user()}:${record || response}`, user: user(), record, response, status, values, tries: 0,
    at: Date.now(), due: Date.now() + wait,
  });

  const plain = ({ status, values }) => JSON.stringify(
    [status, Object.entries(values || {}).map(([name, each]) => [name, each.value]).sort()]);
  const outdated = (entry, mine, date) => // she answered later elsewhere; the server's clock decides
    (entry.status === "draft" && mine.status !== "draft")
    || Date.parse(`${mine.updated_at}Z`) > entry.at + Date.parse(date) - Date.now() + 5 * SECOND;
  const call = async (method, path, body) => {
    const answer = await fetch(API + path, {
      method, body, keepalive: Boolean(body) && body.length < 30000, signal: AbortSignal.timeout(20 * SECOND),
      headers: { authorization: token(), "content-type": "application/json" },
    });
    return { status: answer.status, date: answer.headers.get("date"), text: await answer.text() };
  };
  const store = async (entry) => {
    let response = ids.get(entry.key) || entry.response;
    // The server may have it already, and only its answer was lost; another tab may have submitted what is a draft here.
    if (entry.record && (entry.tries || (response && entry.status === "draft"))) {
      const found = await call("GET", `records/${entry.record}`);
      if (found.status !== 200) return found;
      const mine = JSON.parse(found.text).responses.find((each) => each.user_id === entry.user);
      const done = mine && (plain(mine) === plain(entry) || outdated(entry, mine, found.date));
      if (done) return { status: 200, text: JSON.stringify(mine) };
      response = mine?.id;
    }
    const body = JSON.stringify({ status: entry.status, values: entry.values });
    if (response) return call("PUT", `responses/${response}`, body);
    return call("POST", `records/${entry.record}/responses`, body);
  };
  const attempt = async (entry) => {
    const [sentWith, answer] = [token(), await store(entry).catch(() => null)];
    const { status } = answer || {};
    entry.tries += 1;
    const isGood = status >= 200 && status < 300;
    const there = isGood && parsed(answer.text); // a network's own log-in page answers 200 as well
    if (there?.id) {
      ids.set(entry.key, there.id);
      forget(entry);
      if (there.status === "draft") { markDraft(entry, there); [told, toldUntil] = ["draft", Date.now() + PAUSE]; }
      return answer;
    }
    if (status === 401) expired = sentWith;
    entry.refused = entry.tries > 1 && [400, 403, 404, 413, 422].includes(status);
    entry.due = Date.now() + Math.min(30, 2 ** Math.min(entry.tries, 5)) * (0.25 + Math.random() / 4) * SECOND;
    if (newest(entry)) keep(entry);
    return isGood ? null : answer;
  };
  const deliver = async (entry) => {
    while (flying.has(entry.key)) await flying.get(entry.key);
    if (!newest(entry) || entry.user !== user()) return null;
    const sending = attempt(entry).finally(() => flying.delete(entry.key));
    flying.set(entry.key, sending);
    return sending;
  };
  const hold = async (entry) => { // a short failure passes unseen; a long one must not stop her work
    const patience = unsaved().length ? 1 : 5;
    const pause = (length) => new Promise((done) => { setTimeout(done, length, null); });
    const end = Date.now() + LONGEST_HOLD;
    const deliverSoon = async () => {
      for (let tries = 1; ; tries += 1) {
        const answer = await deliver(entry);
        const final = answer && (answer.status < 500 && answer.status !== 409 && !(answer.status === 404 && tries === 1));
        if (final || tries >= patience || Date.now() > end) return answer;
        await pause(2 ** tries * SECOND / 8);
      }
    };
    held.add(entry.key);
    return Promise.race([deliverSoon(), pause(LONGEST_HOLD)]).finally(() => held.delete(entry.key));
  };

  const { open, send, setRequestHeader } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    this.citejury = [method.toUpperCase(), new URL(url, document.baseURI).pathname.replace(API, "")];
    if (/\/sign-in\/?$/.test(window.location.pathname)) own = null;
    this.addEventListener("load", () => learnLocale(this));
    return open.call(this, method, url, ...rest);
  };
  XMLHttpRequest.prototype.setRequestHeader = function (name, value) {
    const isLogin = name.toLowerCase() === "authorization";
    if (isLogin && (!own || person(own) === person(value))) own = value;
    return setRequestHeader.call(this, name, isLogin ? own : value);
  };
  XMLHttpRequest.prototype.send = function (body) {
    const entries = user() ? entriesOf(this.citejury.join(" "), body) : [];
    entries.forEach(keep);
    if (entries.length !== 1) {
      this.addEventListener("load", () => acknowledge(entries, this));
      return send.call(this, body);
    }
    hold(entries[0]).then((answer) => finish(this, answer));
    return undefined;
  };
  const entriesOf = (request, body) => {
    const match = (pattern) => (request.match(new RegExp(`^${pattern}$`)) || [])[1];
    const [record, response] = [match(`POST records/(${UUID})/responses`), match(`PUT responses/(${UUID})`)];
    if (record) return [newEntry(record, null, JSON.parse(body))];
    const shown = recordShown();
    if (response) return [newEntry(shown?.answer?.id === response ? shown.id : null, response, JSON.parse(body))];
    if (request !== "POST me/responses/bulk") return [];
    return JSON.parse(body).items.map((item) => newEntry(item.record_id, null, item));
  };
  const acknowledge = (entries, request) => {
    if (!entries.length || request.status >= 300) return;
    const done = (parsed(request.responseText)?.items || []).map((each) => each.item?.record_id);
    entries.filter((entry) => done.includes(entry.record)).forEach(forget);
  };
  const finish = (request, answer) => {
    const shown = { readyState: 4, status: answer?.status || 0, responseText: answer?.text || "" };
    Object.entries(shown).forEach(([name, value]) => Object.defineProperty(request, name, { value }));
    request.dispatchEvent(new ProgressEvent(answer ? "loadend" : "error"));
  };
  const learnLocale = (request) => {
    if (!new RegExp(`^datasets/${UUID}$`).test(request.citejury[1])) return;
    locale = parsed(request.responseText)?.metadata?.locale || locale; // none where the dataset is not ours
  };

  const form = () => document.querySelector("form.questions-form")?.__vue__;
  const recordShown = () => form()?.record;
  const valuesOf = (record) => Object.fromEntries(record.questions
    .filter(({ answer }) => answer.isValid || answer.isPartiallyValid)
    .map(({ name, answer }) => [name, { value: answer.valuesAnswered }]));
  const saveDraft = () => {
    const record = recordShown();
    if (!record || !user() || !["pending", "draft"].includes(record.status)) return;
    const draft = newEntry(record.id, null, { status: "draft", values: valuesOf(record) }, PAUSE);
    const before = read(draft.key);
    if (!held.has(draft.key) && (!before || before.status === "draft") && Object.keys(draft.values).length) keep(draft);
  };
  const markDraft = (entry, there) => { // or the page would count the record as pending and leave one out
    const record = recordShown();
    if (record?.id === entry.record && !record.answer) {
      record.answer = { id: there.id, status: there.status, value: there.values, updatedAt: there.updated_at };
    }
  };
  const warn = () => {
    const [record, footer] = [recordShown(), document.querySelector("form.questions-form .footer-form")];
    if (!record || !footer) return;
    const values = valuesOf(record);
    const broken = rules.filter((rule) => values[rule.antecedent]?.value === "yes"
      && values[rule.consequent]?.value === (rule.required ? "no" : "yes"));
    if (!hint) (hint = element("p", "citejury-hint")).setAttribute("role", "status");
    hint.lang = locale;
    if (hint.nextSibling !== footer) footer.before(hint);
    write(hint, broken.map((rule) => say(rule.name)).join("\n"));
  };
  const askWhy = (event) => {
    const [page, notes] = [form(), recordShown()?.questions?.find((each) => each.name === "notes")];
    if (!notes || typeof page.onDiscard !== "function" || page.record.status === "discarded") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const dialog = element("dialog", "citejury-dialog");
    dialog.lang = locale;
    dialog.setAttribute("aria-labelledby", "citejury-why");
    dialog.innerHTML = "<form method=dialog><p id=citejury-why role=alert></p>"
      + "<textarea rows=3 aria-labelledby=citejury-why></textarea><button value=discard></button> "
      + "<button value=stay></button></form>";
    const [question, reason, ...buttons] = dialog.querySelectorAll("p, textarea, button");
    question.textContent = say("discard_why");
    reason.value = notes.answer.value || "";
    ["discard", "stay"].forEach((name, place) => { buttons[place].textContent = say(name); });
    dialog.addEventListener("keydown", (key) => {
      key.stopPropagation(); // the page has shortcuts of its own
      if (key.key !== "Enter" || key.target !== reason || key.isComposing) return;
      key.preventDefault();
      if (!key.repeat) dialog.firstChild.requestSubmit(buttons[0]); // a key held down is no second thought
    });
    dialog.firstChild.addEventListener("submit", (choice) => {
      const unasked = question.textContent === say("discard_why");
      if (choice.submitter.value !== "discard" || reason.value.trim() || !unasked) return;
      choice.preventDefault();
      question.textContent = say("discard_again");
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (dialog.returnValue !== "discard") return;
      notes.answer.value = reason.value.trim();
      page.onDiscard();
    });
    document.body.append(dialog);
    dialog.showModal();
    reason.focus();
  };
  const seen = (text) => { // the page copies a field as it is stored, with what made it harmless
    if (!(recordShown()?.fields || []).some((field) => text.includes(field.content))) return text;
    const area = element("textarea");
    return text.replace(/&#?\w+;/g, (entity) => { area.innerHTML = entity; return area.value; }).replaceAll("\u2060", "");
  };
  const copy = (event) => {
    const { target } = event;
    const pages = target.localName === "textarea" && target.parentNode === document.body; // without a secure context
    const text = pages ? seen(target.value) : String(getSelection()).replaceAll("\u2060", "");
    if (!pages && text === String(getSelection())) return;
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  };
  const element = (name, id = "") => Object.assign(document.createElement(name), { id });
  const write = (box, text) => { if (box.textContent !== text) box.textContent = text; box.hidden = !text; };

  const notice = (entries) => {
    if (!bar) {
      bar = element("div", "citejury-notice");
      bar.append(element("span"), element("button"));
      bar.setAttribute("role", "status");
      bar.lastChild.addEventListener("click", () => act(bar.lastChild.name));
    }
    if (!bar.isConnected) document.body.append(bar);
    bar.lang = locale;
    const refused = entries.filter((entry) => entry.refused).length;
    const state = !entries.length ? "" : !user() || token() === expired ? "expired" : refused ? "refused" : "unsaved";
    const draft = Date.now() < toldUntil ? say(told) : "";
    write(bar.firstChild, state ? say(state, refused || entries.length) : draft);
    bar.lastChild.name = { expired: "log_in", refused: "give_up" }[state] || "";
    write(bar.lastChild, bar.lastChild.name && user() ? say(bar.lastChild.name) : "");
    bar.className = state;
    bar.hidden = !bar.firstChild.textContent;
  };
  const act = (name) => {
    if (name === "give_up" && window.confirm(say("give_up_sure"))) unsaved().filter((entry) => entry.refused).forEach(forget);
    if (name === "log_in") { leaving = true; window.location.reload(); }
  };
  const tick = () => {
    const ready = (entry) => entry.due <= Date.now() && !flying.has(entry.key) && !held.has(entry.key);
    if (user() && token() !== expired) kept(`${user()}:`).filter(ready).forEach(deliver);
    if (!document.body) return;
    notice(unsaved());
    warn();
  };
  const hurry = (which) => kept(`${user()}:`).filter(which).forEach((entry) => { keep({ ...entry, due: 0 }); });
  hurry((entry) => { entry.tries ||= 1; return true; });
  setInterval(tick, SECOND / 2);

  const listen = (target, names, handler) => names.forEach((name) => target.addEventListener(name, handler, true));
  listen(document, ["input", "change"], () => setTimeout(() => { saveDraft(); warn(); }));
  listen(document, ["copy"], copy);
  listen(window, ["online"], () => hurry(() => true));
  listen(window, ["pagehide", "visibilitychange"], () => { hurry((entry) => entry.status === "draft"); tick(); });
  listen(window, ["beforeunload"], (event) => { if (unsaved().length && !leaving) event.preventDefault(); });
  listen(window, ["keydown"], (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, [contenteditable=true]");
    if (event.code === "Backspace" && !event.shiftKey && !typing && !event.target.closest?.("dialog")) askWhy(event);
  });
  listen(document, ["click"], (event) => { if (event.target.closest?.(".button--discard") && form()) askWhy(event); });
  const clipboard = window.Clipboard?.prototype;
  if (clipboard) {
    const { writeText } = clipboard;
    clipboard.writeText = function (text) { return writeText.call(this, seen(text)); };
  }
})();
