// A query and what was found for it. Texts of the corpus are set as text, never as markup.

const QUIET = { "data-lm-suppress-shortcuts": "true" }; // JupyterLab takes the keys of anything else
const AUTO = { dir: "auto" }; // by the first letter of a text
const ARROWS = { ArrowDown: "j", ArrowUp: "k", ArrowRight: "l", ArrowLeft: "h" };

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function render({ model, el }) {
  let shown = null, waiting = 0, sent = 0;

  function ask(message) {
    if (waiting) return; // an entry is graded by who has seen it
    waiting = ++sent;
    root.setAttribute("aria-busy", "true");
    model.send({ ...message, note: note.value, pair: shown ? shown.pair : [], number: waiting });
  }

  function receive(found) {
    if (found.to !== waiting) return; // of another view
    waiting = 0;
    root.removeAttribute("aria-busy");
    if (root.dataset.pair !== JSON.stringify(found.card && found.card.pair)) note.value = "";
    shown = found.card;
    message.textContent = found.message;
    root.dataset.given = found.given;
    counts.textContent = shown ? found.progress : found.counts;
    sentence.textContent = shown ? "" : [found.sentence, ...found.steps.map((step) => [step.what, step.command].filter(Boolean).join(": "))].join("\n");
    file.textContent = found.given ? `Saved in ${found.qrels}` : "";
    for (const node of [query, list, keys, note]) node.hidden = !shown;
    if (!shown) return;
    root.dataset.pair = JSON.stringify(shown.pair);
    query.textContent = shown.query;
    card.replaceChildren(make("p", { class: "syj-facts" }, shown.facts), ...shown.parts.flatMap(([name, text]) =>
      name === "text" ? [make("p", AUTO, text)] : [make("h5", {}, name), make("p", AUTO, text)]));
    list.replaceChildren(...found.rows.map((row, at) => at === found.at
      ? make("li", { "aria-current": "true" }, make("kbd", {}, row.mark || "–"), make("b", AUTO, row.title), card)
      : make("li", { onclick: () => ask({ do: "go", at }) }, make("kbd", {}, row.mark || "–"), make("b", AUTO, row.title), make("span", AUTO, row.text))));
    list.querySelector("[aria-current]").scrollIntoView({ block: "nearest" });
    keys.replaceChildren(...found.meaning.map((meaning, grade) => button(String(grade), meaning)),
      button("x", "cannot say"), button("z", "nothing answers this"), button("h", "query before"), button("l", "next query"));
  }

  const button = (key, meaning) =>
    make("button", { type: "button", ...QUIET, onclick: () => ask({ do: key }) }, make("kbd", {}, key), ` ${meaning}`);

  function press(event) {
    event.stopPropagation();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === note) {
      if (event.key === "Enter" || event.key === "Escape") { event.preventDefault(); root.focus(); }
      return;
    }
    const key = ARROWS[event.key] || event.key;
    if (!/^[0-3jkhlxzun]$/.test(key)) return;
    event.preventDefault();
    if (key === "n") note.focus();
    else if (!event.repeat || "jk".includes(key)) ask({ do: key });
  }

  const query = make("p", { class: "syj-query", ...AUTO }), list = make("ol", { class: "syj-list", tabindex: "0", "aria-label": "what was found", ...QUIET });
  const card = make("div", { class: "syj-card", "aria-live": "polite" }), keys = make("div", { class: "syj-keys" });
  const note = make("input", { type: "text", "aria-label": "note on this entry", placeholder: "note (n)", ...AUTO, ...QUIET });
  const counts = make("span", { role: "status" }), sentence = make("p", { class: "syj-sentence" });
  const file = make("p", { class: "syj-facts" }), message = make("p", { role: "alert", class: "syj-message" });
  const root = make("section", { class: "sy-judge", tabindex: "0", ...QUIET, onkeydown: press,
    "aria-label": "Judging: j and k move among the entries, h and l among the queries, 0 to 3 grade the entry, x says that you cannot say, z that nothing answers the query, u undoes, n writes a note" },
  make("header", {}, counts, button("u", "undo")), query, list, message, keys, note, sentence, file);

  model.on("msg:custom", receive);
  el.append(root);
  ask({ do: "open" });
  return () => model.off("msg:custom", receive);
}

export default { render };
