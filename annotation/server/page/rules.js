// Puts the rule where the decision is, in the form of Argilla 2.8.0: a line of it under each question, the whole of it
// with examples on a key, the guidelines beside the record on another. Makes the answers of a question real radio
// buttons, so that Tab goes from question to question and a screen reader says which one it is.
(() => {
  "use strict";
  if (!window.citejury?.form) return; // a script before this one did not come
  const { examples, task, locale, say, element, form, onKey, watch } = window.citejury;
  const REMEMBERED = "citejury:guidelines"; // in this tab of the browser
  const wide = matchMedia("(min-width: 1100px)"); // Argilla has another panel of the guidelines for small screens
  const texts = new Map(); // locale → its examples by label, asked for once somebody wants to see one
  let shown = null; // the form whose questions have their lines
  let open = null; // the question whose whole rule is shown
  let known = null; // the panel of the guidelines that has been opened, or not, as the one before

  const firstSentence = (text) => text.match(/^[^]*?(?:[.!?](?=\s)|[。！？]|$)/)[0];
  const examplesOf = async (label) => {
    const own = task()?.words;
    if (own) return own.case ? { case: own.case, ...own.questions[label]?.examples } : null;
    const language = locale();
    if (!texts.has(language)) texts.set(language, fetch(examples[language]).then((answer) => answer.json()));
    return texts.get(language).then((all) => all[label], () => { texts.delete(language); });
  };

  const makeRadios = (question, group) => {
    const describe = (target, attributes) => Object.entries(attributes)
      .forEach(([name, value]) => (value === null ? target.removeAttribute(name) : target.setAttribute(name, value)));
    describe(group, {
      role: "radiogroup", "aria-label": null, "aria-multiselectable": null, "aria-required": question.isRequired,
      "aria-labelledby": `citejury-title-${question.name}`, "aria-describedby": `citejury-rule-${question.name}`,
    });
    group.querySelectorAll("input").forEach((input) => {
      // Argilla's are check boxes named Yes and No, each in an element that calls itself a button.
      Object.assign(input, { type: "radio", name: question.name });
      describe(input, { "aria-keyshortcuts": input.dataset.keyboard ?? null });
      describe(input.closest(".input-button"), { role: null, "aria-label": null });
      const key = input.closest(".input-button").querySelector(".key");
      if (key) describe(key, { "aria-hidden": true });
    });
  };
  const place = (page, index, box) => {
    const question = page.record.questions[index];
    const [title, group] = [box.querySelector(".title-area .suggestion-info"), box.querySelector(".inputs-area")];
    if (!question || !title) return;
    box.removeAttribute("aria-label");
    title.parentNode.removeAttribute("aria-label");
    title.id = `citejury-title-${question.name}`;
    title.querySelector("[role=mark]")?.setAttribute("aria-hidden", true); // the group says that it is required
    const [text, isChoice] = [question.description || "", question.isSingleLabelType && Boolean(group)];
    const line = element("p", { className: "citejury-rule" });
    line.append(element("span", { id: `citejury-rule-${question.name}`, textContent: firstSentence(text) }));
    const whole = element("div", { className: "citejury-whole", hidden: true });
    whole.setAttribute("aria-live", "polite");
    if ((isChoice && (!task() || task().words.case)) || firstSentence(text) !== text) {
      const button = element("button", { type: "button", tabIndex: -1, textContent: "?", title: `${say("whole_rule")} (?)` });
      button.id = `citejury-more-${question.name}`; // Argilla takes a click on what has no id as one on the first question
      button.setAttribute("aria-label", button.title);
      button.setAttribute("aria-expanded", false);
      button.addEventListener("click", () => toggle(box));
      line.append(button);
    }
    title.closest(".wrapper").classList.add("citejury-question", isChoice ? "citejury-choice" : "citejury-other");
    title.parentNode.after(line);
    title.closest(".wrapper").append(whole);
    if (isChoice || (question.isRatingType && group)) makeRadios(question, group);
    if (!isChoice) return;
    group.addEventListener("click", ({ target }) => { // what is chosen already does not change: go on all the same
      const isChosen = question.answer.values.some(({ id, isSelected }) => id === target.id && isSelected);
      if (target.type === "radio" && isChosen) page.updateQuestionAutofocus(index + 1);
    });
  };
  const boxesOf = (page) => [...page.$el.querySelectorAll(".questions > div")];
  const placeAll = () => {
    const page = form();
    if (!page?.record || page.$el === shown || boxesOf(page).length !== page.record.questions.length) return;
    [shown, open] = [page.$el, null];
    const list = page.$el.querySelector(".questions");
    ["role", "aria-label"].forEach((name) => list.removeAttribute(name)); // a list of nothing that is an item
    list.lang = locale();
    boxesOf(page).forEach((box, index) => place(page, index, box));
  };

  const toggle = (box) => {
    const [page, before] = [form(), open];
    const whole = box?.querySelector(".citejury-whole");
    if (!box?.querySelector(".citejury-rule button")) return false;
    if (before) {
      before.querySelector(".citejury-whole").hidden = true;
      before.querySelector(".citejury-rule button").setAttribute("aria-expanded", false);
    }
    open = before === box ? null : box;
    if (!open) return true;
    const question = page.record.questions[boxesOf(page).indexOf(box)];
    whole.lang = locale();
    whole.replaceChildren(element("p", { textContent: question.description }));
    whole.hidden = false;
    box.querySelector(".citejury-rule button").setAttribute("aria-expanded", true);
    box.scrollIntoView({ block: "nearest" });
    examplesOf(question.name).then((found) => {
      if (!found || open !== box || whole.children.length > 1) return;
      const list = element("dl");
      question.answer.values.forEach(({ value, text }) => {
        if (found[value]) list.append(element("dt", { textContent: text }), element("dd", { textContent: found[value] }));
      });
      whole.append(element("p", { className: "citejury-case", textContent: found.case }), list);
      box.scrollIntoView({ block: "nearest" });
    });
    return true;
  };
  const inFocus = () => {
    const page = form();
    return page && (document.activeElement.closest(".questions > div") || boxesOf(page)[page.autofocusPosition || 0]);
  };
  const panel = () => document
    .querySelector(wide.matches ? ".wrapper__left > .panel" : ".wrapper > .panel.--mobile")?.__vue__;
  const showGuidelines = (wanted) => {
    if (!panel() || panel().isExpanded === wanted) return;
    panel().$emit("toggle-expand", wanted); // a click on it would count as one outside of the form
  };

  const remember = () => {
    const now = wide.matches && panel();
    if (!now) return;
    try {
      if (now !== known) showGuidelines(sessionStorage.getItem(REMEMBERED) === "open");
      else sessionStorage.setItem(REMEMBERED, now.isExpanded ? "open" : "closed");
    } catch { /* a browser may forbid it */ }
    known = now;
  };

  watch(placeAll);
  watch(remember);
  onKey("?", () => toggle(inFocus()));
  onKey("g", () => panel() && showGuidelines(!panel().isExpanded));
  onKey("Escape", () => {
    if (open) toggle(open);
    else showGuidelines(false);
    return false;
  });
  // One step back from a question's choices are the texts, however many questions are above it, and Tab comes back from
  // them to the same one; the arrows go from question to question.
  let left = null;
  const passed = new Map(); // elements that the browser's next step goes by, and their own index
  const passBy = (stops) => {
    stops.filter((each) => !passed.has(each)).forEach((each) => {
      passed.set(each, each.getAttribute("tabindex"));
      each.tabIndex = -1;
    });
    setTimeout(() => {
      passed.forEach((index, each) => (index === null ? each.removeAttribute("tabindex") : each.setAttribute("tabindex", index)));
      passed.clear();
    });
  };
  const stopsAbove = (page, box) => boxesOf(page).slice(0, boxesOf(page).indexOf(box))
    .flatMap((each) => [...each.querySelectorAll("input, button, [tabindex]")]);
  window.addEventListener("focusin", ({ target }) => {
    if (!target.closest(".wrapper") || target.closest(".questions, .footer-form")) left = null;
  });
  window.addEventListener("keydown", (event) => {
    const [page, { target, shiftKey }] = [form(), event];
    if (event.key !== "Tab" || target === document.body || !page) return;
    // Argilla leads each Tab back to the first question once she has clicked elsewhere, and never out of it.
    page.userComesFromOutside = false;
    const box = target.closest(".questions > div");
    if (target.closest(".questions")) event.stopPropagation();
    const group = target.type === "radio" ? [...target.form.elements[target.name]].filter((each) => each !== target) : [];
    if (box && target.type === "radio" && shiftKey) left = box;
    // Chromium may take the other answer for the next stop.
    passBy([...group, ...(left?.isConnected && (box ? left === box && shiftKey : !shiftKey) ? stopsAbove(page, left) : [])]);
  }, true);
})();
