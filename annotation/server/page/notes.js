// Puts what is typed into the notes, in the form of Argilla 2.8.0: after the last answer it shows the ring around them and
// gives the focus to what is around their text, where letters are shortcuts and Enter sends the record without them.
(() => {
  "use strict";
  if (!window.citejury?.form) return; // a script before this one did not come
  const { form, isLoggedOut } = window.citejury;
  let fresh = null; // the text that the focus came to by itself, as long as nothing is typed in it
  let left = false; // whether a text has just been left by Escape

  const textOf = (container) => container.querySelector?.("[contenteditable=true]");
  const begin = (text) => {
    text.focus();
    const end = new Range();
    end.selectNodeContents(text);
    end.collapse(false);
    getSelection().removeAllRanges();
    getSelection().addRange(end);
    fresh = text;
  };
  const leave = () => { // to the buttons, which take Enter and Backspace as the page does
    const footer = document.querySelector("form.questions-form .footer-form");
    if (!footer) return;
    footer.tabIndex = -1;
    footer.focus({ preventScroll: true });
  };
  window.addEventListener("focusin", ({ target }) => {
    if (target !== fresh) fresh = null;
    const text = target.matches("form.questions-form .questions .container[tabindex]") && textOf(target);
    if (!text) return;
    const wasLeft = left;
    left = false;
    queueMicrotask(() => (wasLeft ? leave() : begin(text))); // once Argilla is done with the focus
  });
  ["input", "compositionstart", "pointerdown"].forEach((name) => window.addEventListener(name, () => { fresh = null; }, true));

  const move = (by) => form().updateQuestionAutofocus(form().autofocusPosition + by);
  const KEYS = { Enter: () => form().onSubmit(), ArrowUp: () => move(-1), ArrowDown: () => move(1) };
  window.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || !form()) return;
    left = key === "Escape" && target.isContentEditable;
    const isFooter = target.matches(".footer-form");
    if (isFooter && key === "ArrowUp") document.querySelector("form.questions-form .questions > div:last-child [tabindex], form.questions-form .questions > div:last-child input")?.focus();
    // Argilla goes by `code` and does not know the number block's Enter.
    const isOther = event.code === "NumpadEnter" && target.closest("form.questions-form") && !target.closest("a, button, summary, textarea, [contenteditable=true]");
    if ((target !== fresh && !isOther) || !KEYS[key] || isLoggedOut()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!event.repeat) KEYS[key]();
  }, true);
})();
