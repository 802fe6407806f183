// Tells assistive technology what Argilla 2.8.0's page is: names and roles that it lacks, and none that are wrong, such
// as a button around buttons. Each repair asks for what it has not yet repaired, so that running again costs little.
(() => {
  "use strict";
  if (!window.citejury?.openedName) return; // a script before this one did not come
  const { me, isAnnotator, opened, openedName, locale, say, element, watch } = window.citejury;
  const without = (...names) => (target) => names.forEach((name) => target.removeAttribute(name));
  const is = (attributes) => (target) => Object.entries(attributes)
    .forEach(([name, value]) => target.setAttribute(name, value));
  const namedBy = (find) => (target) => target.setAttribute("aria-label", find(target));

  const reachable = (target) => { // a link without an address takes no key by itself
    target.tabIndex = 0;
    target.addEventListener("keydown", (event) => {
      if (![" ", "Enter"].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation(); // Enter would submit the answers
      target.click();
    });
  };
  const textBox = (target) => {
    target.closest(".textarea")?.removeAttribute("role");
    is({ role: "textbox", "aria-multiline": true })(target);
    const title = target.closest(".wrapper")?.querySelector(".title-area span");
    if (title) target.setAttribute("aria-label", title.firstChild.textContent.trim());
  };
  const titled = (target) => { // owners see the name that commands take
    const textContent = isAnnotator() ? openedName() : opened().name;
    target.prepend(element("h1", { className: "citejury-unseen", textContent }));
  };
  const REPAIRS = [
    // Roles that promise what is not there.
    ["[role=button]:not(a, button)", without("role", "aria-haspopup")], // the button is in it
    [".annotation-type-switch [aria-selected]", without("aria-selected")],
    ["[aria-controls=dropdown-menu], [aria-controls=pagination]", without("aria-controls")],
    ["ul[role=navigation]", (target) => {
      target.removeAttribute("role");
      is({ role: "navigation" })(target.parentNode);
    }],
    ["input[role=search]", (target) => {
      is({ "aria-label": target.placeholder })(target);
      without("role", "aria-description")(target);
    }],
    ["li.status-counter:not([role])", is({ role: "presentation" })],
    [".team-progress__bar [role=progressbar]", without("role", "aria-valuenow", "aria-label")], // one in another
    ["[role=tooltip]", without("role")],
    ["span[aria-multiselectable]", without("aria-multiselectable")], // beside a text with marks
    // Names.
    ["button[data-title]:not([aria-label]):not(:has(span, p)):has(svg)", namedBy((target) => target.dataset.title)],
    [".panel__header[aria-label$=' Panel']", without("aria-label")], // what it says is its name
    [".panel__content:not([tabindex])", is({ tabindex: 0 })],
    ["[contenteditable]:not([role])", textBox],
    ["a[role=button]:not([href], [tabindex])", reachable],
    // Where things are.
    [".auth__form:not([role])", is({ role: "main" })],
    [".auth__info:not([role])", is({ role: "complementary", "aria-label": "Argilla" })],
    [".form__title:not([role])", is({ role: "heading", "aria-level": 2 })],
    [".text_field_component .title-area > span:first-child:not([role])", is({ role: "heading", "aria-level": 2 })],
  ];
  // Names in our words, which wait for the dataset: it says in which language.
  const NAMES = [
    ["[role=navigation]:not(ul)", "breadcrumbs"],
    [".panel__header:not(:has(p, span))", "guidelines"],
    [".user__button", "user_menu"],
  ];
  watch(() => {
    REPAIRS.forEach(([selector, repair]) => document.querySelectorAll(selector).forEach(repair));
    NAMES.forEach(([selector, key]) => document.querySelectorAll(selector).forEach(is({ "aria-label": say(key) })));
    const main = document.querySelector("[role=main]:not(:has(> h1))");
    if (main && me() && opened() && document.querySelector(".record__wrapper, .wrapper--empty")) titled(main);
    document.querySelectorAll(".annotation-guidelines:not([lang])").forEach((each) => { each.lang = locale(); });
  });
})();
