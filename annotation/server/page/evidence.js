// Brings a claim and its evidence together on Argilla 2.8.0's grounding page: answer and passages in panes side by side,
// from `[3]` in the answer to the passages of source 3 and back, the list of sources folded when it is long, and the
// true heads of passages drawn, so that a page's text cannot pass for one. The fields' texts and elements stay untouched:
// all marks are highlights, and Argilla restores marked spans by their places in the text.
(() => {
  "use strict";
  if (!window.citejury?.watch || !window.Highlight) return; // a script before this one did not come, or an old browser
  const { say, locale, element, onKey, watch, recordShown } = window.citejury;
  const MARKS = /\[(\d{1,4}(?:, ?\d{1,4})*)\]|[(（](C\d{3}(?:[,，、] ?C\d{3})*)[)）]/g;
  const HEADS = /^━━ [^\d\n]*\d+ · (?:\[(\d+)\] )?.* ━━(?=\n)/gm; // `━━` stands nowhere else: annotation/argilla/display.py
  const STATE = /^\[(\d+)\] (.+?) ┃ /;
  const OLD_STATE = /^\[(\d+)\] .* — (.+)$/; // of datasets pushed by earlier versions
  const [MANY, BESIDE] = [6, 600]; // lines of sources that are shown at once; width from which panes stand side by side
  const FOLD = "citejury-sources";
  const ORDER = ["query", "answer", "sources", "context"]; // as they are read; other fields come last
  let page = null; // what is known of the record that is shown

  // The text of an element with the place of each of its text nodes: a long text comes in several.
  const readText = (root) => {
    const [nodes, starts] = [[], []];
    let text = "";
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      nodes.push(walker.currentNode);
      starts.push(text.length);
      text += walker.currentNode.data;
    }
    const nodeAt = (place) => { // the last node that starts at the place or before it
      let [low, high] = [0, nodes.length - 1];
      while (low < high) {
        const middle = Math.ceil((low + high) / 2);
        if (starts[middle] <= place) low = middle; else high = middle - 1;
      }
      return low;
    };
    const range = (from, to) => {
      const [made, first, last] = [new Range(), nodeAt(from), nodeAt(to - 1)];
      made.setStart(nodes[first], from - starts[first]);
      made.setEnd(nodes[last], to - starts[last]);
      return made;
    };
    return { root, text, range, placeOf: (node, offset) => starts[nodes.indexOf(node)] + offset };
  };

  // Every number of every citation mark, with where it stands.
  const readMarks = (read) => [...read.text.matchAll(MARKS)].flatMap((mark) => {
    const numbers = [...mark[0].matchAll(/\d+/g)];
    const [open, close] = [mark.index, mark.index + mark[0].length];
    return numbers.map(({ 0: digits, index }, place) => ({
      n: Number(digits),
      from: place ? open + index : open,
      to: place === numbers.length - 1 ? close : open + index + digits.length,
    }));
  });

  const readHeads = (text) => [...text.matchAll(HEADS)].map((head, place, all) => ({
    n: Number(head[1]),
    from: head.index,
    to: head.index + head[0].length,
    end: (all[place + 1]?.index ?? text.length + 3) - 3, // passages stand three line ends apart
  }));

  const readLines = (read) => {
    let from = 0;
    const lines = read.text.split("\n").map((line) => {
      const start = from;
      from += line.length + 1;
      return { line, from: start, to: start + line.length };
    });
    const listed = lines.filter(({ line }) => line.startsWith("[")); // one line may be a heading
    const form = listed.every(({ line }) => STATE.test(line)) ? STATE : OLD_STATE;
    return listed.flatMap((each) => {
      const found = form.exec(each.line);
      if (!found) return [];
      const state = form === STATE ? each.from + `[${found[1]}] `.length : each.to - found[2].length;
      return [{ ...each, n: Number(found[1]), state: [state, state + found[2].length] }];
    });
  };

  const paint = (name, priority, ranges) => {
    const highlight = new Highlight(...ranges);
    highlight.priority = priority; // what she searches or marks is drawn over it
    CSS.highlights.set(`citejury-${name}`, highlight);
  };
  const paintAll = () => {
    const { answer, context, sources, marks, heads, lines } = page;
    paint("head", -2, heads.map(({ from, to }) => context.range(from, to)));
    paint("mark", -2, marks.map(({ from, to }) => answer.range(from, to)));
    paint("state", -2, lines.map(({ state }) => sources.range(...state)));
    paint("here", -1, []);
    paint("passage", -3, []);
  };

  // Scrolls until the beginning of the range can be seen, in its pane at the top where wanted, and no further than it must.
  const reveal = (range, toTop) => {
    let atTop = toTop;
    for (let box = range.startContainer.parentElement; box; box = box.parentElement) {
      const isPage = box === document.scrollingElement;
      if (box.scrollHeight <= box.clientHeight || (!isPage && !/auto|scroll/.test(getComputedStyle(box).overflowY))) continue;
      const [here, around] = [range.getClientRects()[0], box.getBoundingClientRect()];
      if (!here) return;
      const top = isPage ? 0 : around.top;
      const bottom = top + box.clientHeight;
      if (atTop || here.top < top || here.bottom > bottom) {
        box.scrollTop += here.top - top - (atTop ? 4 : box.clientHeight / 3);
      }
      atTop = false;
    }
  };

  const tell = (name, values) => {
    const text = say(name, values);
    if (page.status.textContent !== text) page.status.textContent = text;
    page.bar.lang = locale();
  };
  const passagesOf = (n) => page.heads.filter((head) => head.n === n);
  const go = (mark, turn) => {
    const found = passagesOf(mark.n);
    const head = found[turn % (found.length || 1)];
    const line = page.lines.find(({ n }) => n === mark.n);
    Object.assign(page, { mark, turn });
    passages.observe(page.areas[1]);
    const cited = mark.to > 0 && page.answer.range(mark.from, mark.to);
    paint("here", -1, [
      ...(cited ? [cited] : []),
      ...(line ? [page.sources.range(line.from, line.from + `[${line.n}]`.length)] : []),
      ...(head ? [page.context.range(head.from, head.to)] : []),
    ]);
    paint("passage", -3, head && head.end > head.to ? [page.context.range(head.to, head.end)] : []);
    const isFlow = !page.fields.dataset.citejuryPanes;
    if (cited && !isFlow) reveal(cited);
    if (line && (!isFlow || !head)) reveal(page.sources.range(line.from, line.from + 1));
    if (head) reveal(page.context.range(head.from, head.to), true);
    if (head) tell("evidence_passage", { n: mark.n, place: (turn % found.length) + 1, all: found.length });
    else tell(line ? "evidence_none" : "evidence_unlisted", { n: mark.n });
  };
  const firstSeen = () => { // of the answer's marks, where it is scrolled to
    const top = page.answer.root.parentElement.getBoundingClientRect().top;
    const seen = page.marks.findIndex(({ from, to }) => page.answer.range(from, to).getBoundingClientRect().bottom > top);
    return Math.max(0, seen);
  };
  const step = (by) => {
    const { marks, mark, turn } = page;
    if (!marks.length) return tell("evidence_no_mark");
    const [place, next] = [marks.findIndex(({ from }) => from === mark?.from), (mark ? turn : 0) + by];
    if (place < 0) return go(marks[firstSeen()], 0);
    if (next >= 0 && next < passagesOf(mark.n).length) return go(mark, next);
    const other = marks[(place + by + marks.length) % marks.length];
    return go(other, by > 0 ? 0 : Math.max(0, passagesOf(other.n).length - 1));
  };
  const back = () => {
    const mark = page.mark?.to ? page.mark : page.marks[0];
    reveal(mark ? page.answer.range(mark.from, mark.to) : page.answer.range(0, 1));
  };

  // The mark under the mouse, in the answer or at the beginning of a line of the list.
  const markAt = ({ clientX, clientY, target }) => {
    const read = page && [page.answer, page.sources].find(({ root }) => root.contains(target));
    const caret = read && document.caretRangeFromPoint?.(clientX, clientY);
    if (!caret || caret.startContainer.nodeType !== Node.TEXT_NODE || !read.root.contains(caret.startContainer)) return null;
    const place = read.placeOf(caret.startContainer, caret.startOffset);
    const isMark = ({ from, to }) => place >= from && place <= to && [...read.range(from, to).getClientRects()].some(
      (box) => clientX >= box.left && clientX <= box.right && clientY >= box.top && clientY <= box.bottom);
    if (read === page.answer) return page.marks.find(isMark) || null;
    const line = page.lines.find(({ n, from }) => isMark({ from, to: from + `[${n}]`.length }));
    return line ? page.marks.find(({ n }) => n === line.n) || { n: line.n, from: -line.n, to: 0 } : null; // or nowhere
  };

  const button = (name, label, action) => {
    const made = element("button", { type: "button", className: `citejury-${name}`, tabIndex: -1 });
    if (label) made.textContent = label;
    made.addEventListener("mousedown", (event) => event.preventDefault()); // the question keeps the focus
    made.addEventListener("keydown", (event) => event.stopPropagation()); // Enter is the page's for submitting
    made.addEventListener("click", (event) => { event.stopPropagation(); action(); });
    return made;
  };
  const makeBar = (context) => {
    const bar = element("div", { className: "citejury-finder" });
    const status = element("span", { className: "citejury-status" });
    status.setAttribute("role", "status");
    bar.setAttribute("role", "group");
    const named = [["previous", "‹", () => step(-1), "Shift+C"], ["next", "›", () => step(1), "c"], ["back", "↩", back, "b"]];
    bar.append(...named.map(([name, label, action, key]) => {
      const made = button(name, label, action);
      made.title = say(`evidence_${name}`);
      made.setAttribute("aria-label", made.title);
      made.setAttribute("aria-keyshortcuts", key);
      return made;
    }), status);
    context.querySelector(".title-area").after(bar);
    return { bar, status };
  };

  const isFolded = () => sessionStorage.getItem(FOLD) !== "open";
  const fold = (folded) => {
    const { area, toggle, count } = page.list;
    area.classList.toggle("citejury-folded", folded);
    area.classList.toggle("citejury-unfolded", !folded);
    toggle.textContent = say(folded ? "sources_unfold" : "sources_fold", { n: count });
    toggle.lang = locale();
    toggle.setAttribute("aria-expanded", String(!folded));
    layOut();
  };
  const makeList = (area) => {
    const count = page.lines.length;
    if (count <= MANY) return null;
    const toggle = button("fold", "", () => toggleList());
    toggle.setAttribute("aria-controls", area.id);
    toggle.setAttribute("aria-keyshortcuts", "l");
    area.parentElement.querySelector(".title-area > span").after(toggle);
    return { area, toggle, count };
  };
  const toggleList = () => {
    if (!page.list) return false;
    sessionStorage.setItem(FOLD, isFolded() ? "open" : "");
    return fold(isFolded());
  };

  const rank = (name) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  const areaOf = (wrapper) => wrapper.querySelector(".content-area, .text_field_component__area");
  let beside = true;
  const arrange = ({ fields, names }) => {
    const rows = names.toSorted((a, b) => rank(a) - rank(b)).filter((name) => name !== "context" || !beside)
      .map((name) => ({ answer: "minmax(8rem, 1fr)", context: "minmax(8rem, 2fr)" })[name] || "auto");
    fields.dataset.citejuryPanes = beside ? "beside" : "stacked";
    fields.style.gridTemplateRows = rows.join(" ");
    fields.style.setProperty("--citejury-rows", String(rows.length));
  };
  const layOut = () => { // panes where the window is wide enough for Argilla's own columns; CSS has the rest
    if (!page) return;
    const { fields } = page;
    const before = fields.dataset.citejuryPanes;
    if (!wide.matches) delete fields.dataset.citejuryPanes;
    else {
      if (!before) arrange(page); // first as last time: a long context takes its time for each arrangement
      if (beside !== fields.clientWidth >= BESIDE) {
        beside = !beside;
        arrange(page);
      }
    }
    [...fields.children].map(areaOf).forEach((area) => { // what scrolls can be reached by keyboard, and only that
      const scrolls = area.scrollHeight > area.clientHeight + 1 && getComputedStyle(area).overflowY === "auto";
      if (scrolls && !area.firstElementChild.hasAttribute("tabindex")) area.tabIndex = 0;
      else area.removeAttribute("tabindex");
    });
    if (page.mark && before !== fields.dataset.citejuryPanes) go(page.mark, page.turn); // its lines break elsewhere now
  };
  const wide = window.matchMedia("(min-width: 1100px)"); // below it Argilla's page is one column
  const sizes = new ResizeObserver(layOut);
  const passages = new IntersectionObserver( // the last entry is the newest
    (entries) => page?.bar.classList.toggle("near", entries.at(-1).isIntersecting));
  const texts = new MutationObserver(() => { // a field's text is shown anew, perhaps as it was written
    if (page?.fields.isConnected) read();
  });

  const read = () => {
    const [answer, context, sources] = page.areas.map((area) => readText(area.firstElementChild));
    Object.assign(page, { answer, context, sources, mark: null, turn: 0 });
    Object.assign(page, { marks: readMarks(answer), heads: readHeads(context.text), lines: readLines(sources) });
    paintAll();
  };
  const show = (fields, names) => {
    const wrappers = [...fields.children];
    wrappers.forEach((wrapper, place) => {
      wrapper.dataset.citejuryField = names[place];
      wrapper.style.order = String(rank(names[place]));
      const area = areaOf(wrapper);
      area.setAttribute("role", "region");
      area.setAttribute("aria-label", wrapper.querySelector(".title-area > span").textContent);
    });
    const areas = ["answer", "context", "sources"].map((name) => areaOf(wrappers[names.indexOf(name)]));
    page = { fields, names, areas };
    read();
    Object.assign(page, makeBar(wrappers[names.indexOf("context")]), { list: makeList(areas[2]) });
    if (page.list) fold(isFolded());
    page.bar.setAttribute("aria-label", say("evidence_finder"));
    tell("evidence_hint");
    if (!page.list) layOut();
    sizes.observe(fields);
    areas.forEach((area, place) => { // beside a text with marked spans Argilla puts their labels, at every scroll
      const root = place === 1 ? area.firstElementChild : area;
      texts.observe(root, { childList: true, characterData: true, subtree: true });
    });
    areas[0].addEventListener("mousemove", (event) => areas[0].classList.toggle("citejury-over", Boolean(markAt(event))));
  };
  const leave = () => {
    sizes.disconnect();
    texts.disconnect();
    passages.disconnect();
    ["head", "mark", "state", "here", "passage"].forEach((name) => CSS.highlights.delete(`citejury-${name}`));
    page = null;
  };
  watch(() => {
    const fields = document.querySelector(".record--focus .fields");
    if (page && (fields !== page.fields || !page.bar?.isConnected)) leave();
    const names = !page && fields?.__vue__?.fields?.map(({ name }) => name);
    if (names && ["sources", "answer", "context"].every((name) => names.includes(name))) show(fields, names);
  });

  wide.addEventListener("change", layOut);
  ["mousedown", "click"].forEach((name) => window.addEventListener(name, (event) => {
    const mark = event.button === 0 && page && markAt(event);
    if (!mark) return;
    event.preventDefault(); // the question keeps the focus, and the form does not think that she left it
    event.stopPropagation();
    if (name === "click") go(mark, mark.from === page.mark?.from ? page.turn + 1 : 0);
  }, true));
  // In one column Argilla, which gives the focus to the first question, would begin each record at its end.
  let begun = null;
  window.addEventListener("focusin", ({ target }) => {
    const id = recordShown?.()?.id;
    if (wide.matches || begun === id || !target.closest("form.questions-form")) return;
    begun = id;
    requestAnimationFrame(() => document.querySelector(".wrapper")?.scrollTo(0, 0));
  });
  const whenShown = (action) => () => (page ? action() : false);
  onKey("c", whenShown(() => step(1)));
  onKey("C", whenShown(() => step(-1)));
  onKey("b", whenShown(back));
  onKey("l", whenShown(toggleList));
  window.citejury.readHeads = readHeads;
})();
