// Keeps what an annotator answers until the server has it. For Argilla 2.8.0, whose page sends answers by
// XMLHttpRequest and holds its Vue 2 components in `__vue__` of their elements. Where the page is not as expected,
// answers are still kept and sent.
(() => {
  "use strict";
  window.citejury ||= {}; // should words.js not come, answers are kept all the same
  const API = new URL("api/v1/", document.baseURI).pathname;
  const [SECOND, UUID] = [1000, "[0-9a-f-]{36}"];
  const LONGEST_HOLD = 10 * SECOND; // that a server which answers nothing at all keeps her from the next record
  const memory = new Map(); // what localStorage has no room for
  const ids = new Map(); // key of an entry → id of her response on the server
  const bases = new Map(); // key of an entry → when what this tab sent last was stored
  const HERE = String(Math.random()); // this tab until it is loaded anew
  const known = new Map(); // key of an entry → what this tab last wrote or showed of it: anything else is another tab's
  const flying = new Map(); // key → the request under way: one at a time for a record, lest an older one come last
  const held = new Set(); // keys for which the page itself waits
  let own = null; // the login that this tab began with: in another one somebody else may have logged in since
  let expired = null; // the login that the server no longer takes
  let listFailed = false, linkFailed = false; // the last request for records, and the last one of any kind
  let closed = false; // the server's database is damaged, and nothing is taken until it is another one
  const orNull = (action) => { try { return action(); } catch { return null; } };
  const stored = (action) => orNull(() => action(localStorage)); // a browser may forbid it
  const parsed = (text) => orNull(() => JSON.parse(text));
  const person = (login) => orNull( // whose "Bearer …" it is; "false" is nobody's
    () => JSON.parse(atob(login.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"))).identity);
  const token = () => {
    const now = stored((all) => all.getItem("auth._token.local"));
    return own && person(own) !== person(now) ? own : now;
  };
  const user = () => person(token());

  const read = (key) => parsed(memory.get(key) || stored((all) => all.getItem(key)));
  const keep = (entry) => {
    const text = JSON.stringify(entry);
    if (entry.from === HERE) know(entry);
    try { localStorage.setItem(entry.key, text); memory.delete(entry.key); } catch { memory.set(entry.key, text); }
  };
  const saysDamaged = (text) => parsed(text)?.damaged === true;
  const newest = (entry) => (read(entry.key) || {}).at === entry.at;
  const forget = (entry) => {
    if (!newest(entry)) return;
    memory.delete(entry.key);
    stored((all) => all.removeItem(entry.key));
  };
  const keptUnder = (prefix) => [...new Set([...(stored(Object.keys) || []), ...memory.keys()])]
    .filter((key) => key.startsWith(prefix)).map(read).filter((entry) => entry?.key);
  const kept = (whose) => keptUnder(`citejury:${whose}`);
  const unsaved = () => kept(user() ? `${user()}:` : "")
    .filter((entry) => entry.tries || (entry.status !== "draft" && Date.now() - entry.at > 2 * SECOND));
  // `base` is the state of the server's that she answers, empty where she saw no answer; `earlier` what this browser
  // has sent of it and may have been stored without its knowing.
  const newEntry = (record, response, { status, values }, wait = 10 * SECOND) => {
    const key = `citejury:${user()}:${record || response}`;
    const [shown, before] = [recordShown(), read(key)];
    return {
      key, from: HERE, user: user(), record, response, dataset: page.dataset?.()?.id, status, values, tries: 0, at: Date.now(), due: Date.now() + wait,
      base: (shown?.id === record && shown.answer?.updatedAt) || "",
      earlier: before ? [...(before.earlier || []), plain(before)].slice(-9) : [],
    };
  };

  const SPAN = ["start", "end", "label"]; // which the server writes in another order
  const plain = ({ status, values }) => JSON.stringify(
    [status, Object.entries(values || {}).map(([name, { value }]) => [name, JSON.stringify(value, SPAN)]).sort()]);
  const know = (entry) => { if (entry.values) known.set(entry.key, plain(entry)); };
  const foreign = (key) => { // what another tab has entered and not sent yet, and this one does not show
    const entry = read(key);
    return entry && entry.from !== HERE && known.get(key) !== plain(entry) ? entry : null;
  };
  const outdated = (entry, mine, date) => // she answered later elsewhere; the server's clock decides
    Date.parse(`${mine.updated_at}Z`) > entry.at + Date.parse(date) - Date.now() + 5 * SECOND;
  const baseOf = (entry) => [entry.base, (entry.from === HERE && bases.get(entry.key)) || ""].sort().at(-1);
  const isNewer = (entry, mine) => mine && mine.updated_at !== baseOf(entry) && !entry.earlier.includes(plain(mine));
  const call = async (method, path, body, headers = {}) => {
    const answer = await fetch(API + path, {
      method, body, keepalive: Boolean(body) && body.length < 30000, signal: AbortSignal.timeout(20 * SECOND),
      headers: { authorization: token(), "content-type": "application/json", ...headers },
    });
    return { status: answer.status, date: answer.headers.get("date"), text: await answer.text() };
  };
  const store = async (entry) => {
    let response = ids.get(entry.key) || entry.response;
    let seen = baseOf(entry); // which the server holds against its own
    // The server may have it already, only its answer being lost; another tab may have submitted what is a draft here.
    if (entry.record && entry.tries) {
      const found = await call("GET", `records/${entry.record}`);
      if (found.status !== 200) return found;
      const mine = JSON.parse(found.text).responses.find((each) => each.user_id === entry.user);
      const isKnown = typeof entry.base === "string"; // an earlier version kept no base
      const isLate = mine && entry.status === "draft" && mine.status !== "draft";
      if (isLate) page.setAside?.(entry, mine);
      const done = mine && (isLate || plain(mine) === plain(entry) || (!isKnown && outdated(entry, mine, found.date)));
      if (done) return { status: 200, text: JSON.stringify(mine) };
      if (isKnown && isNewer(entry, mine)) return { status: 409, text: "", newer: mine };
      seen = mine?.updated_at ?? seen;
      response = mine?.id;
    }
    const body = JSON.stringify({ status: entry.status, values: entry.values });
    if (response) return call("PUT", `responses/${response}`, body, typeof seen === "string" ? { "x-citejury-seen": seen } : {});
    return call("POST", `records/${entry.record}/responses`, body);
  };
  const attempt = async (entry) => {
    const [sentWith, answer] = [token(), await store(entry).catch(() => null)];
    const { status } = answer || {};
    entry.tries += 1;
    if (answer) closed = saysDamaged(answer.text);
    const isGood = status >= 200 && status < 300;
    const there = isGood && parsed(answer.text); // a network's own log-in page answers 200 as well
    if (there?.id) {
      ids.set(entry.key, there.id);
      if (entry.from === HERE && plain(there) === plain(entry)) bases.set(entry.key, there.updated_at);
      forget(entry);
      if (there.status === "draft") { if (entry.from === HERE) page.draftStored?.(entry, there); } else page.submissionStored?.(entry, there);
      return answer;
    }
    if (status === 401) expired = sentWith;
    entry.refused = entry.tries > 1 && [400, 403, 404, 413, 422].includes(status);
    entry.due = Date.now() + Math.min(30, 2 ** Math.min(entry.tries, 5)) * (0.25 + Math.random() / 4) * SECOND;
    entry.newer = answer?.newer;
    if (entry.newer) entry.due = Number.MAX_SAFE_INTEGER; // until she has chosen
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
        if (answer?.newer) return settle(entry);
        const final = answer && answer.status < 500 && answer.status !== 409 && (answer.status !== 404 || tries > 1);
        if (final || tries >= patience || Date.now() > end) return answer;
        await pause(2 ** tries * SECOND / 8);
      }
    };
    const given = async () => { // while she chooses, the page waits
      await pause(LONGEST_HOLD);
      return settling.get(entry.key) || null;
    };
    held.add(entry.key);
    return Promise.race([deliverSoon(), given()]).finally(() => held.delete(entry.key));
  };
  // Hers, or what was submitted elsewhere since: she says which one counts. conflict.js asks.
  const settling = new Map();
  const settle = (entry) => {
    if (!page.choose) return Promise.resolve(null);
    const choice = async () => {
      for (let mine = entry; ;) {
        const { newer } = mine;
        const isHers = await page.choose(mine);
        if (!newest(mine)) return { status: 200, text: JSON.stringify(newer) }; // she has chosen in another tab
        if (!isHers) page.gaveWay?.(mine);
        if (!newer.isHere) bases.set(mine.key, newer.updated_at);
        if (!isHers && !newer.isHere) {
          forget(mine);
          return { status: 200, text: JSON.stringify(newer) };
        }
        const { status, values } = isHers ? mine : newer;
        const base = newer.isHere ? mine.base : newer.updated_at;
        mine = { ...mine, status, values, base, earlier: [...mine.earlier, plain(newer)], newer: null, due: 0 };
        keep(mine);
        const answer = await deliver(mine);
        if (!answer?.newer) return answer;
      }
    };
    if (!settling.has(entry.key)) settling.set(entry.key, choice().finally(() => settling.delete(entry.key)));
    return settling.get(entry.key);
  };

  const { open, send, setRequestHeader } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    this.citejury = [method.toUpperCase(), new URL(url, document.baseURI).pathname.replace(API, "")];
    if (/\/sign-in\/?$/.test(window.location.pathname)) own = null;
    return open.call(this, method, url, ...rest);
  };
  XMLHttpRequest.prototype.setRequestHeader = function (name, value) {
    const isLogin = name.toLowerCase() === "authorization";
    if (isLogin && (!own || person(own) === person(value))) own = value;
    if (isLogin) this.citejuryLogin = own;
    return setRequestHeader.call(this, name, isLogin ? own : value);
  };
  XMLHttpRequest.prototype.send = function (body) {
    const entries = user() ? entriesOf(this.citejury.join(" "), body) : [];
    entries.forEach((entry) => {
      const other = foreign(entry.key);
      keep(entry);
      page.answered?.(entry);
      if (other?.status === "draft" && entry.record) page.setAside?.(other, entry);
    });
    ["load", "error", "timeout"].forEach((name) => this.addEventListener(name, () => learnLink(this)));
    if (entries.length === 1) { hold(entries[0]).then((answer) => finish(this, answer)); return; }
    this.addEventListener("load", () => acknowledge(entries, this));
    send.call(this, body);
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
    learnLink(request);
    request.dispatchEvent(new ProgressEvent(answer ? "loadend" : "error"));
  };
  const form = () => document.querySelector("form.questions-form")?.__vue__;
  const recordShown = () => form()?.record;

  const tick = () => {
    const ready = (entry) => entry.due <= Date.now() && !entry.newer && !flying.has(entry.key) && !held.has(entry.key);
    if (!user() || token() === expired) return;
    kept(`${user()}:`).filter(ready).forEach(deliver);
    const isOpen = (entry) => entry.newer && !held.has(entry.key) && !document.hidden;
    kept(`${user()}:`).filter(isOpen).slice(0, 1).forEach(settle);
  };
  const hurry = (which) => kept(`${user()}:`).filter(which).forEach((entry) => { keep({ ...entry, due: 0 }); });
  hurry((entry) => { entry.tries ||= 1; return true; });
  setInterval(tick, SECOND / 2);
  const isLoggedOut = () => !user() || token() === expired;
  const expire = (login) => { expired = login; };
  const learnLink = (request) => {
    const { citejury: [, path], citejuryLogin, status } = request;
    if (path.startsWith("/")) return; // none of the server's API
    if (status === 401 && citejuryLogin) expire(citejuryLogin);
    const failed = !status || status >= 500;
    if (path.endsWith("/records/search")) {
      listFailed = failed || status >= 400;
      if (status) closed = status === 503 && saysDamaged(orNull(() => request.responseText));
    }
    linkFailed = failed;
  };
  // Why an empty list may not mean that all is done; empty where it can be believed.
  const staleness = () => (isLoggedOut() ? "expired" : unsaved().length ? "unsaved"
    : listFailed || linkFailed ? "offline" : "");
  // What the other scripts build on. drafts.js adds `draftStored`, `answered`, `gaveWay`, `setAside` and
  // `submissionStored`, which are told what came of an answer; conflict.js adds `choose`; form.js adds `leaving` when she wants to go in spite of what is unsaved.
  const page = Object.assign(window.citejury, {
    user, token, read, keep, know, foreign, forget, keptUnder, unsaved, newEntry, held, form, recordShown, isLoggedOut, expire,
    staleness, call, isClosed: () => closed,
  });

  const listen = (names, handler) => names.forEach((name) => window.addEventListener(name, handler, true));
  listen(["online"], () => hurry(() => true));
  listen(["pagehide", "visibilitychange"], () => { hurry((entry) => entry.status === "draft"); tick(); });
  listen(["beforeunload"], (event) => { if (unsaved().length && !page.leaving) event.preventDefault(); });
})();
