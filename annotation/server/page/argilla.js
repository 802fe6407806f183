// Words of Argilla's own page that contradict the rest of what annotators read (`[argilla]` in annotation/locales): its
// German calls what is submitted "gesichert", as if it were a draft, and a record by the same name as a dataset.
(() => {
  "use strict";
  if (!window.citejury?.watch) return; // a script before this one did not come
  const { argilla, watch } = window.citejury;
  const tree = (words) => {
    const root = {};
    Object.entries(words).forEach(([path, text]) => {
      const [last, ...others] = path.split(".").reverse();
      others.reverse().reduce((branch, key) => (branch[key] ??= {}), root)[last] = text;
    });
    return root;
  };
  const done = new Set();
  watch(() => { // Argilla loads a language when it is chosen
    const i18n = window.$nuxt?.$i18n;
    const language = i18n?.locale;
    if (!argilla[language] || done.has(language) || !i18n.te("recordStatus.submitted", language)) return;
    done.add(language);
    i18n.mergeLocaleMessage(language, tree(argilla[language]));
  });
})();
