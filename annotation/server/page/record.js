// Shows the record that the address names, as links in reports do, and after a reload the one that was being answered:
// Argilla's page knows no record's address. The server finds a record by its whole id in a search for it, whatever has
// become of it. Runs before Argilla reads the address.
(() => {
  "use strict";
  const { pathname, searchParams } = new URL(window.location.href);
  const [, dataset] = pathname.match(/\/dataset\/([^/]+)\/annotation-mode\/?$/) || [];
  // A reload comes back to what she had begun in this tab: drafts.js knows it. It is in no queue any more, as a draft.
  const begun = () => {
    const isReload = performance.getEntriesByType("navigation")[0]?.type === "reload";
    if (!isReload || searchParams.get("status") !== "pending" || searchParams.get("search")) return null;
    try { return JSON.parse(sessionStorage.getItem("citejury-open")); } catch { return null; }
  };
  const open = begun();
  const record = searchParams.get("record") || (open?.dataset === dataset && open?.record);
  const id = record || /^([0-9a-f-]{36})~all$/.exec(searchParams.get("search"))?.[1];
  if (id) window.citejury?.watch(() => { // the search box is for words, and its × still ends the search
    const box = document.querySelector(".search-area")?.__vue__;
    if (box?.searchValue === id && box.value.isCompleted) box.searchValue = "";
  });
  if (!record || !dataset) return;
  // Argilla decodes it twice, takes a single underscore for a blank, and what follows the last tilde for a field.
  const search = `${encodeURIComponent(record).replaceAll("_", "%5F")}~all`;
  if (!searchParams.get("record")) sessionStorage.setItem("citejury-resumed", search);
  window.history.replaceState(null, "", `${pathname}?${new URLSearchParams({ page: 1, status: "pending", search })}`);
})();
