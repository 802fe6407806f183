// Asks an adjudicator for the labels on which annotators differ, and for no others, in the form of Argilla 2.8.0: its
// record has its own questions, by which the form, its keys and what it sends go.
(() => {
  "use strict";
  if (!window.citejury?.recordShown) return; // a script before this one did not come
  const { disputed, say, locale, element, form, recordShown, watch } = window.citejury;
  let hint;

  const wanted = () => recordShown()?.metadata?.[disputed];
  const isAsked = ({ name, isRequired }) => !isRequired || wanted().includes(name);
  const narrow = () => {
    const record = wanted()?.length && recordShown();
    if (!record?.questions || record.questions.every(isAsked) || !record.questions.some(isAsked)) return;
    if (record.original?.questions) record.original.questions = record.original.questions.filter(isAsked);
    record.questions = record.questions.filter(isAsked);
  };
  const tell = () => {
    const list = wanted()?.length && form()?.$el.querySelector(".questions");
    if (!list) { hint?.remove(); return; }
    if (!hint) hint = element("p", { id: "citejury-disputed" });
    const text = say("disputed_only");
    if (hint.textContent !== text) Object.assign(hint, { textContent: text, lang: locale() });
    if (hint.nextSibling !== list) list.before(hint);
  };
  watch(() => { narrow(); tell(); });
})();
