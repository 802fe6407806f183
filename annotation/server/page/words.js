// What the other scripts share: their texts in her language, the dataset that is open, what makes elements, who hears
// of keys and of changes of the page.
// For Argilla 2.8.0, whose page asks for all it shows by XMLHttpRequest.
(() => {
  "use strict";
  const { rules, disputed, marks, texts, argilla, examples } = JSON.parse(document.currentScript.dataset.citejury);
  const API = new URL("api/v1/", document.baseURI).pathname;
  let dataset = null, me = null;
  const worded = (wanted) => (texts[wanted] ? wanted : "en");
  const locale = () => worded(dataset?.metadata?.locale || navigator.language.slice(0, 2));
  // The task of the open dataset where it is from a file: its rules and its words. Ours are in the texts of the page.
  const task = () => {
    const { task_file: file, locale: own } = dataset?.metadata || {};
    return file ? { rules: file.rule || [], words: file.wording[own] || {} } : null;
  };
  // What Argilla's page calls her drafts, in the browser's language, which need not be the dataset's.
  const drafts = () => window.$nuxt?.$i18n.t("recordStatus.draft").replace(/^./, (first) => first.toUpperCase());
  // `{n}` in a text is a number, other names in braces are other values.
  const say = (name, values = {}, language = locale()) => texts[language][name].replace(/\{(\w+)\}/g,
    (all, key) => values[key] ?? (key === "drafts" ? drafts() : null) ?? all);
  const element = (name, properties = {}) => Object.assign(document.createElement(name), properties);

  // Keys of ours are none where she types, in a dialog, or with a modifier; an action that gives false leaves the key to
  // the page. Shift is in the key itself: "C" is Shift and c.
  const keys = new Map();
  const onKey = (key, action) => keys.set(key, action);
  const isTyping = ({ target }) => Boolean(
    target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable=true]"));
  window.addEventListener("keydown", (event) => {
    const action = keys.get(event.key);
    if (!action || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (isTyping(event) || event.target.closest?.("dialog") || action(event) === false) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  // Called before the browser paints what changed; what it does itself to the page calls it once more.
  const watchers = [];
  const run = (action) => { try { action(); } catch (error) { reportError(error); } }; // one must not stop the others
  const watch = (action) => { watchers.push(action); run(action); };
  new MutationObserver(() => watchers.forEach(run)).observe(document, { childList: true, subtree: true });

  const { open } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) { // the dataset knows in which language she works
    const path = new URL(url, document.baseURI).pathname.replace(API, "");
    if (/^datasets\/[0-9a-f-]{36}$/.test(path)) this.addEventListener("load", () => { dataset = learnt(this, dataset); });
    if (/^datasets\/[0-9a-f-]{36}\/fields$/.test(path)) this.addEventListener("load", () => inOrder(this));
    if (/^(?:me\/datasets\/[^/]+\/records\/search|records\/[^/]+)(?:\?|$)/.test(path)) this.addEventListener("load", () => unscored(this));
    if (path === "me") this.addEventListener("load", () => { me = learnt(this, me); });
    return open.call(this, method, url, ...rest);
  };
  const ORDER = ["query", "answer", "context", "sources"]; // as they are seen and read, and so as Tab goes
  const rank = ({ name }) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  const inOrder = (request) => {
    const fields = learnt(request, null);
    if (!fields?.items?.some(({ name }) => name === "answer")) return;
    fields.items.sort((a, b) => rank(a) - rank(b));
    Object.defineProperty(request, "responseText", { value: JSON.stringify(fields) });
  };
  const unscored = (request) => { // what is suggested is shown, not by whom and with which score
    if (me?.role !== "annotator" || !/"suggestions":\s*\[\s*\{/.test(request.responseText)) return;
    const found = JSON.parse(request.responseText, (key, value) => (key === "suggestions" && Array.isArray(value)
      ? value.map((each) => ({ ...each, score: null, agent: null })) : value));
    Object.defineProperty(request, "responseText", { value: JSON.stringify(found) });
  };
  const learnt = (request, before) => { // a network's own log-in page answers 200 as well
    try { return request.status < 300 ? JSON.parse(request.responseText) : before; } catch { return before; }
  };
  window.citejury = {
    rules, task, disputed, marks, argilla, examples, locale, worded, say, element, onKey, isTyping, watch, dataset: () => dataset,
    me: () => me,
  };
})();
