// Marks on the words of the context that decided, by Argilla 2.8.0's span question: one belongs to the text of one
// passage, and where the dataset requires them an answer waits for them. Argilla counts into the one text node of the
// field; that it has only one, however long it is, is seen to here.
(() => {
  "use strict";
  if (!window.citejury?.toldNow || !window.citejury.readHeads) return; // a script before this one did not come
  const { marks, say, locale, element, onKey, watch, form, recordShown, dataset, readHeads } = window.citejury;
  const QUESTION = "evidence";
  const FIELD = ".span-annotation__field, .span-annotation__field--overlapped";
  let told = ["", {}]; // what is said of her last selection
  let asked = false; // whether she has tried to submit this record without a mark that it needs
  let hint, guarded, busy;

  const { get, set } = Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML");
  Object.defineProperty(HTMLParagraphElement.prototype, "innerHTML", {
    configurable: true, enumerable: true, get, set(text) { set.call(this, text); this.normalize(); }, // 65,536 a node
  });

  const question = () => recordShown()?.questions?.find(({ name }) => name === QUESTION);
  const fieldShown = () => document.querySelector(".record--focus")?.querySelector(FIELD);
  const HUES = { supports: 212, contradicts: 28 };
  const colour = () => question()?.answer.options.forEach((option) => { // blue and orange, whatever the words are
    const wanted = `hsl(${HUES[option.value]}, 80%, 80%)`;
    if (option.color?.constructor.from && String(option.color) !== wanted) option.color = option.color.constructor.from(wanted);
  });
  const named = (mark) => question().answer.options.find(({ value }) => value === mark)?.text || mark;

  const missing = () => {
    if (dataset()?.metadata?.[QUESTION] !== "required" || !question()) return [];
    const values = Object.fromEntries(recordShown().questions.map(({ name, answer }) => [name, answer.valuesAnswered]));
    const made = values[QUESTION].map(({ label }) => label);
    return Object.entries(marks).filter(([label, mark]) => values[label] === "yes" && !made.includes(mark))
      .map(([, mark]) => named(mark));
  };
  const write = () => {
    const footer = document.querySelector("form.questions-form .footer-form");
    if (!footer || !question()) { hint?.remove(); return; }
    const needed = asked ? missing() : [];
    const isNews = told[0] || !needed.length; // of a selection after she was refused
    const [name, values] = isNews ? told : ["marks_missing", { marks: needed.join(", ") }];
    if (!hint) (hint = element("p", { id: "citejury-marks" })).setAttribute("role", "status");
    const text = name ? say(name, values) : "";
    if (hint.textContent !== text) hint.textContent = text;
    hint.className = needed.length ? "needed" : "";
    hint.lang = locale();
    hint.hidden = !text;
    if (hint.parentNode !== footer.parentNode) footer.before(hint);
  };
  const tell = (name, values = {}) => { told = [name, values]; write(); };

  // Every way to submit goes through this event of the form, which is another component for each record.
  const guard = () => {
    const page = form();
    if (!page || page === guarded || !page.record) return;
    guarded = page;
    const { $emit } = page;
    page.$emit = function (name, ...rest) {
      if (name !== "on-submit-responses" || !missing().length) return $emit.call(this, name, ...rest);
      asked = true;
      tell("");
      hint.scrollIntoView({ block: "nearest" });
      return this;
    };
    let record = page.record.id;
    page.$watch(() => [page.record?.id, missing().join()], ([now]) => {
      if (now !== record) { [record, asked, told] = [now, false, ["", {}]]; }
      write();
    });
  };
  watch(() => { colour(); guard(); write(); });

  const bodiesOf = (text) => readHeads(text).map(({ to, end }) => [to + 1, end]); // without a head's line end
  const trimmed = (text, from, to) => {
    const words = text.slice(from, to);
    const start = from + words.length - words.trimStart().length;
    return [start, Math.max(start, to - words.length + words.trimEnd().length)];
  };
  // Where an end of her selection is in the field's text; Argilla takes its offset, whatever element it counts in.
  const placeIn = (node, container, offset) => {
    if (container === node) return offset;
    const whole = new Range();
    whole.selectNodeContents(node);
    return whole.comparePoint(container, offset) < 0 ? 0 : node.length;
  };
  // Her selection in the field as the parts of passages that it is on; null where it is one already, or there is none.
  const partsOf = (node, selection) => {
    const { startContainer, startOffset, endContainer, endOffset } = selection.getRangeAt(0);
    const [from, to] = [placeIn(node, startContainer, startOffset), placeIn(node, endContainer, endOffset)];
    const bodies = bodiesOf(node.data);
    const isInside = startContainer === node && endContainer === node;
    if (isInside && bodies.some(([start, end]) => from >= start && to <= end)) return null;
    return bodies.map(([start, end]) => trimmed(node.data, Math.max(start, from), Math.max(start, Math.min(end, to))))
      .filter(([start, end]) => start < end);
  };
  const take = (field, selection) => { // as if each part had been selected by itself
    const parts = partsOf(field.firstChild, selection);
    if (!parts) { tell(""); return false; }
    busy = true;
    parts.forEach(([start, end]) => {
      selection.setBaseAndExtent(field.firstChild, start, field.firstChild, end);
      field.click();
    });
    busy = false;
    selection.empty();
    tell(parts.length > 1 ? "marks_split" : parts.length ? "marks_cut" : "marks_heading", { n: parts.length });
    return true;
  };
  const isChosen = () => question()?.answer.options.some(({ isSelected }) => isSelected);
  window.addEventListener("click", (event) => {
    const [field, selection] = [event.target.closest?.(FIELD), getSelection()];
    if (busy || !field?.firstChild || !question() || selection.type !== "Range") return;
    if (isChosen()) {
      if (take(field, selection)) event.stopImmediatePropagation();
      return;
    }
    selection.empty(); // the next press on it would drag it away
    tell("marks_choose", { marks: Object.values(marks).map(named).join(", ") });
  }, true);

  // By keyboard: `m` goes to the context and marks what is selected there, arrows select words, `M` takes a mark away.
  const isIn = (field, selection) => selection.type === "Range" && field.contains(selection.anchorNode);
  const begin = (field, selection) => { // at the first passage that is in sight
    const [node, { top }] = [field.firstChild, field.closest("[role=region]")?.getBoundingClientRect() || { top: 0 }];
    const range = new Range();
    const start = bodiesOf(node.data).map(([from]) => from).find((from) => {
      range.setStart(node, from);
      range.setEnd(node, Math.min(node.length, from + 1));
      return range.getBoundingClientRect().top >= Math.max(0, top);
    });
    selection.collapse(node, start || 0);
    selection.modify("extend", "forward", "word");
  };
  onKey("m", () => {
    const [field, selection] = [fieldShown(), getSelection()];
    if (!field?.firstChild || !question()) return false;
    if (isIn(field, selection)) return field.click();
    field.focus();
    return begin(field, selection);
  });
  onKey("M", () => {
    const field = fieldShown();
    let at = field;
    while (at && !at.__vue__?.highlighting) at = at.parentElement;
    const spans = at?.__vue__.highlighting.nodeSpans;
    if (!question() || !spans?.length) return false;
    const range = isIn(field, getSelection()) && getSelection().getRangeAt(0);
    const under = range && spans.find(({ from, to }) => from < range.endOffset && range.startOffset < to);
    return at.__vue__.highlighting.removeSpan(under || spans.at(-1)) && undefined;
  });
  const along = (direction) => (event) => {
    const [field, selection] = [fieldShown(), getSelection()];
    if (!field || document.activeElement !== field || !isIn(field, selection)) return false;
    if (!event.shiftKey) {
      selection[direction === "forward" ? "collapseToEnd" : "collapseToStart"]();
      selection.modify("move", direction, "word");
      if (direction === "forward") selection.modify("move", "backward", "word");
    }
    selection.modify("extend", event.shiftKey ? direction : "forward", "word");
    return undefined;
  };
  onKey("ArrowRight", along("forward"));
  onKey("ArrowLeft", along("backward"));
})();
