// Goes through an answer sentence by sentence: `n` to the next, `p` to the previous one, of those that cite something or,
// where none does, of all. The sentence is marked, and the passages of its first marker come into view where there are
// any. Where a sentence ends is the browser's word for it; what it says is nobody's.
(() => {
  "use strict";
  if (!window.citejury?.evidence) return; // a script before this one did not come
  const page = window.citejury;
  const { say, locale, element, onKey, watch, readText, readMarks, withoutMarks, reveal, paint, evidence } = page;
  const BLOCKS = "p, li, td, th, pre, blockquote, h1, h2, h3, h4, h5, h6, .citejury-text";
  const HEADING = /^H[1-6]$/;
  const WORD = /[\p{L}\p{N}]/u;
  let shown = null; // the answer's element, its text, its sentences and the one that is marked

  // Texts of blocks, and the line breaks in them, are apart; what is between belongs to none.
  const blocksOf = (read) => {
    const found = [];
    const walker = document.createTreeWalker(read.root, NodeFilter.SHOW_TEXT);
    for (let at = 0, last; walker.nextNode(); at += walker.currentNode.length) {
      const block = walker.currentNode.parentElement.closest(BLOCKS) || read.root;
      if (block === last) found.at(-1).to = at + walker.currentNode.length;
      else found.push({ block, from: at, to: at + walker.currentNode.length });
      last = block;
    }
    return found.filter(({ block }) => !HEADING.test(block.tagName));
  };
  const sentencesOf = (read) => {
    const segmenter = new Intl.Segmenter(locale(), { granularity: "sentence" });
    return blocksOf(read).flatMap(({ from, to }) => {
      const text = read.text.slice(from, to);
      // Markers do not end a sentence, and one after its full stop belongs to it, as blanks would.
      const parts = [...segmenter.segment(withoutMarks(text))].filter(({ segment }) => WORD.test(segment))
        .map(({ index, segment }) => ({ from: from + index, to: from + index + segment.length }));
      return parts.map((part) => {
        const words = read.text.slice(part.from, part.to);
        return { from: part.from + words.length - words.trimStart().length, to: part.from + words.trimEnd().length };
      });
    });
  };
  const now = () => evidence.page()?.answer || (shown?.root.isConnected ? shown.read : null);
  const learn = () => {
    const root = document.querySelector(".record--focus .content-area > .markdown-render"); // answers alone are Markdown
    const read = evidence.page()?.answer || (root && readText(root));
    if (!read) { shown = null; return null; }
    if (shown?.read.text === read.text && shown.root === read.root && now()?.text === read.text) return shown;
    const [marks, all] = [readMarks(read), sentencesOf(read)];
    const cited = all.map((each) => ({ ...each, mark: marks.find(({ from }) => from >= each.from && from < each.to) }))
      .filter(({ mark }) => !marks.length || mark);
    shown = { root: read.root, read, sentences: cited, at: -1 };
    return shown;
  };
  const show = (at) => {
    const [{ from, to }, { read }] = [shown.sentences[at], shown];
    shown.at = at;
    paint("sentence", -4, [read.range(from, to)]);
  };
  const first = () => { // that is not above what is seen
    const top = Math.max(0, (shown.root.closest("[role=region]") || shown.root).getBoundingClientRect().top);
    const found = shown.sentences.findIndex(({ from, to }) => shown.read.range(from, to).getBoundingClientRect().bottom > top);
    return Math.max(0, found);
  };
  const step = (by) => {
    if (!learn()) return false;
    const { sentences, read, at } = shown;
    if (!sentences.length) return evidence.page() && evidence.tell("sentence_none");
    const next = at < 0 ? first() : (at + by + sentences.length) % sentences.length;
    show(next);
    const { from, to, mark } = sentences[next];
    if (evidence.page() && mark) evidence.go(evidence.page().marks.find((each) => each.from === mark.from) || mark, 0);
    else if (evidence.page()) evidence.tell("sentence_of", placed());
    reveal(read.range(Math.max(from, to - 1), to));
    reveal(read.range(from, from + 1));
    return true;
  };
  const placed = () => ({ place: shown.at + 1, all: shown.sentences.length });
  page.place = () => (shown?.at >= 0 && shown.sentences[shown.at].mark ? say("sentence_of", placed()) : "");
  page.marked = (mark) => { // by its number, or by `c`
    if (!learn()) return;
    const at = shown.sentences.findIndex(({ from, to }) => mark.from >= from && mark.from < to);
    if (at >= 0) show(at); else { shown.at = -1; paint("sentence", -4, []); }
  };
  // Where no bar of the passages has such buttons: fingers have no keys.
  const placeButtons = () => {
    const title = !evidence.page() && document.querySelector(".record--focus .fields > div:has(> * .markdown-render) .title-area");
    if (!title || title.querySelector(".citejury-step")) return;
    title.firstElementChild.after(...[["previous", "‹", -1], ["next", "›", 1]].map(([name, textContent, by]) => {
      const button = element("button", { type: "button", className: "citejury-step", tabIndex: -1, textContent });
      button.title = say(`sentence_${name}`);
      button.setAttribute("aria-label", button.title);
      button.addEventListener("mousedown", (event) => event.preventDefault()); // the question keeps the focus
      button.addEventListener("click", (event) => { event.stopPropagation(); step(by); });
      return button;
    }));
  };
  watch(placeButtons);
  watch(() => { if (shown && !shown.root.isConnected) { shown = null; CSS.highlights.delete("citejury-sentence"); } });
  onKey("n", () => step(1));
  onKey("p", () => step(-1));
})();
