"use strict";
/* Makes tables sortable, filters them, and shows every query with both rankings. Texts are only ever set as text. */
(() => {
  const make = (name, look, text) => {
    const node = document.createElement(name);
    if (look) node.className = look;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const number = (value, digits, signed) => {
    const size = Math.abs(value).toFixed(digits);
    if (!Number(size)) return size;
    return (value < 0 ? "-" : signed ? "+" : "") + size;
  };

  /* A link to a section that is folded opens it. */
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const fold = target && target.closest("details");
    if (!fold) return;
    fold.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  for (const link of document.querySelectorAll("nav a")) link.addEventListener("click", () => setTimeout(reveal));
  reveal();

  /* Tables: a click on a head sorts, a second one turns the order round; long tables have a filter. */
  const key = (row, at) => {
    const cell = row.cells[at];
    const given = cell.textContent.trim();
    const value = cell.classList.contains("n") ? parseFloat(given.replace(/^</, "").replaceAll(",", "")) : NaN;
    return given === "" || given === "\u2013" ? null : Number.isNaN(value) ? given : value;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  const sort = (table, head, at) => {
    const first = head.classList.contains("n") ? "descending" : "ascending";
    const other = first === "descending" ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, place) => ({ row, place, value: key(row, at) }));
    rows.sort((a, b) => {
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.place - b.place;
      return (order === "ascending" ? 1 : -1) * compare(a.value, b.value) || a.place - b.place;
    });
    body.append(...rows.map((one) => one.row));
  };
  const field = (text, input) => {
    const label = make("label", "", text);
    input.setAttribute("aria-label", text);
    label.append(input);
    return label;
  };
  const filter = (table) => {
    const input = make("input");
    input.type = "search";
    const bar = make("div", "controls");
    bar.append(field("show only rows with", input));
    table.closest(".scroll").before(bar);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  };
  for (const table of document.querySelectorAll("table")) {
    const rows = table.tBodies[0].rows.length;
    if (rows < 2) continue;
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const button = make("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, head, at));
    });
    if (rows > 12) filter(table);
  }

  /* The lists of all queries. */
  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };
  const starts = (lengths) => {
    const found = [0];
    for (const length of lengths) found.push(found[found.length - 1] + length);
    return found;
  };
  const show = (data) => {
    const PAGE = 10;
    const root = document.getElementById("explorer");
    data.lists.forEach((list) => { list.starts = starts(list.lengths); });
    const colours = [...new Set(data.lists.flatMap((list) => list.signals))];
    const choice = (options, chosen) => {
      const select = make("select");
      options.forEach(([value, text]) => {
        const option = make("option", "", text);
        option.value = value;
        select.append(option);
      });
      select.value = chosen;
      return select;
    };
    const labels = data.labels.map((label, at) => [String(at), label]);
    const left = choice(labels, "0");
    const right = choice(labels, "1");
    const kinds = [...new Set(data.queries.map((query) => query[2]).filter(Boolean))].sort();
    const kind = choice([["", "all categories"], ...kinds.map((name) => [name, name])], "");
    const which = choice([["all", "all"], ["worse", "worse on the right"], ["better", "better on the right"], ["failed", "0 on both sides"], ["same", "same value"]], "all");
    const order = choice([["change", "largest change first"], ["lost", "most lost first"], ["won", "most won first"], ["low", "lowest on the right first"], ["given", "as in the data set"]], "change");
    const search = make("input");
    search.type = "search";
    search.dir = "auto";
    const controls = make("div", "controls");
    controls.append(
      field("search queries", search), field("category", kind), field("left", left), field("right", right),
      field("show", which), field("order", order),
    );
    const status = make("p", "soft");
    status.setAttribute("role", "status");
    const found = make("ol", "found");
    const more = make("button", "more", "show more");
    more.type = "button";
    root.append(controls, status, found, more);

    const value = (side, at) => data.values[side][at];
    const grade = (query) => {
      const flat = data.grades[query];
      const known = new Map();
      for (let at = 0; at < flat.length; at += 2) known.set(flat[at], flat[at + 1]);
      return known;
    };
    const entries = (side, query) => {
      const list = data.lists[side];
      return list.entries.slice(list.starts[query], list.starts[query + 1]);
    };
    const used = (side, query) => {
      const list = data.lists[side];
      const [begin, end] = [list.starts[query], list.starts[query + 1]];
      return list.signals.map((name, at) => ({ name, colour: colours.indexOf(name) % 8, values: list.parts[at].slice(begin, end) }))
        .filter((signal) => signal.values.some(Boolean));
    };
    const badge = (known, entry) => {
      const own = known.get(entry);
      const look = own === undefined ? "x" : own >= 4 ? "4" : own >= 1 ? String(own) : "0";
      return make("span", `grade g${look}`, own === undefined ? "no label" : `grade ${own}`);
    };
    const move = (at, other, isRight, by) => {
      if (other < 0) return make("span", "move", isRight ? "new" : "left");
      if (other === at) return make("span", "move", "same place");
      const up = isRight ? other > at : other < at;
      const text = isRight ? `was #${other + 1}` : `to #${other + 1}`;
      return make("span", "move", `${up ? "\u2191" : "\u2193"} ${text}${by ? ` by ${by}` : ""}`);
    };
    const parts = (list, signals, at, place, top) => {
      const box = make("div");
      const bar = make("div", "bar");
      bar.setAttribute("aria-hidden", "true");
      const texts = [];
      const digits = top >= 100 ? 1 : top >= 1 ? 3 : 4;
      for (const signal of signals) {
        const share = signal.values[place];
        if (!share) continue;
        const piece = make("i", `s${signal.colour}`);
        piece.style.width = `${Math.max(0, share) / 10}%`;
        bar.append(piece);
        texts.push(`${signal.name} ${number((share / 1000) * top, digits)}`);
      }
      box.append(bar, make("span", "under", `score ${number((list.scores[at] / 1000) * top, digits)}: ${texts.join(", ")}`));
      return box;
    };
    /* The signal that moved an entry most against those that it passed, or that passed it, as `steelyard explain`
       finds it. Scores are compared as they are where a signal adds the same in both lists, else as shares of the way
       from the last score to the best. */
    const added = (side, query, both) => {
      const [list, own] = [data.lists[side], entries(side, query)];
      return both.map((entry) => {
        const [place, sums] = [list.starts[query] + own.indexOf(entry), new Map()];
        list.short.forEach((name, at) => sums.set(name, (sums.get(name) ?? 0) + (list.parts[at][place] * list.tops[query]) / 1000));
        return sums;
      });
    };
    const spread = (parts) => {
      const totals = parts.map((sums) => [...sums.values()].reduce((a, b) => a + b, 0));
      return Math.max(...totals) - Math.min(...totals) || 1;
    };
    const movers = (sides, query) => {
      const [left, right] = sides.map((side) => entries(side, query));
      const both = right.filter((entry) => left.includes(entry));
      if (!both.length || sides.some((side) => !data.lists[side].signals.length)) return new Map();
      const [before, after] = sides.map((side) => added(side, query, both));
      const names = [...new Set(sides.flatMap((side) => data.lists[side].short))].sort();
      const rounding = (data.lists[sides[0]].tops[query] + data.lists[sides[1]].tops[query]) / 1000; // of what adds up to a score
      const kept = (name) => before.every((sums, at) => Math.abs((sums.get(name) ?? 0) - (after[at].get(name) ?? 0)) <= rounding);
      const tells = (name) => before.some((sums) => Math.abs(sums.get(name) ?? 0) > 10 * rounding);
      const units = names.some((name) => tells(name) && kept(name)) ? [1, 1] : [spread(before), spread(after)];
      const found = new Map();
      both.forEach((entry, at) => {
        const [was, way] = [left.indexOf(entry), Math.sign(left.indexOf(entry) - right.indexOf(entry))];
        const others = both.flatMap((other, i) => (way * (was - left.indexOf(other)) > 0 && way * (i - at) > 0 ? [i] : []));
        const lead = (parts, name, unit) => others.reduce((sum, i) => sum + (parts[at].get(name) ?? 0) - (parts[i].get(name) ?? 0), 0) / unit;
        const change = (name) => way * (lead(after, name, units[1]) - lead(before, name, units[0]));
        const best = names.reduce((a, b) => (change(b) >= change(a) ? b : a));
        if (others.length && change(best) > 0) found.set(entry, best);
      });
      return found;
    };
    const column = (side, other, query, isRight) => {
      const list = data.lists[side];
      const box = make("div");
      const shown = value(side, query) < 0 ? "no value" : number(value(side, query) / 1000, 3);
      box.append(make("h3", "", `${data.labels[side]}: ${shown}`));
      const [own, against, known] = [entries(side, query), entries(other, query), grade(query)];
      const signals = used(side, query);
      const by = isRight ? movers([other, side], query) : new Map();
      const legend = make("ul", "legend");
      for (const signal of signals) {
        const item = make("li");
        item.append(make("i", `s${signal.colour}`), signal.name);
        legend.append(item);
      }
      if (signals.length) box.append(legend);
      const rows = make("ol");
      own.forEach((entry, place) => {
        const row = make("li");
        row.append(badge(known, entry), " ", move(place, against.indexOf(entry), isRight, by.get(entry)), " ", make("bdi", "", data.texts[entry] || data.ids[entry]), make("span", "under", data.ids[entry]));
        if (signals.length) row.append(parts(list, signals, list.starts[query] + place, place, list.tops[query]));
        rows.append(row);
      });
      box.append(own.length ? rows : make("p", "soft", "Nothing was found."));
      return box;
    };
    const missed = (query, sides) => {
      const seen = new Set(sides.flatMap((side) => entries(side, query)));
      const lost = [...grade(query)].filter(([entry, own]) => own >= 1 && !seen.has(entry)).sort((a, b) => b[1] - a[1]);
      if (!lost.length) return [];
      const box = make("div");
      box.append(make("h3", "", `Relevant, and in neither list (${lost.length})`));
      const rows = make("ul");
      for (const [entry, own] of lost.slice(0, 10)) {
        const row = make("li");
        row.append(make("span", `grade g${Math.min(own, 4)}`, `grade ${own}`), " ", make("bdi", "", data.texts[entry] || data.ids[entry]), make("span", "under", data.ids[entry]));
        rows.append(row);
      }
      box.append(rows);
      return [box];
    };
    const open = (item, button, query) => {
      const was = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!was));
      if (was) { item.lastChild.remove(); return; }
      const sides = [Number(left.value), Number(right.value)];
      const detail = make("div");
      const two = make("div", "two");
      two.append(column(sides[0], sides[1], query, false), column(sides[1], sides[0], query, true));
      detail.append(two, ...missed(query, sides));
      const hint = make("p", "soft", "More: ");
      hint.append(make("code", "", `steelyard explain ${data.dataset} ${data.queries[query][0]} --against \u2026`));
      detail.append(hint);
      item.append(detail);
    };
    const change = (query) => value(Number(right.value), query) - value(Number(left.value), query);
    const orders = {
      change: (a, b) => Math.abs(change(b)) - Math.abs(change(a)) || a - b,
      lost: (a, b) => change(a) - change(b) || a - b,
      won: (a, b) => change(b) - change(a) || a - b,
      low: (a, b) => value(Number(right.value), a) - value(Number(right.value), b) || a - b,
      given: (a, b) => a - b,
    };
    const kept = {
      all: () => true,
      worse: (query) => change(query) < 0,
      better: (query) => change(query) > 0,
      same: (query) => change(query) === 0,
      failed: (query) => value(Number(left.value), query) <= 0 && value(Number(right.value), query) <= 0,
    };
    let matches = [];
    const add = () => {
      const begin = found.children.length;
      for (const query of matches.slice(begin, begin + PAGE)) {
        const [id, text, category] = data.queries[query];
        const item = make("li");
        const button = make("button", "open");
        button.type = "button";
        button.setAttribute("aria-expanded", "false");
        const gap = change(query);
        const about = make("span");
        about.append(make("bdi", "", text || id), make("span", "under", category ? `${id}, ${category}` : id));
        const both = [left, right].map((side) => value(Number(side.value), query)).map((own) => (own < 0 ? "\u2013" : number(own / 1000, 3)));
        const moved = make("span", "change", `${both[0]} \u2192 ${both[1]}`);
        moved.append(make("span", gap > 0 ? "under up" : gap < 0 ? "under down" : "under", number(gap / 1000, 3, true)));
        button.append(about, moved);
        button.addEventListener("click", () => open(item, button, query));
        item.append(button);
        found.append(item);
      }
      more.hidden = found.children.length >= matches.length;
    };
    const update = () => {
      const wanted = search.value.toLowerCase();
      matches = data.queries.map((_, at) => at).filter((at) => {
        const [id, text, category] = data.queries[at];
        return (!kind.value || category === kind.value) && kept[which.value](at) && `${id} ${text}`.toLowerCase().includes(wanted);
      }).sort(orders[order.value]);
      found.replaceChildren();
      status.textContent = `${matches.length} of ${data.queries.length} queries; ${data.metric} on the left and on the right. Open one to see both lists.`;
      add();
    };
    for (const control of [search, kind, left, right, which, order]) control.addEventListener("input", update);
    more.addEventListener("click", add);
    update();
    for (const block of document.querySelectorAll(".static")) block.hidden = true;
  };
  const packed = document.getElementById("lists");
  if (packed && document.getElementById("explorer") && "DecompressionStream" in window) unpack(packed.textContent).then(show);
})();
