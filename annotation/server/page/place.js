// Where she is: the page's title and language say it, and an annotator does not get to what is not for her: Argilla's
// settings of datasets, its import, its list view, in which one key answers many records at once.
(() => {
  "use strict";
  if (!window.citejury?.isLoggedOut) return; // a script before this one did not come
  const { say, worded, locale, watch, dataset, me, isLoggedOut } = window.citejury;
  const BASE = new URL(".", document.baseURI).pathname;
  const FOR_ANNOTATORS = /^(?:sign-in|user-settings|oauth\/.*|welcome-hf-sign-in|dataset\/[^/]+\/annotation-mode)?\/?$/;
  const { documentElement: root } = document;
  const path = () => window.location.pathname.slice(BASE.length);
  const isHome = () => path().replace("/", "") === "";
  const isSignIn = () => /^sign-in\/?$/.test(path());
  const isAnnotator = () => me()?.role === "annotator";
  const opened = () => { // the dataset that is looked at
    const [, id] = path().match(/^dataset\/([^/]+)/) || [];
    return id && dataset()?.id === id ? dataset() : null;
  };
  // A list of records in words, with its language where that is another one.
  const nameOf = ({ task, round, name, locale: own, title, task_file: file }, language = locale()) => {
    if (!task) return name;
    const other = worded(own) === language ? "" : ` (${new Intl.DisplayNames(language, { type: "language" }).of(own)})`;
    const rounds = {
      production: "", calibration: "round_calibration", practice: "round_practice", adjudication: "round_adjudication" };
    const key = rounds[round] ?? (/^suggested(?:-|$)/.test(round) ? "round_suggested" : null);
    const words = key === null ? round : key && say(key, {}, language);
    const called = title || file?.wording[own]?.title || say(`task_${task}`, {}, language);
    return [called, words].filter(Boolean).join(" – ") + other;
  };
  const openedName = () => {
    const { name, metadata } = opened() || {};
    return name && nameOf({ name, ...(metadata?.schema_hash ? metadata : {}) });
  };
  const placeName = () => {
    if (openedName()) return openedName();
    if (isSignIn()) return say("log_in_title");
    if (/^user-settings/.test(path())) return say("settings_title");
    return isHome() && isAnnotator() ? say("home_title", {}, window.citejury.homeLanguage?.()) : "";
  };
  const language = () => (opened() ? worded(opened().metadata?.locale)
    : isHome() && isAnnotator() ? window.citejury.homeLanguage?.() : window.$nuxt?.$i18n?.locale);

  const leaveList = () => { // as Argilla's own button for it does
    const bulk = document.querySelector(".bulk__container")?.__vue__;
    if (!bulk?.recordCriteria?.page.isBulkMode) return;
    bulk.recordCriteria.page.focusMode();
    bulk.$root.$emit("on-change-record-criteria-filter", bulk.recordCriteria);
  };
  const nameBreadcrumb = () => { // Argilla's text node stays, and Vue writes into it only where its own text changes
    const name = opened()?.name;
    const last = document.querySelector(".breadcrumbs li:last-child .breadcrumbs__item")?.firstChild;
    if (name && last?.data?.trim() === name && name !== openedName()) last.data = openedName();
  };
  let left = null;
  const leave = () => {
    if (left === window.location.href) return; // it is under way
    left = window.location.href;
    if (window.$nuxt?.$router) window.$nuxt.$router.replace("/"); else window.location.replace(BASE);
  };
  watch(() => {
    const closed = !FOR_ANNOTATORS.test(path());
    root.classList.toggle("citejury-annotator", isAnnotator());
    root.classList.toggle("citejury-home", isHome() && !isLoggedOut() && (!me() || isAnnotator()));
    root.classList.toggle("citejury-closed", closed && !isLoggedOut() && (!me() || isAnnotator()));
    if (isAnnotator() && closed) leave(); else left = null;
    if (isAnnotator()) leaveList();
    if (isAnnotator()) nameBreadcrumb();
    const title = [placeName(), "citejury"].filter(Boolean).join(" · ").replace(/\s+/g, " ").trim(); // as browsers do
    if (document.title !== title) document.title = title;
    const spoken = language();
    if (spoken && root.lang !== spoken) root.lang = spoken;
  });
  Object.assign(window.citejury, { isHome, isAnnotator, opened, openedName, nameOf });
})();
