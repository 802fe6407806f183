// Makes room for long texts: a query of more than two lines folds, keys scroll what is read while the focus stays with the
// question, and in a narrow window the questions are a bar at the bottom, one at a time.
(() => {
  "use strict";
  if (!window.citejury?.evidence) return; // a script before this one did not come
  const { say, locale, element, onKey, watch, form, recordShown, evidence } = window.citejury;
  const { documentElement: root } = document;
  const narrow = window.matchMedia("(max-width: 1099px)");
  let query = null, bar = null, current = null;

  const foldQuery = () => {
    const fields = document.querySelector(".record--focus .fields");
    const place = fields?.__vue__?.fields?.findIndex(({ name }) => name === "query") ?? -1;
    const area = place >= 0 && [...fields.querySelectorAll(".content-area, .text_field_component__area")][place];
    if (!area || query?.area === area) return;
    query?.button.remove();
    area.classList.add("citejury-query");
    const title = area.parentElement.querySelector(".title-area");
    const button = element("button", { type: "button", className: "citejury-more", tabIndex: -1 });
    const fold = (isFolded) => {
      area.classList.toggle("citejury-two-lines", isFolded);
      button.textContent = isFolded ? "⌄" : "⌃";
      button.title = say(isFolded ? "query_unfold" : "query_fold");
      button.setAttribute("aria-label", button.title);
      button.setAttribute("aria-expanded", String(!isFolded));
    };
    button.addEventListener("mousedown", (event) => event.preventDefault()); // the question keeps the focus
    button.addEventListener("click", (event) => {
      event.stopPropagation();
      fold(!area.classList.contains("citejury-two-lines"));
    });
    fold(true);
    button.tabIndex = 0;
    title?.append(button);
    query = { area, button };
    sizes.observe(area);
  };
  const sizes = new ResizeObserver(() => { // two lines need no button
    const text = query?.area.firstElementChild;
    if (text) query.button.hidden = query.area.classList.contains("citejury-two-lines") && text.scrollHeight <= text.clientHeight + 1;
    if (form()) root.style.setProperty("--citejury-bar", narrow.matches ? `${form().$el.offsetHeight}px` : "0px");
    placeStops();
    toPanes();
  });

  // What the keys scroll: the answer or, with Shift, its evidence; where there are no panes, what holds the record.
  const paneOf = (other) => {
    const page = evidence.page();
    if (page) return other ? page.areas[page.tab === "sources" ? 2 : 1] : page.areas[0];
    const boxes = [".record--focus .record__content", ".resizable-v.wrapper"].map((selector) => document.querySelector(selector));
    return boxes.find((box) => box && box.scrollHeight > box.clientHeight + 1);
  };
  const scroll = (by, isOther) => ({ shiftKey, target }) => {
    const pane = paneOf(isOther ?? shiftKey);
    if (!recordShown() || !pane || (isOther === undefined && target.closest?.("[role=region]"))) return false; // the browser's
    pane.scrollBy({ top: by * (pane.clientHeight - 40), behavior: "instant" });
    return true;
  };
  [["PageDown", 1], ["PageUp", -1]].forEach(([key, by]) => onKey(key, scroll(by)));
  onKey("j", scroll(1, false));
  onKey("k", scroll(-1, false));
  onKey("J", scroll(1, true));
  onKey("K", scroll(-1, true));

  // A text that is longer than what is seen of it is a stop for Tab, as the panes are.
  const placeStops = () => {
    const box = !evidence.page() && paneOf();
    document.querySelectorAll(".record--focus .fields > :not([data-citejury-field]) .content-area").forEach((area) => {
      const isLong = Boolean(box) && area.offsetHeight > box.clientHeight / 2 && !area.querySelector("p[tabindex]");
      if (isLong === (area.getAttribute("role") === "region")) return;
      const title = area.parentElement.querySelector(".title-area > span")?.textContent;
      Object.entries({ role: "region", tabindex: "0", "aria-label": title })
        .forEach(([name, value]) => (isLong ? area.setAttribute(name, value) : area.removeAttribute(name)));
    });
  };

  const questions = () => [...(form()?.$el.querySelectorAll(".questions > div") || [])];
  const isOpen = () => root.classList.contains("citejury-all-questions");
  const openAll = (isAll) => {
    root.classList.toggle("citejury-all-questions", isAll);
    const { button } = bar;
    button.textContent = isAll ? "⌄" : "⌃";
    button.title = say(isAll ? "questions_one" : "questions_all");
    button.setAttribute("aria-label", button.title);
    button.setAttribute("aria-expanded", String(isAll));
    button.lang = locale();
  };
  const placeBar = () => {
    const page = form();
    if (!page?.record?.id || bar?.form === page.$el) return;
    bar?.button.remove();
    const button = element("button", { type: "button", className: "citejury-all", id: "citejury-all" });
    button.addEventListener("click", (event) => { event.stopPropagation(); openAll(!isOpen()); });
    button.addEventListener("keydown", (event) => event.stopPropagation()); // Enter is the page's for submitting
    page.$el.prepend(button);
    bar = { form: page.$el, button };
    openAll(isOpen());
    mark(questions()[page.autofocusPosition || 0]);
    sizes.observe(page.$el);
  };
  const mark = (question) => {
    if (!question) return;
    questions().forEach((each) => each.classList.toggle("citejury-current", each === question));
    current = question;
  };
  window.addEventListener("focusin", ({ target }) => {
    const question = target.closest("form.questions-form .questions > div");
    if (question && question !== current) mark(question);
  });
  // Argilla gives the focus to the first question, and with it would begin each record at its end.
  let begun = null, isFresh = false; // until they scroll: what is around the panes takes its size by and by
  window.addEventListener("resize", () => { begun = null; place(); });
  ["wheel", "touchmove", "pointerdown", "keydown"].forEach((name) => window.addEventListener(name, () => { isFresh = false; },
    { capture: true, passive: true }));
  const toPanes = () => {
    const [wrapper, fields] = [".resizable-v.wrapper", ".record--focus .fields"].map((each) => document.querySelector(each));
    if (!isFresh || !narrow.matches || !wrapper || !fields) return;
    wrapper.scrollTop += fields.getBoundingClientRect().top - wrapper.getBoundingClientRect().top;
  };
  const place = () => {
    const [record, fields] = [recordShown()?.id, document.querySelector(".record--focus .fields")];
    if (!narrow.matches || !record || !fields || begun === record) return;
    begun = record;
    isFresh = true;
    [fields, fields.closest(".resizable-v.wrapper")].forEach((each) => each && sizes.observe(each));
    requestAnimationFrame(toPanes);
  };
  watch(() => {
    foldQuery();
    placeBar();
    placeStops();
    place();
  });
  onKey("q", () => {
    if (!bar?.button.isConnected || !narrow.matches) return false;
    openAll(!isOpen());
    (current?.querySelector("input:checked, input, [tabindex]") || bar.button).focus();
    return true;
  });
})();
