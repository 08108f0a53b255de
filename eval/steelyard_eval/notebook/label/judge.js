// One pair at a time. Texts of the corpus are set as text, never as markup.

const QUIET = { "data-lm-suppress-shortcuts": "true" }; // JupyterLab takes the keys of anything else

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
    if (waiting) return; // a pair is graded by who has seen it
    waiting = ++sent;
    root.setAttribute("aria-busy", "true");
    model.send({ ...message, number: waiting });
  }

  function receive(found) {
    if (found.to !== waiting) return; // of another view
    waiting = 0;
    root.removeAttribute("aria-busy");
    shown = found.card;
    problem.textContent = found.error;
    counts.textContent = found.counts;
    root.dataset.given = found.given;
    sentence.textContent = [found.sentence, ...found.steps.map((step) => [step.what, step.command].filter(Boolean).join(": "))].join("\n");
    file.textContent = found.given ? `Saved in ${found.qrels}` : "";
    note.value = "";
    for (const node of [card, keys, note]) node.hidden = !shown;
    if (!shown) return;
    root.dataset.pair = JSON.stringify(shown.pair);
    query.textContent = shown.query;
    title.textContent = shown.title || "(no title)";
    facts.textContent = shown.facts;
    parts.replaceChildren(...shown.parts.flatMap(([name, text]) =>
      name === "text" ? [make("p", {}, text)] : [make("h5", {}, name), make("p", {}, text)]));
    keys.replaceChildren(...found.meaning.map((meaning, grade) =>
      make("button", { type: "button", ...QUIET, onclick: () => give(grade) }, make("kbd", {}, String(grade)), ` ${meaning}`)),
      make("button", { type: "button", ...QUIET, onclick: () => give(null) }, make("kbd", {}, "x"), " cannot say"),
      make("button", { type: "button", ...QUIET, onclick: nothing }, make("kbd", {}, "z"), " nothing answers this"),
      make("button", { type: "button", ...QUIET, onclick: skip }, make("kbd", {}, "s"), " skip"));
  }

  const give = (grade) => shown && ask({ do: "give", grade, note: note.value, pair: shown.pair });
  const skip = () => shown && ask({ do: "skip", pair: shown.pair });
  const nothing = () => shown && ask({ do: "nothing", pair: shown.pair });
  const undo = () => ask({ do: "undo" });

  function press(event) {
    event.stopPropagation();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === note) {
      if (event.key === "Enter" || event.key === "Escape") { event.preventDefault(); root.focus(); }
      return;
    }
    const actions = { u: undo, s: skip, z: nothing, x: () => give(null), n: () => note.focus() };
    const action = /^[0-3]$/.test(event.key) ? () => give(Number(event.key)) : actions[event.key];
    if (action && !event.repeat) { event.preventDefault(); action(); }
  }

  const query = make("p", { class: "syj-query" }), title = make("h4"), facts = make("p", { class: "syj-facts" });
  const parts = make("div", { class: "syj-parts" }), keys = make("div", { class: "syj-keys" });
  const note = make("input", { type: "text", "aria-label": "note on this pair", placeholder: "note (n)", ...QUIET });
  const counts = make("span", { role: "status" }), sentence = make("p", { class: "syj-sentence" });
  const file = make("p", { class: "syj-facts" }), problem = make("p", { role: "alert", class: "syj-problem" });
  const card = make("div", { class: "syj-card", "aria-live": "polite" },
    make("h5", {}, "Query"), query, make("h5", {}, "Entry"), title, facts, parts);
  const root = make("section", { class: "sy-judge", tabindex: "0", ...QUIET, onkeydown: press,
    "aria-label": "Judging: keys 0 to 3 grade the entry, x says that you cannot say, z that nothing answers the query, s skips, u undoes, n writes a note" },
  make("header", {}, counts, make("button", { type: "button", ...QUIET, onclick: undo }, make("kbd", {}, "u"), " undo")),
  problem, card, keys, note, sentence, file);

  model.on("msg:custom", receive);
  el.append(root);
  ask({ do: "open" });
  return () => model.off("msg:custom", receive);
}

export default { render };
