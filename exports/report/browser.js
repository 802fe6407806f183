"use strict";
(() => {
  // Paper shows what is a click away on the screen; the style does so too, where a browser knows how.
  const opened = [];
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details:not([open], .long)").forEach((part) => { part.open = true; opened.push(part); });
  });
  window.addEventListener("afterprint", () => opened.splice(0).forEach((part) => { part.open = false; }));

  const form = document.getElementById("filters");
  const list = document.getElementById("entries");
  if (!form || !list) return;
  const count = document.getElementById("count");
  const entries = [...list.children].map((item) => ({ item, words: item.textContent.toLowerCase() }));
  const choices = ["task", "label", "raters", "pattern", "language"];

  const fits = (entry) =>
    choices.every((name) => {
      const field = form.elements.namedItem(name);
      if (!field || field.value === "") return true;
      const found = JSON.parse(entry.item.dataset[name]);
      const wanted = JSON.parse(field.value);
      return Array.isArray(found) ? found.includes(wanted) : found === wanted;
    }) && entry.words.includes(form.elements.namedItem("words").value.trim().toLowerCase());

  const apply = () => {
    const order = form.elements.namedItem("order").value;
    const shown = entries.filter((entry) => {
      entry.item.hidden = !fits(entry);
      return !entry.item.hidden;
    });
    const sorted = [...entries].sort((a, b) => b.item.dataset[order] - a.item.dataset[order]);
    list.append(...sorted.map((entry) => entry.item));
    count.textContent = `${shown.length} of ${entries.length} shown`;
  };

  form.addEventListener("input", apply);
  form.addEventListener("change", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  apply();
})();
