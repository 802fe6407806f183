// Says in an annotator's empty queue why it is empty, when something comes back, and what is next.
(() => {
  "use strict";
  if (!window.citejury?.nextOf) return; // a script before this one did not come
  const { say, locale, element, watch, unsaved, isLoggedOut, opened, isAnnotator, nameOf } = window.citejury;
  const { ask, time, link, address, nextOf, failure } = window.citejury;
  const SECOND = 1000;
  const [SOON, LATEST] = [5 * SECOND, 600 * SECOND];
  const NARROWING = ["search", "metadata", "response", "suggestion", "similarity"]; // Argilla's filters in the address
  let box, timer, asked = 0;
  const isQueue = () => {
    const query = new URLSearchParams(window.location.search);
    return (query.get("status") || "pending") === "pending" && !NARROWING.some((name) => query.get(name));
  };
  const logInAgain = () => {
    const button = element("button", { type: "button", textContent: say("log_in") });
    button.addEventListener("click", () => window.location.reload());
    return button;
  };
  const paragraph = (textContent) => element("p", { textContent });
  const again = (milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(() => { if (document.hidden) asked = 0; else tell(); }, milliseconds);
  };
  const reason = (list) => {
    if (unsaved().length) return say("empty_unsaved", { n: unsaved().length });
    if (list.closed_by) return say("practice_closed");
    if (list.with_others) return say("empty_others", { n: list.with_others, time: time(list.back, locale()) });
    if (list.drafts) return say("empty_drafts", { n: list.drafts });
    if (list.practice?.opened) return say("practice_opened");
    if (list.practice?.passed) return say("practice_passed_before");
    if (list.practice) return say(list.practice.opens ? "practice_passed" : failure(list.practice), list.practice);
    return say(list.done ? "empty_done" : "empty_done_by_others");
  };
  // What was reached of what: each question with its kinds of cases and its mark.
  const marks = async (list) => {
    const { labels = [], opened: byLead, passed } = list.practice || {};
    if (!labels.length || byLead || passed || list.drafts || list.waiting) return [];
    const questions = await ask(`../datasets/${list.id}/questions`).then(({ items }) => items).catch(() => []);
    const of = (name) => questions.find((each) => each.name === name);
    const worded = (name, value) => {
      const key = String({ true: "yes", false: "no" }[value] ?? value);
      return of(name)?.settings.options?.find((each) => String(each.value) === key)?.text || key;
    };
    const found = element("ul", { className: "citejury-marks" });
    found.append(...labels.map(({ name, shares, points, wanted, is_reached: reached }) => {
      const item = element("li", { className: reached ? "citejury-same" : "citejury-other-answer" });
      const counts = shares.map(([value, right, cases]) => say("practice_share", { answer: worded(name, value), right, cases }));
      const title = element("strong", { textContent: `${reached ? "✓" : "✗"} ${of(name)?.title || name}` });
      item.append(title, paragraph([...counts, say("practice_points", { points, wanted })].join(" · ")));
      return item;
    }));
    return [paragraph(say("practice_points_mean")), found];
  };
  const practiseAgain = (list) => {
    const button = element("button", { type: "button", className: "citejury-again" });
    button.textContent = say("practice_again");
    button.addEventListener("click", async () => {
      button.disabled = true;
      await ask(`datasets/${list.id}/practice/again`, "POST").catch(() => null);
      window.location.assign(address(list));
    });
    return button;
  };
  const wayOfPractice = (list, lists) => {
    const practice = lists.find(({ id }) => id === list.closed_by);
    if (practice) {
      const status = practice.waiting || practice.practice.may_repeat ? "pending" : "draft";
      const way = say("practice_go", { list: nameOf(practice) });
      return [link(way, address(practice, status), { className: "citejury-next" })];
    }
    if (!list.practice?.may_repeat) return [];
    // Loaded anew: the page that is open takes no other status from its address.
    const read = element("a", { className: "citejury-next", textContent: say("practice_read") });
    read.href = new URL(address(list, "submitted"), document.baseURI).href;
    return [read, practiseAgain(list)];
  };
  const ways = (list, lists) => {
    if (list.closed_by || list.practice?.may_repeat) {
      return [...wayOfPractice(list, lists), link(say("home_title"), "")];
    }
    const next = nextOf(lists.filter(({ id, locale: each }) => id !== list.id && each === list.locale))
      || nextOf(lists.filter(({ id, is_hers: isHers }) => id !== list.id && isHers));
    return [
      list.drafts && link(say("empty_drafts_open"), address(list, "draft")),
      next && link(say("empty_next", { list: nameOf(next) }), address(next, next.waiting ? "pending" : "draft"),
        { className: "citejury-next" }),
      link(say("home_title"), ""),
    ].filter(Boolean);
  };
  const tell = async () => {
    asked = Date.now();
    const [shown, { id }] = [box, opened()];
    const lists = await ask("me/work").then((answer) => answer.lists).catch(() => null);
    if (box !== shown || opened()?.id !== id) return; // she has gone on
    const list = lists?.find((each) => each.id === id);
    const isUnsaved = unsaved().length;
    // What has come back is shown at once; she has nothing before her that it could take away.
    if (list?.waiting && !isUnsaved) { window.location.assign(address(list)); return; }
    box.lang = locale();
    if (!lists) {
      const isOver = isLoggedOut();
      box.replaceChildren(paragraph(say(isOver ? "login_over" : "home_failed")), ...(isOver ? [logInAgain()] : []));
      if (!isOver) again(SOON);
      return;
    }
    if (!list) { box.remove(); return; } // none of her lists: Argilla's own words stay
    const reached = await marks(list);
    if (box !== shown || opened()?.id !== id) return;
    box.replaceChildren(paragraph(reason(list)), ...reached, ...ways(list, lists));
    if (isUnsaved) again(2 * SECOND);
    else if (list.with_others) {
      const left = Date.parse(list.back) - Date.now() + (1 + 4 * Math.random()) * SECOND;
      again(Math.min(Math.max(left, SOON), LATEST));
    }
  };
  watch(() => {
    const place = isAnnotator() && opened() && isQueue() && document.querySelector(".wrapper--empty");
    if (!place) {
      if (box) { clearTimeout(timer); box.remove(); box = null; }
      return;
    }
    if (box?.parentNode === place) return;
    if (box && place.dataset.citejury === "told") return; // it was taken away, and Argilla's words are shown
    box = element("section", { id: "citejury-empty" });
    box.setAttribute("role", "status");
    place.dataset.citejury = "told";
    place.append(box);
    tell();
  });
  document.addEventListener("visibilitychange", () => {
    if (box?.isConnected && !document.hidden && Date.now() - asked > SOON) tell();
  });
})();
