// Draws what Python measures. Texts of the corpus are set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const QUIET = { "data-lm-suppress-shortcuts": "true" }; // JupyterLab takes the keys of anything else
const CURVE_AFTER = 90; // milliseconds without a move

function make(name, attributes = {}, ...children) {
  const drawn = ["svg", "path", "rect", "line", "circle", "title", "g", "text"].includes(name);
  const node = drawn ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const number = (value, digits = 4) => value.toFixed(digits);
const signed = (value, digits = 4) => (value < -0.5 * 10 ** -digits ? "-" : "+") + Math.abs(value).toFixed(digits);
const difference = (gain, low, high) => signed(gain) + (low === null ? "" : ` [${signed(low)}, ${signed(high)}]`);
const percent = (value, low, high) => (100 * (value - low)) / (high - low || 1);

/** Sends one message at a time; of moves that wait, the last one of each kind goes. */
function talk(model, receive) {
  const waiting = new Map();
  let sent = 0, open = false;
  const next = () => {
    if (open || !waiting.size) return;
    const [key, message] = waiting.entries().next().value;
    waiting.delete(key);
    open = true;
    model.send({ ...message, number: ++sent });
  };
  const answer = (message) => {
    if (message.to !== sent) return; // of another view
    open = false;
    receive(message);
    next();
  };
  model.on("msg:custom", answer);
  return {
    ask(message, key = message.do) { waiting.set(key, message); next(); },
    idle: () => !open && !waiting.size,
    close: () => model.off("msg:custom", answer),
  };
}

function render({ model, el }) {
  const parts = {};
  let controls = null, result = null, begun = 0, started = 0, timer = 0;
  const line = talk(model, receive);

  function receive(message) {
    if (!message.curve) parts.problem.textContent = message.error || "";
    if (message.controls) build((controls = message.controls));
    if (message.result) show((result = message.result));
    if (message.ranking) list(message.ranking);
    if (message.curve) curve(message.curve);
    if (message.adopted) parts.problem.textContent = `Written to ${message.adopted}, marked as chosen by hand.`;
    if (message.result && begun) clock("times", (started = begun));
    if (message.result) { begun = 0; later(); }
  }

  /** How long it took from the key to the picture, for whoever asks: the last times stand on the root. */
  function clock(name, from) {
    requestAnimationFrame(() => setTimeout(() => {
      const times = (root.dataset[name] || "").split(" ").filter(Boolean);
      root.dataset[name] = [...times, (performance.now() - from).toFixed(1)].slice(-500).join(" ");
    }));
  }

  /** The curves follow one by one, so that a move in between waits for one of them at most. */
  function later() {
    clearTimeout(timer);
    if (!controls.curves) return;
    timer = setTimeout(() => {
      if (!line.idle()) return later();
      root.dataset.curves = "0";
      controls.weights.forEach((_, at) => line.ask({ do: "curve", at }, `curve ${at}`));
    }, CURVE_AFTER);
  }

  function move(at, value) {
    begun = begun || performance.now();
    root.dataset.curves = "0";
    parts.sliders[at].number.value = value;
    parts.sliders[at].range.setAttribute("aria-valuetext", `${value}`);
    line.ask({ do: "weigh", at, value }, `weigh ${at}`);
  }

  // Controls

  function build({ weights, top, step, systems, system }) {
    parts.system.replaceChildren(...systems.map((name) => make("option", { selected: name === system }, name)));
    parts.sliders = weights.map((name, at) => slider(name, at, top, step));
    parts.weights.replaceChildren(...parts.sliders.map((own) => own.row));
    parts.metric.textContent = controls.metric;
    parts.about.replaceChildren(make("bdi", {}, controls.dataset), `: ${controls.queries} queries to choose on`
      + (controls.held_out ? `, ${controls.held_out} held out` : ""));
  }

  function slider(name, at, top, step) {
    const range = make("input", {
      type: "range", min: 0, max: top, step, "aria-label": `weight of ${name}`, ...QUIET,
      oninput: (event) => move(at, Number(event.target.value)),
    });
    const field = make("input", {
      type: "number", min: 0, max: top, step: "any", "aria-label": `weight of ${name}, as a number`, ...QUIET,
      onchange: (event) => move(at, Math.min(top, Math.max(0, Number(event.target.value) || 0))),
    });
    const plot = make("svg", { class: "sy-curve", viewBox: "0 0 320 48", preserveAspectRatio: "none", role: "img" });
    const note = make("span", { class: "sy-note" });
    const row = make("div", { class: "sy-weight" },
      make("div", { class: "sy-head" }, make("span", { class: "sy-name", title: name }, name), field), plot, range, note);
    return { row, range, number: field, plot, note };
  }

  function curve({ at, points, here, best }) {
    const own = parts.sliders[at];
    if (!points.length) return;
    const heights = points.map((point) => point[1]);
    const low = Math.min(...heights), high = Math.max(...heights);
    const x = (value) => (320 * value) / controls.top;
    const y = (value) => 44 - (40 * (value - low)) / (high - low || 1);
    const path = points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
    const band = (ends, name) => make("rect", {
      class: name, x: x(ends[0]), width: Math.max(1.5, x(ends[1]) - x(ends[0])), y: 0, height: 48,
    });
    own.plot.replaceChildren(
      band(best, "sy-best"), band(here, "sy-here"), make("path", { class: "sy-line", d: path }),
      make("line", { class: "sy-at", x1: x(result.weights[at]), x2: x(result.weights[at]), y1: 0, y2: 48 }));
    const span = (ends, between) => [...new Set(ends.slice(0, 2).map((end) => number(end, 3)))].join(between);
    const flat = span(here, " to ");
    const words = `best ${number(best[2])} at ${span(best, "–")}; `
      + (flat.includes(" ") ? `unchanged from ${flat}` : "any step may change it");
    own.plot.setAttribute("aria-label", `${controls.metric} along the weight of ${controls.weights[at]}: ${words}`);
    own.note.textContent = words;
    root.dataset.curves = String(Number(root.dataset.curves || 0) + 1);
    if (started && root.dataset.curves === String(controls.weights.length)) clock("curveTimes", started);
  }

  // Results

  function show(found) {
    parts.strategy.value = found.strategy;
    found.weights.forEach((value, at) => {
      const own = parts.sliders[at];
      if (Number(own.range.value) !== value && line.idle()) own.range.value = value;
      const mark = own.plot.querySelector(".sy-at");
      if (mark) for (const end of ["x1", "x2"]) mark.setAttribute(end, (320 * value) / controls.top);
      if (document.activeElement !== own.number && line.idle()) own.number.value = Number(value.toFixed(4));
    });
    const [gain, low, high] = found.gain;
    parts.mean.textContent = number(found.mean);
    parts.mean.dataset.value = found.mean;
    parts.interval.textContent = found.low === null ? "" : `[${number(found.low)}, ${number(found.high)}]`;
    parts.gain.textContent = `${difference(gain, low, high)} against ${found.against} (${number(found.base)})`;
    parts.counts.textContent = `${found.wins} queries better, ${found.losses} worse, `
      + `${controls.queries - found.wins - found.losses} equal`;
    parts.beam.replaceChildren(...interval(gain, low ?? gain, high ?? gain));
    parts.beam.setAttribute("aria-label", `difference ${parts.gain.textContent}`);
    parts.status.textContent = `${controls.metric} ${number(found.mean, 3)}, ${signed(gain, 3)}`;
    parts.bars.replaceChildren(...found.categories.map(category));
    parts.strip.replaceChildren(...strip(found.differences));
    parts.strip.setAttribute("aria-label", `differences per query, sorted: ${parts.counts.textContent}`);
    const nobody = (rows) => (rows.length ? [] : [make("li", { class: "sy-none" }, "no query")]);
    parts.worst.replaceChildren(...nobody(found.worst), ...found.worst.map(chooser));
    parts.best.replaceChildren(...nobody(found.best), ...found.best.map(chooser));
  }

  function interval(mean, low, high) {
    const reach = Math.max(0.02, Math.abs(low), Math.abs(high)) * 1.1;
    const x = (value) => 160 + (155 * value) / reach;
    return [
      make("line", { class: "sy-zero", x1: 160, x2: 160, y1: 0, y2: 20 }),
      make("line", { class: "sy-reach", x1: x(low), x2: x(high), y1: 10, y2: 10 }),
      make("circle", { class: "sy-dot", cx: x(mean), cy: 10, r: 4.5 }),
    ];
  }

  function category([name, count, mean, base]) {
    const words = `${number(mean, 3)} now, ${number(base, 3)} before`;
    return make("div", { class: "sy-category", title: `${count} queries: ${words}` },
      make("span", { dir: "auto", class: "sy-name" }, `${name} (${count})`),
      make("span", { class: "sy-track", role: "img", "aria-label": `${name}: ${words}` },
        make("i", { style: `width:${100 * mean}%` }), make("b", { style: `left:${100 * base}%` })),
      make("span", { class: "sy-figure" }, signed(mean - base, 3)));
  }

  function strip(values) {
    const most = Math.max(0.05, ...values.map(Math.abs)), width = 320 / values.length;
    const bars = (chosen) => values.map((value, at) => chosen(value)
      ? `M${(at * width).toFixed(2)} 30h${width.toFixed(2)}v${((-28 * value) / most).toFixed(1)}h${(-width).toFixed(2)}z` : "").join("");
    return [
      make("path", { class: "sy-loss", d: bars((value) => value < 0) }),
      make("path", { class: "sy-win", d: bars((value) => value > 0) }),
      make("line", { class: "sy-zero", x1: 0, x2: 320, y1: 30, y2: 30 }),
    ];
  }

  function chooser({ at, id, text, difference }) {
    return make("li", {}, make("button", {
      type: "button", ...QUIET, title: text, onclick: () => line.ask({ do: "look", at }, "look"),
    }, make("span", { class: "sy-figure" }, signed(difference, 3)), ` ${id} `, make("span", { dir: "auto", class: "sy-text" }, text)));
  }

  // One query

  function list(found) {
    parts.query.textContent = found.text;
    parts.queryFacts.textContent = `${found.id}: ${number(found.value, 3)} now, ${number(found.base, 3)} before`;
    parts.at = found.at;
    const names = [...new Set(found.now.flatMap((row) => row.parts.map((part) => part[0])))];
    const sums = found.now.map(({ parts: own }) => [
      own.reduce((sum, [, value]) => sum + Math.min(0, value), 0), own.reduce((sum, [, value]) => sum + Math.max(0, value), 0)]);
    const low = Math.min(0, ...sums.map((sum) => sum[0])), high = Math.max(1e-12, ...sums.map((sum) => sum[1]));
    parts.key.replaceChildren(...names.map((name, at) =>
      make("span", {}, make("i", { class: `sy-c${at % 8}` }), name)));
    const none = (rows) => (rows.length ? [] : [make("li", { class: "sy-none" }, "nothing found")]);
    parts.now.replaceChildren(...none(found.now), ...found.now.map((row, at) => make("li", {}, grade(row.grade),
      make("span", { class: "sy-entry" }, make("span", { dir: "auto", class: "sy-text", title: `${row.id}: ${row.text}` }, row.title), stack(row.parts, names, low, high)),
      moved(row.before, at + 1))));
    const here = new Set(found.now.map((row) => row.id));
    parts.before.replaceChildren(...none(found.before), ...found.before.map((row) => make("li", { class: here.has(row.id) ? null : "sy-gone" },
      grade(row.grade), make("span", { dir: "auto", class: "sy-text", title: `${row.id}: ${row.text}` }, row.title))));
  }

  function stack(own, names, low, high) {
    let right = 0, left = 0;
    const words = own.map(([name, value]) => `${name} ${number(value)}`).join(", ");
    return make("span", { class: "sy-stack", role: "img", "aria-label": words, title: words }, ...own.map(([name, value]) => {
      const from = value >= 0 ? right : left + value;
      if (value >= 0) right += value; else left += value;
      return make("i", { class: `sy-c${names.indexOf(name) % 8}`,
        style: `left:${percent(from, low, high)}%;width:${percent(low + Math.abs(value), low, high)}%` });
    }));
  }

  const grade = (value) => make("span", {
    class: `sy-grade sy-g${value === null ? "x" : Math.min(4, value)}`,
    "aria-label": value === null ? "no label" : `grade ${value}`,
  }, value === null ? "·" : String(value));

  function moved(before, now) {
    const text = before === null ? "new" : before === now ? "=" : before > now ? `▲${before - now}` : `▼${now - before}`;
    return make("span", { class: "sy-moved", title: before === null ? "not in the list before" : `place ${before} before` }, text);
  }

  const button = (text, onclick, more = {}) => make("button", { type: "button", ...QUIET, ...more, onclick }, text);

  const typed = (label, key, message) => make("input", {
    type: "text", dir: "auto", "aria-label": label, placeholder: label, spellcheck: "false", ...QUIET,
    onkeydown: (event) => { event.stopPropagation(); if (event.key === "Enter") line.ask(message(event.target.value), key); },
  });

  parts.system = make("select", { "aria-label": "start from", ...QUIET,
    onchange: (event) => line.ask({ do: "begin", system: event.target.value }) });
  parts.strategy = typed("strategy; Enter applies it", "write", (text) => ({ do: "write", text }));
  parts.path = typed("file to write", "adopt", (path) => ({ do: "adopt", path }));
  parts.path.value = "search-weights.json";
  const finder = typed("id or words of a query; Enter finds it", "find", (text) => ({ do: "find", text }));
  for (const name of ["weights", "bars", "key"]) parts[name] = make("div", { class: `sy-${name}` });
  for (const name of ["metric", "mean", "interval", "gain", "counts", "about", "queryFacts"]) parts[name] = make("span", { class: `sy-${name}` });
  for (const name of ["worst", "best"]) parts[name] = make("ul", { class: `sy-list sy-list-${name}` });
  for (const name of ["now", "before"]) parts[name] = make("ol", { class: `sy-${name}` });
  parts.query = make("strong", { dir: "auto" });
  parts.status = make("div", { role: "status", class: "sy-hidden" });
  parts.problem = make("div", { role: "alert", class: "sy-problem" });
  parts.beam = make("svg", { class: "sy-beam", viewBox: "0 0 320 20", role: "img" });
  parts.strip = make("svg", { class: "sy-strip", viewBox: "0 0 320 60", preserveAspectRatio: "none", role: "img" });

  const root = make("section", { class: "sy-explorer", "aria-label": "Steelyard explorer" },
    make("header", {}, parts.system, parts.strategy, parts.about),
    parts.problem,
    make("div", { class: "sy-columns" },
      make("div", {}, parts.weights),
      make("div", {},
        make("p", { class: "sy-headline" }, parts.metric, " ", parts.mean, " ", parts.interval),
        make("p", {}, parts.gain), parts.beam, parts.strip, make("p", {}, parts.counts), parts.bars),
      make("div", {}, make("h4", {}, "Worse than before"), parts.worst, make("h4", {}, "Better than before"), parts.best)),
    make("div", { class: "sy-one" }, make("p", {}, parts.query, " ", parts.queryFacts), parts.key,
      make("div", { class: "sy-tools" },
        button("previous query", () => line.ask({ do: "look", at: parts.at - 1 })),
        button("next query", () => line.ask({ do: "look", at: parts.at + 1 })), finder)),
    make("div", { class: "sy-lists" },
      make("div", {}, make("h4", {}, "Now"), parts.now), make("div", {}, make("h4", {}, "Before"), parts.before)),
    make("footer", {}, button("adopt", () => line.ask({ do: "adopt", path: parts.path.value })), parts.path),
    parts.status);
  el.append(root);
  line.ask({ do: "open" });
  return () => { clearTimeout(timer); line.close(); };
}

export default { render };
