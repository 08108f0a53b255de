({
  /* How much wider each table is than its place. */
  cut: () => [...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth - one.clientWidth),

  /* At how many places the cells of each table begin; on a phone they stand below one another. */
  edges: () => [0, ...[...document.querySelectorAll('tbody')].map((body) =>
    new Set([...body.querySelectorAll('td')].map((one) => one.getBoundingClientRect().left)).size)],

  /* What is wider than the window. */
  wide: () => [...document.querySelectorAll('body *')].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.width && (box.right > innerWidth + 0.5 || box.left < -0.5) && !one.closest('svg');
  }).map((one) => one.outerHTML.slice(0, 80)),

  /* Labels of charts that cover one another, or leave their chart. */
  overlaps: () => [...document.querySelectorAll('svg')].flatMap((svg) => {
    const all = [...svg.querySelectorAll('text')].map((one) => [one.textContent, one.getBoundingClientRect()]);
    const frame = svg.getBoundingClientRect();
    const leaves = ([_, a]) => a.left < frame.left - 1 || a.right > frame.right + 1;
    const out = all.filter(leaves).map(([text]) => [text, 'leaves']);
    return [...out, ...all.flatMap(([one, a], at) => all.slice(at + 1).filter(([_, b]) =>
      a.left + 0.5 < b.right && b.left + 0.5 < a.right && a.top + 1.5 < b.bottom && b.top + 1.5 < a.bottom
    ).map(([other]) => [one, other]))];
  }),

  /* How many pixels stand before the first part that is folded. */
  answer: () => document.querySelector('.fold').getBoundingClientRect().top + scrollY,

  fold: () => document.querySelectorAll('.fold').forEach((one) => { one.open = false; }),
  unfold: () => document.querySelectorAll('.fold').forEach((one) => { one.open = true; }),
})
