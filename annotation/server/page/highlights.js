// Lets Argilla 2.8.0 colour what it highlights: the words of a search, and marked spans. It makes a style element for
// each field of each record, which the content policy refuses; a hash cannot allow it, since it names the record.
// An element that does nothing stands in its place. What in it colours marked spans is taken over; words that
// were found get a colour of ours, because Argilla's has a contrast of 2.9 and is missing where spans can be marked.
(() => {
  "use strict";
  if (!window.Highlight) return; // the browser cannot highlight at all
  const SPAN = /^(?:\[data-theme="dark"\] )?\.span-annotation__field(?:--overlapped)?::highlight\(hl-[\w-]+\)$/;
  const FOUND = "search-text-highlight-";
  const MOST = 900; // rules of the records seen last
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  const add = (rule) => {
    sheet.insertRule(rule, sheet.cssRules.length);
    if (sheet.cssRules.length > MOST) sheet.deleteRule(0);
  };

  const adopt = (text) => {
    const offered = new CSSStyleSheet();
    offered.replaceSync(text);
    [...offered.cssRules].forEach(({ selectorText, style }) => {
      const known = selectorText && selectorText.split(", ").every((each) => SPAN.test(each));
      if (known && style.backgroundColor) add(`${selectorText} { background-color: ${style.backgroundColor} }`);
    });
  };
  const { createElement } = document;
  document.createElement = function (name, ...rest) {
    if (String(name).toLowerCase() !== "style") return createElement.call(this, name, ...rest);
    const inert = createElement.call(this, "template");
    queueMicrotask(() => adopt(inert.textContent)); // Argilla fills it in the same breath
    return inert;
  };

  // Argilla looks for whole words as JavaScript knows them: no letters but those of ASCII, spaces between words.
  const WRITTEN_TOGETHER = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
  const asPattern = (word) => {
    const exact = word.replace(/[\\^$.?()[\]{}/]/g, "\\$&");
    return WRITTEN_TOGETHER.test(word) ? exact : `(?<![\\p{L}\\p{N}])${exact}(?![\\p{L}\\p{N}])`;
  };
  const foundIn = (field) => {
    const text = document.querySelector(".fields")?.__vue__?.recordCriteria?.committed?.searchText?.value?.text || "";
    const words = text.split(/[\s|+*"-]+/).filter((word) => /[^\x00-\x7f]/.test(word));
    const ranges = [];
    if (!words.length || !field) return ranges;
    const pattern = new RegExp(words.map(asPattern).join("|"), "giu");
    const walker = document.createTreeWalker(field, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      for (const { index, 0: word } of walker.currentNode.data.matchAll(pattern)) {
        const range = new Range();
        range.setStart(walker.currentNode, index);
        range.setEnd(walker.currentNode, index + word.length);
        ranges.push(range);
      }
    }
    return ranges;
  };
  const { set } = HighlightRegistry.prototype;
  const coloured = new Set();
  HighlightRegistry.prototype.set = function (name, highlight) {
    if (name.startsWith(FOUND)) {
      const id = name.slice(FOUND.length);
      foundIn(document.getElementById(`fields-content-${id}`)).forEach((range) => highlight.add(range));
      if (!coloured.has(name)) add(`::highlight(${CSS.escape(name)}) { background-color: #ffe08a; color: #332600 }`);
      coloured.add(name);
    }
    return set.call(this, name, highlight);
  };
})();
