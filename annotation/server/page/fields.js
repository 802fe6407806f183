// Shows an answer as its model wrote it, on a key and back, and copies what was written or seen instead of the HTML
// that Argilla 2.8.0's page has for it. The text comes from the server, once she asks for it.
(() => {
  "use strict";
  if (!window.citejury?.form) return; // a script before this one did not come
  const { say, locale, element, onKey, watch, recordShown, token } = window.citejury;
  const API = new URL("api/v1/", document.baseURI).pathname;
  const RENDERED = '<div class="citejury-answer"'; // annotation/argilla/rendering.py
  // What could reorder or cover what is around it: annotation/argilla/rendering.py.
  const [CONTROLS, TOWERS] = [/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, /(\p{M}{4})\p{M}+/gu];
  const BLOCKS = "p, div, li, tr, pre, blockquote, h1, h2, h3, h4, h5, h6, hr";
  let page = null; // the answer's element, its button, and its elements while it is shown as written

  // With `then` the answer comes later; without it this waits, since what is copied cannot come later.
  const ask = (record, then) => {
    const request = new XMLHttpRequest();
    const read = () => {
      try { return JSON.parse(request.responseText).answer; } catch { return undefined; }
    };
    request.open("GET", `${API}records/${record}/answer`, Boolean(then));
    request.setRequestHeader("authorization", token());
    if (then) request.addEventListener("loadend", () => then(read()));
    try { request.send(); } catch { return undefined; }
    return then ? undefined : read();
  };

  const press = (isPressed) => {
    page.button.setAttribute("aria-pressed", isPressed);
    page.button.lang = locale();
    page.button.textContent = say("as_written");
  };
  const showRendered = () => {
    page.root.replaceChildren(page.rendered);
    page.rendered = null;
    press(false);
  };
  const showWritten = (text) => {
    const written = element("div", { className: "citejury-text", dir: "auto" });
    written.textContent = text.replace(/\r\n?/g, "\n").replace(CONTROLS, "").replace(TOWERS, "$1");
    page.rendered = document.createDocumentFragment();
    page.rendered.append(...page.root.childNodes);
    page.root.replaceChildren(written);
    press(true);
  };
  const toggle = () => {
    if (page?.rendered) return showRendered();
    const [asked, record] = [page, recordShown()];
    if (!asked || !record) return false;
    return ask(record.id, (text) => {
      if (page !== asked || asked.rendered || recordShown()?.id !== record.id) return;
      if (text === undefined) asked.button.textContent = say("as_written_failed");
      else showWritten(text);
    });
  };
  watch(() => {
    const root = document.querySelector(".record--focus .content-area > .markdown-render"); // answers alone are Markdown
    if (page?.root === root && page?.button.isConnected) return;
    page = null;
    const title = root?.closest(".text_field_component")?.querySelector(".title-area");
    if (!title) return;
    title.querySelector(".citejury-written-button")?.remove();
    const button = element("button", { className: "citejury-written-button", type: "button" });
    button.title = say("as_written_key");
    button.setAttribute("aria-keyshortcuts", "w");
    button.addEventListener("mousedown", (event) => event.preventDefault()); // the question keeps the focus
    button.addEventListener("click", toggle);
    page = { root, button, rendered: null };
    press(false);
    title.firstElementChild.after(button);
  });
  onKey("w", toggle);

  // The text of what is seen: lines for blocks, the numbers of lists, tabs between cells.
  const textOf = (node, isWhole = true) => {
    const isCode = node.parentElement?.closest("pre");
    if (node.nodeType === Node.TEXT_NODE) return isCode ? node.data : node.data.replace(/\n/g, ""); // between blocks only
    if (node.localName === "br") return "\n";
    const inner = [...node.childNodes].map((child) => textOf(child)).join("");
    const marker = node.localName === "li" && isWhole ? (node.hasAttribute("value") ? `${node.value}. ` : "• ") : "";
    const cell = node.nextElementSibling && node.matches?.("td, th") ? "\t" : "";
    const end = node.matches?.("li, tr") ? "" : "\n";
    return node.matches?.(BLOCKS) ? `\n${marker}${inner.trim()}${end}` : inner + cell;
  };
  const selected = () => { // null where no part of a rendered answer is selected
    const range = getSelection().rangeCount ? getSelection().getRangeAt(0) : null;
    const holder = range?.commonAncestorContainer;
    if (!holder || range.collapsed || !page?.root.contains(holder) || page.rendered) return null;
    const part = range.cloneContents();
    part.querySelectorAll?.("button, .button").forEach((each) => each.remove());
    return [...part.childNodes].map((node, place) => textOf(node, place > 0 || !range.startOffset)).join("")
      .replace(/\n{3,}/g, "\n\n").replace(/^\n+|\n+$/g, "");
  };
  const seen = (text) => { // the page copies a field as it is stored
    const record = recordShown();
    if (!(record?.fields || []).some((field) => text.includes(field.content))) return text;
    const area = element("textarea");
    const decoded = (part) => part.replace(/&#?\w+;/g, (entity) => { area.innerHTML = entity; return area.value; });
    const stored = record.fields.find((field) => field.content.startsWith(RENDERED))?.content;
    if (!stored || !text.includes(stored)) return decoded(text);
    const answer = ask(record.id) ?? page?.root.innerText ?? "";
    return text.split(stored).map(decoded).join(answer);
  };
  const copy = (event) => {
    const { target } = event;
    const pages = target.localName === "textarea" && target.parentNode === document.body; // without a secure context
    const text = pages ? seen(target.value) : selected();
    if (text === null) return;
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  };
  document.addEventListener("copy", copy, true);
  const clipboard = window.Clipboard?.prototype;
  if (clipboard) {
    const { writeText } = clipboard;
    clipboard.writeText = function (text) { return writeText.call(this, seen(text)); };
  }
})();
