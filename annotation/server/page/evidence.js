// Brings a claim and its evidence together on Argilla 2.8.0's grounding page: answer and passages in panes side by side,
// from `[3]` in the answer to the passages of source 3 and back, the list of sources behind a tab, and the
// true heads of passages drawn, so that a page's text cannot pass for one. The fields' texts and elements stay untouched:
// all marks are highlights, and Argilla restores marked spans by their places in the text.
(() => {
  "use strict";
  if (!window.citejury?.watch || !window.Highlight) return; // a script before this one did not come, or an old browser
  const { say, locale, element, onKey, watch } = window.citejury;
  const orNull = (action) => { try { return action(); } catch { return null; } };
  const MARKS = /\[(\d{1,4}(?:, ?\d{1,4})*)\]|[(（](C\d{3}(?:[,，、] ?C\d{3})*)[)）]/g;
  const HEADS = /^━━ [^\d\n]*\d+ · (?:\[(\d+)\] )?.* ━━(?=\n)/gm; // `━━` stands nowhere else: annotation/argilla/display.py
  const STATE = /^\[(\d+)\] (.+?) ┃ /;
  const OLD_STATE = /^\[(\d+)\] .* — (.+)$/; // of datasets pushed by earlier versions
  const BESIDE = 600; // the width from which panes stand side by side
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
    const text = [window.citejury.place?.(), say(name, values)].filter(Boolean).join(" · ");
    if (page.status.textContent !== text) page.status.textContent = text;
    page.bar.lang = locale();
  };
  const passagesOf = (n) => page.heads.filter((head) => head.n === n);
  const go = (mark, turn) => {
    const found = passagesOf(mark.n);
    const head = found[turn % (found.length || 1)];
    const line = page.lines.find(({ n }) => n === mark.n);
    Object.assign(page, { mark, turn });
    const cited = mark.to > 0 && page.answer.range(mark.from, mark.to);
    paint("here", -1, [
      ...(cited ? [cited] : []),
      ...(line ? [page.sources.range(line.from, line.from + `[${line.n}]`.length)] : []),
      ...(head ? [page.context.range(head.from, head.to)] : []),
    ]);
    paint("passage", -3, head && head.end > head.to ? [page.context.range(head.to, head.end)] : []);
    showTab(head || !line ? "context" : "sources");
    if (cited) reveal(cited);
    if (line) reveal(page.sources.range(line.from, line.from + 1));
    if (head) reveal(page.context.range(head.from, head.to), true);
    window.citejury.marked?.(mark);
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
  const makeBar = () => {
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
    return { bar, status };
  };

  // Passages and list of sources share one pane: what is not shown keeps its place, because marked spans count on it.
  const TABS = ["context", "sources"];
  const makeTabs = () => {
    const tabs = element("div", { className: "citejury-tabs", lang: locale() });
    tabs.setAttribute("role", "tablist");
    tabs.setAttribute("aria-label", say("tabs"));
    const counts = { context: page.heads.length, sources: page.lines.length };
    tabs.append(...TABS.map((name) => {
      const tab = button("tab", say(`tab_${name}`, { n: counts[name] }), () => showTab(name));
      Object.assign(tab, { id: `citejury-tab-${name}` });
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", areaNamed(name).id);
      tab.setAttribute("aria-keyshortcuts", "l");
      return tab;
    }));
    tabs.addEventListener("keydown", ({ key }) => {
      if (!/^Arrow(?:Left|Right)$/.test(key)) return;
      switchTab();
      tabs.querySelector("[aria-selected=true]").focus();
    });
    return tabs;
  };
  const areaNamed = (name) => page.areas[["answer", "context", "sources"].indexOf(name)];
  const showTab = (name) => {
    page.tab = name;
    page.fields.dataset.citejuryTab = name;
    TABS.forEach((each) => {
      const tab = page.tabs.querySelector(`#citejury-tab-${each}`);
      tab.setAttribute("aria-selected", String(each === name));
      tab.tabIndex = each === name ? 0 : -1;
    });
  };
  const switchTab = () => showTab(page.tab === "context" ? "sources" : "context");

  // The border between answer and evidence: moved by mouse, finger or keys, and remembered in this browser.
  const SHARE = "citejury-share";
  const shareOf = (kept) => Math.min(80, Math.max(20, Number(kept) || 50));
  const setShare = (share) => {
    const now = shareOf(share);
    page.fields.style.setProperty("--citejury-first", `${now}fr`);
    page.fields.style.setProperty("--citejury-second", `${100 - now}fr`);
    page.divider.setAttribute("aria-valuenow", String(Math.round(now)));
    try { localStorage.setItem(SHARE, now); } catch { /* a browser may forbid it */ }
    page.share = now;
  };
  const makeDivider = () => {
    const divider = element("div", { className: "citejury-divider", tabIndex: -1, title: say("divider") });
    const attributes = { role: "separator", "aria-label": say("divider"), "aria-valuemin": 20, "aria-valuemax": 80 };
    Object.entries(attributes).forEach(([name, value]) => divider.setAttribute(name, value));
    divider.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the question keeps the focus
      divider.setPointerCapture(event.pointerId);
    });
    divider.addEventListener("pointermove", ({ pointerId, clientX, clientY }) => {
      if (!divider.hasPointerCapture(pointerId)) return;
      const [here, first] = [page.fields.getBoundingClientRect(), areaNamed("answer").getBoundingClientRect()];
      setShare(beside ? (100 * (clientX - here.left)) / here.width
        : (100 * (clientY - first.top)) / (here.bottom - first.top));
    });
    divider.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -5, ArrowUp: -5, ArrowRight: 5, ArrowDown: 5 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation(); // the arrows are the page's for going to other records
      setShare(page.share + by);
    });
    return divider;
  };

  const areaOf = (wrapper) => wrapper.querySelector(".content-area, .text_field_component__area");
  let beside = true;
  const layOut = () => { // panes beside each other or one above the other; CSS has the rest
    if (!page) return;
    const { fields } = page;
    const now = fields.clientWidth >= BESIDE ? "beside" : "stacked";
    beside = now === "beside";
    const isNew = fields.dataset.citejuryPanes !== now;
    if (isNew) {
      fields.dataset.citejuryPanes = now;
      page.divider.setAttribute("aria-orientation", beside ? "vertical" : "horizontal");
    }
    if (!wide.matches) { // as high as what is seen between the page's head and the questions
      const top = document.querySelector(".resizable-v.wrapper")?.getBoundingClientRect().top || 0;
      fields.style.setProperty("--citejury-room", `${window.innerHeight - top}px`);
    }
    page.areas.forEach((area) => { // what scrolls can be reached by keyboard, and only that
      const scrolls = area.scrollHeight > area.clientHeight + 1 && getComputedStyle(area).overflowY === "auto";
      if (scrolls && !area.firstElementChild.hasAttribute("tabindex")) area.tabIndex = 0;
      else area.removeAttribute("tabindex");
    });
    if (page.mark && isNew) go(page.mark, page.turn); // its lines break elsewhere now
  };
  const wide = window.matchMedia("(min-width: 1100px)"); // below it the questions are a bar at the bottom: reading.js
  const sizes = new ResizeObserver(layOut);
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
    const wrappers = [...fields.children].slice(0, names.length);
    wrappers.forEach((wrapper, place) => {
      wrapper.dataset.citejuryField = names[place];
      const area = areaOf(wrapper);
      area.setAttribute("role", "region");
      area.setAttribute("aria-label", wrapper.querySelector(".title-area > span").textContent);
    });
    const areas = ["answer", "context", "sources"].map((name) => areaOf(wrappers[names.indexOf(name)]));
    page = { fields, areas };
    read();
    Object.assign(page, makeBar(), { tabs: makeTabs(), divider: makeDivider() });
    page.head = element("div", { className: "citejury-evidence-head" });
    page.head.append(page.tabs, page.bar);
    wrappers[names.indexOf("context")].before(page.head); // where Tab goes from the answer
    fields.append(page.divider);
    showTab("context");
    setShare(orNull(() => localStorage.getItem(SHARE)));
    page.bar.setAttribute("aria-label", say("evidence_finder"));
    tell("evidence_hint");
    layOut();
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
    [page.head, page.divider].forEach((each) => each?.remove());
    delete page.fields.dataset.citejuryPanes;
    ["head", "mark", "state", "here", "passage"].forEach((name) => CSS.highlights.delete(`citejury-${name}`));
    page = null;
  };
  watch(() => {
    const fields = document.querySelector(".record--focus .fields");
    if (page && (fields !== page.fields || !page.bar?.isConnected)) leave();
    const names = !page && fields?.__vue__?.fields?.map(({ name }) => name);
    if (!names || !["sources", "answer", "context"].every((name) => names.includes(name))) return;
    show(fields, names);
  });

  wide.addEventListener("change", layOut);
  ["mousedown", "click"].forEach((name) => window.addEventListener(name, (event) => {
    const mark = event.button === 0 && page && markAt(event);
    if (!mark) return;
    event.preventDefault(); // the question keeps the focus, and the form does not think that she left it
    event.stopPropagation();
    if (name === "click") go(mark, mark.from === page.mark?.from ? page.turn + 1 : 0);
  }, true));
  window.addEventListener("resize", layOut);
  const whenShown = (action) => () => (page ? action() : false);
  onKey("c", whenShown(() => step(1)));
  onKey("C", whenShown(() => step(-1)));
  onKey("b", whenShown(back));
  onKey("l", whenShown(switchTab));
  [["<", -5], [">", 5]].forEach(([key, by]) => onKey(key, whenShown(() => setShare(page.share + by))));
  const pages = () => page; // for statements.js and reading.js
  const withoutMarks = (text) => text.replace(MARKS, (mark) => " ".repeat(mark.length));
  Object.assign(window.citejury, {
    readHeads, readText, readMarks, withoutMarks, reveal, paint, evidence: { page: pages, go, tell },
  });
})();
