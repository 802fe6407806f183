// Shows the record that the address names, as links in reports do: Argilla's page knows no record's address. The server
// finds a record by its whole id in a search for it, whatever has become of it. Runs before Argilla reads the address.
(() => {
  "use strict";
  const { pathname, searchParams } = new URL(window.location.href);
  const record = searchParams.get("record");
  if (!record || !/\/dataset\/[^/]+\/annotation-mode\/?$/.test(pathname)) return;
  // Argilla decodes it twice, takes a single underscore for a blank, and what follows the last tilde for a field.
  const search = `${encodeURIComponent(record).replaceAll("_", "%5F")}~all`;
  window.history.replaceState(null, "", `${pathname}?${new URLSearchParams({ page: 1, status: "pending", search })}`);
})();
