// Helps an annotator with the form of Argilla 2.8.0: it tells what keep.js has yet to send and what drafts.js keeps,
// points at broken rules, asks why she discards, and copies what is seen. Nothing is kept or sent by it alone.
(() => {
  "use strict";
  if (!window.citejury?.toldNow) return; // a script before this one did not come
  const { rules, task, locale, say, element, isTyping } = window.citejury;
  const { user, forget, unsaved, form, recordShown, isLoggedOut, isClosed, staleness } = window.citejury;
  const { valuesOf, toldNow, correctionsElsewhere, goTo, withReason } = window.citejury;
  const SECOND = 1000;
  const BUTTONS = { expired: "log_in", refused: "give_up", corrections: "go_there", not_loaded: "try_again" };
  let bar, hint, unsaid; // the last is the reason that she began to write before she stayed, and what it made of the notes
  const write = (box, text) => { if (box.textContent !== text) box.textContent = text; box.hidden = !text; };

  const warn = () => {
    const [record, footer] = [recordShown(), document.querySelector("form.questions-form .footer-form")];
    if (!record || !footer) return;
    const values = valuesOf(record);
    const given = (name, wanted, missing) => {
      const value = values[name]?.value;
      return value === undefined || value === null ? missing : wanted.includes(String(value));
    };
    const own = task();
    const broken = (own?.rules || rules).filter((rule) => Object.entries(rule.if).every(([name, wanted]) => given(name, wanted, false))
      && Object.entries(rule.then).some(([name, wanted]) => !given(name, wanted, true)));
    if (!hint) (hint = element("p", { id: "citejury-hint" })).setAttribute("role", "status");
    hint.lang = locale();
    if (hint.nextSibling !== footer) footer.before(hint);
    write(hint, broken.map(({ name }) => (own ? own.words.rules[name] : say(name))).join("\n"));
  };
  const askWhy = (event) => {
    const [page, notes] = [form(), recordShown()?.questions?.find((each) => each.name === "notes")];
    if (!notes || typeof page.onDiscard !== "function" || page.record.status === "discarded") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const dialog = element("dialog", { id: "citejury-dialog" });
    dialog.lang = locale();
    dialog.setAttribute("aria-labelledby", "citejury-why");
    dialog.innerHTML = "<form method=dialog><p id=citejury-why role=alert></p>"
      + "<textarea rows=3 aria-labelledby=citejury-why></textarea><button value=discard></button> "
      + "<button value=stay></button></form>";
    const [question, reason, ...buttons] = dialog.querySelectorAll("p, textarea, button");
    question.textContent = say("discard_why");
    const [{ id }, written] = [page.record, notes.answer.value || ""];
    const before = unsaid?.id === id ? unsaid : null;
    const note = before?.text === written ? before.note : written; // a discard that failed has left its reason there
    reason.value = before?.reason || "";
    ["discard", "stay"].forEach((name, place) => { buttons[place].textContent = say(name); });
    dialog.addEventListener("keydown", (key) => {
      key.stopPropagation(); // the page has shortcuts of its own
      if (key.key !== "Enter" || key.target !== reason || key.isComposing) return;
      key.preventDefault();
      if (!key.repeat) dialog.firstChild.requestSubmit(buttons[0]); // a key held down is no second thought
    });
    dialog.firstChild.addEventListener("submit", (choice) => {
      const unasked = question.textContent === say("discard_why");
      if (choice.submitter.value !== "discard" || reason.value.trim() || !unasked) return;
      choice.preventDefault();
      question.textContent = say("discard_again");
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      unsaid = { ...before, id, reason: reason.value };
      if (dialog.returnValue !== "discard") return;
      notes.answer.value = withReason(id, note, reason.value.trim());
      Object.assign(unsaid, { note, text: notes.answer.value });
      page.onDiscard();
    });
    document.body.append(dialog);
    dialog.showModal();
    reason.focus();
  };
  const notice = (entries) => {
    if (!bar) {
      bar = element("div", { id: "citejury-notice" });
      bar.append(element("span"), element("button"));
      bar.setAttribute("role", "status");
      bar.lastChild.addEventListener("click", () => act(bar.lastChild.name));
    }
    if (!bar.isConnected) document.body.append(bar);
    bar.lang = locale();
    const refused = entries.filter((entry) => entry.refused).length;
    const changed = correctionsElsewhere();
    const waiting = isClosed() && !isLoggedOut() ? "closed"
      : entries.length ? (isLoggedOut() ? "expired" : refused ? "refused" : "unsaved") : "";
    const isBlank = /\/annotation-mode\/?$/.test(window.location.pathname) && !recordShown()
      && !document.querySelector(".wrapper--empty") && staleness() === "offline"; // the page says nothing of it
    const state = waiting || (isBlank ? "not_loaded" : "") || toldNow() || (changed.length ? "corrections" : "");
    const n = refused || entries.length || changed.length;
    write(bar.firstChild, state ? say(state, { n, text: changed.at(-1)?.text }) : "");
    bar.lastChild.name = BUTTONS[state] || "";
    write(bar.lastChild, bar.lastChild.name && user() ? say(bar.lastChild.name) : "");
    bar.className = state;
    bar.hidden = !bar.firstChild.textContent;
  };
  const act = (name) => {
    const refused = () => unsaved().filter((entry) => entry.refused);
    if (name === "give_up" && window.confirm(say("give_up_sure"))) refused().forEach(forget);
    if (name === "go_there") correctionsElsewhere().slice(-1).forEach(goTo);
    if (name === "try_again") window.location.reload();
    if (name === "log_in") { window.citejury.leaving = true; window.location.reload(); }
  };
  const tick = () => {
    if (!document.body) return;
    const isAsked = document.getElementById("citejury-conflict"); // which says what is to be done
    notice(unsaved().filter(({ newer }) => !(newer && isAsked)));
    warn();
  };
  setInterval(tick, SECOND / 2);

  const listen = (target, names, handler) => names.forEach((name) => target.addEventListener(name, handler, true));
  listen(document, ["input", "change"], () => setTimeout(warn));
  listen(window, ["pagehide", "visibilitychange"], tick);
  listen(window, ["keydown"], (event) => {
    const hers = isTyping(event) || event.target.closest?.("dialog");
    if (event.code === "Backspace" && !event.shiftKey && !hers) askWhy(event);
  });
  listen(document, ["click"], (event) => { if (event.target.closest?.(".button--discard") && form()) askWhy(event); });
})();
