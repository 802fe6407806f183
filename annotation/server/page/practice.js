// Explains a case of practice to an annotator who has submitted it: which of her answers agree with the known ones, and
// why those are right. At once after she submits, in a dialog with the case in it; later beside her submitted answers.
(() => {
  "use strict";
  if (!window.citejury?.ask || !window.citejury.form) return; // a script before this one did not come
  const page = window.citejury;
  const { say, locale, element, watch, opened, recordShown, token } = page;
  const ROUND = "practice";
  const told = new Map(); // record → its explanation, as long as her first answers stay the same
  const copies = new Map(); // record → what she saw when she submitted it
  let box = null; // what stands beside a submitted case
  const isPractice = () => opened()?.metadata?.round === ROUND;
  const text = (name, content, properties) => element(name, { textContent: content, ...properties });
  const explain = async (record) => {
    if (!told.has(record)) told.set(record, await page.ask(`records/${record}/practice`).catch(() => null));
    return told.get(record);
  };

  // Titles and answers as the form words them; each case of a list has the same.
  const wordsOf = (record) => new Map((record?.questions || []).map(({ name, title, answer }) => [
    name, { title, answers: new Map((answer?.values || []).map(({ value, text: shown }) => [value, shown])) }]));
  const spoken = (words, said) => {
    const value = { true: "yes", false: "no" }[said] ?? said;
    return words?.answers.get(value) || value;
  };
  const item = (label, words) => {
    const agrees = label.hers === label.known;
    const found = element("li", { className: agrees ? "citejury-same" : "citejury-other-answer" });
    const verdict = text("strong", `${agrees ? "✓" : "✗"} ${say(agrees ? "practice_same" : "practice_other")}`);
    const answers = element("p", { className: "citejury-answers" });
    const hers = label.hers !== null ? spoken(words, label.hers) : "–";
    answers.append(verdict, text("span", say("practice_yours", { answer: hers })));
    if (!agrees) answers.append(text("span", say("practice_known", { answer: spoken(words, label.known) })));
    found.append(text("h3", words?.title || label.name), answers, text("p", label.why));
    return found;
  };
  const explanation = ({ labels }, words) => {
    const right = labels.filter(({ hers, known }) => hers === known).length;
    const list = element("ol", { className: "citejury-explained" });
    list.append(...labels.map((label) => item(label, words.get(label.name))));
    return [text("p", say("practice_agree", { right, known: labels.length })), list, text("p", say("practice_first"))];
  };

  // The page has gone on to the next record by then, so that what she saw goes into the dialog.
  const folded = (copy) => {
    const open = window.matchMedia("(min-width: 1000px)").matches; // there it stands beside the explanation
    const found = element("details", { className: "citejury-case-again", open });
    const body = element("div");
    copy.querySelectorAll(".text_field_component").forEach((field) => { // without Argilla's panes, one below the other
      const content = element("div", { inert: true });
      content.append(...(field.querySelector(".content-area")?.childNodes || []));
      content.querySelectorAll("button, template").forEach((each) => each.remove());
      content.querySelectorAll("[id]").forEach((each) => each.removeAttribute("id"));
      body.append(text("h3", field.querySelector(".text_field_component__title-content")?.textContent.trim()), content);
    });
    found.append(text("summary", say("practice_case")), body);
    return found;
  };
  const show = (found, words, copy) => {
    const dialog = element("dialog", { id: "citejury-practice", lang: locale() });
    dialog.setAttribute("aria-labelledby", "citejury-practice-title");
    const title = text("h2", say("practice_title"), { id: "citejury-practice-title", tabIndex: -1 });
    const isLast = found.standing.answered >= found.standing.cases;
    const next = text("button", say(isLast ? "practice_result" : "practice_next"), {
      type: "button", className: "citejury-next" });
    next.prepend(text("kbd", "↵", { ariaHidden: "true" }));
    next.addEventListener("click", () => dialog.close());
    dialog.addEventListener("keydown", (event) => {
      event.stopPropagation(); // the page has shortcuts of its own
      // The key that submitted may still be held down; buttons and what is folded have the key for themselves.
      if (event.key === "Enter" && !event.repeat && !event.target.closest("button, summary")) dialog.close();
    });
    dialog.addEventListener("close", () => { dialog.remove(); goOn(); });
    const scrolled = element("div"); // the button stays below it
    const explained = element("section");
    explained.append(title, ...explanation(found, words));
    scrolled.append(explained, ...(copy ? [folded(copy)] : []));
    dialog.append(scrolled, next);
    document.body.append(dialog);
    dialog.showModal();
    scrolled.scrollTop = 0;
    title.focus();
  };
  const goOn = page.submissionStored || (() => {});
  page.submissionStored = async (entry, there) => {
    const record = entry.record || there.record_id;
    if (!isPractice() || there.status !== "submitted") { goOn(); return; }
    const seen = copies.get(record);
    copies.delete(record);
    const found = seen && await explain(record); // a correction is explained where it is made
    if (found && isPractice() && !document.querySelector("dialog[open]")) show(found, seen.words, seen.copy);
    else goOn();
  };
  const answered = page.answered;
  page.answered = (entry) => { // before it is sent, and so before the page goes on
    answered?.(entry);
    const record = recordShown();
    if (!isPractice() || entry.status !== "submitted" || !record || record.status === "submitted") return;
    const fields = document.querySelector(".record--focus .record__content");
    copies.set(record.id, { words: wordsOf(record), copy: fields?.cloneNode(true) });
  };

  const beside = async (record, questions) => {
    const shown = element("section", { id: "citejury-explained", lang: locale() });
    box = { record: record.id, shown };
    shown.setAttribute("aria-labelledby", "citejury-explained-title");
    questions.append(shown); // where the form scrolls
    const found = await explain(record.id);
    if (box?.shown !== shown) return;
    if (!found) { // the next change of the page tries again
      told.delete(record.id);
      setTimeout(() => { if (box?.shown === shown) { box = null; shown.remove(); } }, 5000);
      return;
    }
    shown.append(text("h2", say("practice_title"), { id: "citejury-explained-title" }),
      ...explanation(found, wordsOf(record)));
  };
  watch(() => {
    const record = isPractice() && recordShown();
    const questions = document.querySelector("form.questions-form .questions");
    const wanted = record?.status === "submitted" && questions && token();
    if (box && (!wanted || box.record !== record.id || !box.shown.isConnected)) { box.shown.remove(); box = null; }
    if (wanted && !box) beside(record, questions);
  });
})();
