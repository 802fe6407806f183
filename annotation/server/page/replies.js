// Shows what the project lead says about a record: to who asked, and to everybody where it is for all. On the start
// page it says where something has come that she has not seen in this browser. All texts are text, never markup.
(() => {
  "use strict";
  if (!window.citejury?.ask) return; // a script before this one did not come
  const { say, locale, element, watch, ask, form, recordShown, isHome, isAnnotator, homeLanguage } = window.citejury;
  const SEEN = "citejury:replies"; // in this browser
  const MOST = 20;
  let shown = null; // the record whose replies are shown or asked for
  let box = null, home = null; // home is the heading of the start page that replies were looked for under

  const digest = ({ question, text }) => JSON.stringify([question, text]);
  const seen = () => { try { return JSON.parse(localStorage.getItem(SEEN)) || []; } catch { return []; } };
  const see = (replies) => {
    const all = new Set([...seen(), ...replies.map(digest)]);
    try { localStorage.setItem(SEEN, JSON.stringify([...all].slice(-500))); } catch { /* a browser may forbid it */ }
  };
  const paragraph = (className, textContent) => element("p", { className, textContent, dir: "auto" });

  const place = (replies) => {
    const list = form()?.$el.querySelector(".questions");
    if (!replies.length || !list) return;
    box = element("section", { className: "citejury-replies", lang: locale() });
    box.setAttribute("aria-label", say("replies_title"));
    box.append(paragraph("citejury-replies-title", say("replies_title")));
    replies.forEach(({ question, text }) => {
      if (question) box.append(paragraph("citejury-replies-question", say("replies_asked", { text: question.trim() })));
      box.append(paragraph("citejury-replies-text", text));
    });
    list.before(box);
    see(replies);
  };
  watch(() => {
    const [record, page] = [recordShown(), form()];
    if (!record?.id || !page) { shown = null; box?.remove(); box = null; return; } // an empty queue has a form too
    if (shown === page.$el) return;
    shown = page.$el;
    box?.remove();
    box = null;
    const asked = shown;
    ask(`records/${record.id}/replies`).then(({ replies }) => { if (shown === asked) place(replies); }, () => {});
  });

  const showNews = async (heading) => {
    const known = new Set(seen());
    const { replies } = await ask("me/replies");
    const news = replies.filter((reply) => !known.has(digest(reply)));
    if (!heading.isConnected || !news.length) return;
    const spoken = homeLanguage();
    const section = element("section", { className: "citejury-replies", lang: spoken });
    const list = element("ul");
    news.slice(-MOST).forEach(({ dataset_id: id, record, question }) => {
      const path = `dataset/${id}/annotation-mode?record=${encodeURIComponent(record)}`;
      const [text, href] = [say("replies_open", { text: question.trim() }, spoken), new URL(path, document.baseURI).href];
      const item = element("li", { dir: "auto" });
      item.append(element("a", { textContent: text, href })); // loaded anew, because record.js reads such an address
      list.append(item);
    });
    section.append(element("h2", { textContent: say("replies_home", {}, spoken) }), list);
    heading.after(section);
  };
  watch(() => {
    const heading = isHome() && isAnnotator() ? document.querySelector("#citejury-home > h1") : null;
    if (!heading || heading === home) return; // home.js makes another one whenever it shows her lists anew
    home = heading;
    showNews(heading).catch(() => {}); // her lists are what she came for
  });
})();
