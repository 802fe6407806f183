// What the log-in page says to who must wait: Argilla 2.8.0 shows the text of an error there, "… status code 429".
(() => {
  "use strict";
  if (!window.citejury?.watch) return; // a script before this one did not come
  const { say, watch } = window.citejury;
  const reword = (text) => { if (/\b429\b/.test(text?.data)) text.data = say("too_many_passwords"); };
  const texts = new MutationObserver((changes) => changes.forEach(({ target }) => reword(target)));
  watch(() => { // the page writes each new text into the same node
    const text = document.querySelector(".login__form .form__error")?.firstChild;
    if (!text) return;
    reword(text);
    texts.observe(text, { characterData: true });
  });
})();
