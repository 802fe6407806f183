// Argilla's own page in the language of the list that is open, whatever the browser's, and its words that contradict the
// rest of what annotators read (`[argilla]` in annotation/locales): its German calls what is submitted "gesichert", as if
// it were a draft, and a record by the same name as a dataset.
(() => {
  "use strict";
  if (!window.citejury?.watch) return; // a script before this one did not come
  const { argilla, watch, worded } = window.citejury;
  const LAST = "citejury-language"; // for pages that are of no list
  const tree = (words) => {
    const root = {};
    Object.entries(words).forEach(([path, text]) => {
      const [last, ...others] = path.split(".").reverse();
      others.reverse().reduce((branch, key) => (branch[key] ??= {}), root)[last] = text;
    });
    return root;
  };
  const done = new Set();
  let chosen = null;
  const choose = (i18n) => {
    const { isAnnotator, isHome, opened, homeLanguage } = window.citejury;
    if (!isAnnotator?.()) return;
    const ofPlace = opened() ? worded(opened().metadata?.locale) : isHome() && homeLanguage?.();
    const wanted = ofPlace || localStorage.getItem(LAST);
    if (ofPlace) localStorage.setItem(LAST, ofPlace);
    if (!wanted || wanted === i18n.locale) { chosen = null; return; }
    if (wanted === chosen || !i18n.locales?.some(({ code }) => code === wanted)) return;
    chosen = wanted; // it is on its way
    i18n.setLocale(wanted);
  };
  const rename = (i18n) => { // what Argilla words once, as it makes the list of states
    const list = document.querySelector(".filter-status");
    let vm = list?.__vue__;
    while (vm && !(vm.options?.[0]?.id && vm.options[0].name)) vm = vm.$parent;
    vm?.options.forEach((each) => { each.name = i18n.tc(`recordStatus.${each.id}`, 1); });
    const total = document.querySelector(".pagination__info [aria-label='Total Records']")?.firstChild;
    if (/^\s*of\b/.test(total?.data) && i18n.t("of") !== "of") total.data = total.data.replace("of", i18n.t("of"));
  };
  watch(() => { // Argilla loads a language when it is chosen
    const i18n = window.$nuxt?.$i18n;
    if (i18n) choose(i18n);
    if (i18n && window.citejury.isAnnotator?.()) rename(i18n);
    const language = i18n?.locale;
    if (!argilla[language] || done.has(language) || !i18n.te("recordStatus.submitted", language)) return;
    done.add(language);
    i18n.mergeLocaleMessage(language, tree(argilla[language]));
  });
})();
