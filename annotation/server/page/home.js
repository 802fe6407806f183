// Where an annotator starts, in place of Argilla's home: her lists in her language and in the order of the work, how
// far she is, their guidelines, and one button for what is next.
(() => {
  "use strict";
  if (!window.citejury?.isHome) return; // a script before this one did not come
  const { say, worded, element, watch, token, expire, isHome, isAnnotator, nameOf } = window.citejury;
  const API = new URL("api/v1/citejury/", document.baseURI);
  const [SECOND, MINUTE] = [1000, 60];
  const OLD = 30 * SECOND; // what a tab shows that she comes back to
  let page, asked = 0, language = worded(navigator.language.slice(0, 2));
  const tell = (name, values) => say(name, values, language);
  const ask = async (path, method = "GET") => {
    const login = token();
    const answer = await fetch(new URL(path, API), {
      method, headers: { authorization: login }, cache: "no-store", signal: AbortSignal.timeout(20 * SECOND),
    });
    if (answer.status === 401) expire(login);
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer.json();
  };
  const time = (moment, spoken = language) => new Intl.DateTimeFormat(spoken, { hour: "numeric", minute: "2-digit" })
    .format(new Date(moment));
  const address = ({ id }, status = "pending") => `dataset/${id}/annotation-mode?page=1&status=${status}`;
  const link = (text, path, properties) => { // within Argilla's page nothing is loaded anew
    const found = element("a", { textContent: text, href: new URL(path, document.baseURI).href, ...properties });
    found.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || !window.$nuxt?.$router) return;
      event.preventDefault();
      window.$nuxt.$router.push(`/${path}`);
    });
    return found;
  };
  // What is next: in order of the work a list with something to do, else one with drafts. A practice that is not passed
  // comes before what it does not open; one that is open to her is never next.
  const failed = ({ practice: standing }) => standing?.may_repeat;
  const failure = ({ right, wanted, labels }) => { // below the mark over all, or only below that of a question
    const isBelow = labels.some(({ is_reached: reached }) => !reached);
    return right >= wanted && isBelow ? "practice_failed_question" : "practice_failed";
  };
  const nextOf = (all) => {
    const lists = all.filter(({ practice: standing }) => !standing?.opens);
    return lists.find((list) => list.waiting || failed(list)) || lists.find(({ drafts }) => drafts);
  };
  const nextLink = (list, name) => link(
    tell(list.waiting ? name : failed(list) ? "practice_go" : "home_drafts", { list: nameOf(list, language) }),
    address(list, list.waiting || failed(list) ? "pending" : "draft"), { className: "citejury-next" });

  const others = ({ with_others: n, back }) => tell("empty_others", { n, time: time(back) });
  const pace = ({ pace: seconds }) => (seconds < 1.5 * MINUTE
    ? tell("pace_seconds", { n: Math.max(1, Math.round(seconds)) })
    : tell("pace_minutes", { n: (seconds / MINUTE).toLocaleString(language, { maximumFractionDigits: 1 }) }));
  const opens = (list, lists) => {
    const closed = lists.filter(({ closed_by: practice }) => practice === list.id);
    return closed.find(({ round }) => round === "production") || closed[0];
  };
  const practice = (list, lists) => { // what a practice came to, or what it is for
    const { practice: standing } = list;
    if (!standing) return list.closed_by && tell("home_closed");
    if (standing.opened) return tell("practice_opened");
    if (standing.passed) return tell("practice_passed_before");
    if (standing.opens) return tell("practice_passed", standing);
    if (standing.may_repeat) return tell(failure(standing), standing);
    const opened = opens(list, lists);
    return opened && tell("home_practice", { ...standing, list: nameOf(opened, language) });
  };
  const facts = (list, lists) => [
    tell("home_progress", list),
    practice(list, lists),
    list.waiting && tell("home_left", { n: list.waiting }),
    list.drafts && tell("home_drafts_left", { n: list.drafts }),
    list.with_others && others(list),
    list.pace && pace(list),
  ].filter(Boolean);
  const item = (list, lists) => {
    const found = element("li", { className: list.done === list.total && !failed(list) ? "citejury-done" : "" });
    const name = nameOf(list, language);
    const title = element("h3");
    title.append(link(name, address(list, list.waiting || !list.drafts ? "pending" : "draft")));
    const heading = element("p", { className: "citejury-heading", lang: worded(list.locale) });
    heading.textContent = list.heading;
    const bar = element("progress", { max: list.total, value: list.done });
    bar.setAttribute("aria-label", name);
    const lines = element("ul", { className: "citejury-facts" });
    lines.append(...facts(list, lists).map((textContent) => element("li", { textContent })));
    const guidelines = element("button", { type: "button", textContent: tell("guidelines") });
    guidelines.setAttribute("aria-label", `${tell("guidelines")}: ${name}`);
    guidelines.addEventListener("click", () => showGuidelines(list, name));
    found.append(title, heading, bar, lines, guidelines);
    return found;
  };
  const listOf = (lists, all) => {
    const found = element("ol", { className: "citejury-lists" });
    found.append(...lists.map((list) => item(list, all)));
    return found;
  };
  const showGuidelines = async (list, name, spoken = language) => {
    const dialog = element("dialog", { id: "citejury-guidelines" });
    dialog.setAttribute("aria-label", `${say("guidelines", {}, spoken)}: ${name}`);
    const text = element("div", { lang: worded(list.locale), tabIndex: 0 });
    const close = element("button", { type: "button", textContent: say("close", {}, spoken) });
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    dialog.append(close, text);
    document.body.append(dialog);
    dialog.showModal();
    try {
      const { html } = await ask(`datasets/${list.id}/guidelines`); // the server has made tags in it text
      text.append(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
    } catch { text.textContent = say("home_failed", {}, spoken); }
  };

  const languageOf = (lists) => { // her browser's where she labels in it, else that of the first list
    const found = lists.map(({ locale }) => locale).filter(Boolean);
    const browsers = navigator.language.slice(0, 2);
    return worded(found.includes(browsers) || !found.length ? browsers : found[0]);
  };
  const inOrder = (lists) => [...new Set(lists.map(({ round }) => round))].flatMap((round) => { // her language first
    const [own, other] = [true, false].map((isOwn) => lists.filter(
      (list) => list.round === round && (list.locale === language) === isOwn));
    return [...own, ...other];
  });
  const render = (lists) => {
    const known = lists.some(({ is_hers: isHers }) => isHers);
    language = languageOf(lists);
    const shown = inOrder(lists.filter(({ total }) => total)); // others did all of the rest
    const first = known ? shown : shown.filter(({ locale }) => !locale || worded(locale) === language);
    const rest = shown.filter((list) => !first.includes(list));
    const next = nextOf(first) || nextOf(rest);
    const withOthers = first.filter(({ with_others: n }) => n);
    const section = element("section");
    const ends = withOthers.map(({ back }) => back).sort();
    if (next) section.append(nextLink(next, first.some(({ done }) => done) ? "home_continue" : "home_begin"));
    else {
      const done = lists.some(({ done: n }) => n) ? "home_done" : "home_done_by_others";
      const name = withOthers.length ? "home_others" : lists.length ? done : "home_nothing";
      section.append(element("p", { textContent: tell(name, { time: ends.length ? time(ends[0]) : "" }) }));
    }
    page.replaceChildren(element("h1", { textContent: tell("home_title") }), section);
    if (first.length) page.append(element("h2", { textContent: tell("home_lists") }), listOf(first, lists));
    if (rest.length) {
      const folded = element("details");
      const summary = element("summary", { textContent: tell("home_other_languages", { n: rest.length }) });
      folded.append(summary, listOf(rest, lists));
      page.append(folded);
    }
    page.lang = language;
  };
  const renderFailure = () => {
    const again = element("button", { type: "button", textContent: tell("home_again") });
    again.addEventListener("click", load);
    page.replaceChildren(element("p", { textContent: tell("home_failed") }), again);
  };
  const load = async () => {
    asked = Date.now();
    const [shown, began] = [page, asked];
    const lists = await ask("me/work").then((answer) => answer.lists).catch(() => null);
    if (page !== shown || asked !== began) return; // she has gone on, or it was asked anew
    if (lists) render(lists); else renderFailure();
    watchTitle();
  };
  const watchTitle = () => { document.title = ""; }; // place.js writes it in the language that is now known
  watch(() => {
    const wanted = isHome() && isAnnotator();
    if (!wanted) { page?.remove(); page = null; return; }
    if (!document.body || page?.isConnected) return;
    page ||= element("main", { id: "citejury-home", tabIndex: -1 });
    document.body.append(page);
    load();
  });
  document.addEventListener("visibilitychange", () => {
    if (page && !document.hidden && Date.now() - asked > OLD && !document.querySelector("dialog[open]")) load();
  });
  Object.assign(window.citejury, {
    ask, time, link, address, nextOf, failure, showGuidelines, homeLanguage: () => language,
  });
})();
