"use strict";
// Modules above the modules and launches in them, as wide as their times. A launch is in the group of its product or
// convolution, which takes nearly all of its time, or in the innermost group that has all of its ops: it is there once.
trivium.frames = function (model) {
  const graph = model.stages[model.launches.index - 1], { groups } = graph;
  const around = (number) => { const list = []; for (let g = groups[number]; ; g = groups[g.parent]) { list.unshift(g); if (!g.number) return list; } };
  const root = { group: groups[0], seconds: 0, inner: new Map() };
  for (const item of model.launches.items) {
    if (!item.time) continue;
    const shown = item.origins.map((n) => graph.items[n]), visible = shown.filter((op) => !op.hidden);
    const product = visible.find((op) => trivium.family(op) === "contraction");
    const paths = (product ? [product] : visible.length ? visible : shown).map((op) => around(op.group));
    const path = paths.length ? paths[0].filter((g, i) => paths.every((other) => other[i] === g)) : [groups[0]];
    let frame = root;
    root.seconds += item.seconds;
    for (const group of path.slice(1)) {
      if (!frame.inner.has(group)) frame.inner.set(group, { group, seconds: 0, inner: new Map() });
      frame = frame.inner.get(group);
      frame.seconds += item.seconds;
    }
    frame.inner.set(item, { item, seconds: item.seconds, inner: new Map() });
  }
  return root;
};

trivium.flame = function (panel) {
  const { element } = trivium, { model, body } = panel;
  panel.frames = panel.frames || trivium.frames(model);
  const top = panel.zoomed || panel.frames, width = Math.max(380, body.clientWidth - 4), ROW = 24, marks = [];
  let deepest = 0;
  const place = (frame, x, depth) => {
    const wide = (frame.seconds / top.seconds) * (width - 4), { group, item } = frame;
    if (wide < 1) return;
    deepest = Math.max(deepest, depth);
    const name = item ? item.label : group.name || "the program", about = `${name} · ${trivium.time(frame.seconds)} · ${trivium.percent(frame.seconds / model.times.seconds)}`;
    const mark = element("g", { class: `frame-of ${item ? "launch" : "module"}`, transform: `translate(${x},${depth * ROW})`, ...(item ? { "data-step": item.number } : { "data-group": group.number }) },
      element("title", {}, group ? `${trivium.pathOf(group) || name}\n${about}` : about),
      element("rect", { width: Math.max(1, wide - 1), height: ROW - 2, rx: 2, style: trivium.bar(frame.seconds, top.seconds) }),
      wide > 34 ? element("text", { x: 5, y: 15 }, trivium.fit(about, wide - 8, 6.3)) : null);
    mark.addEventListener("click", (event) => { if (group && event.detail < 2) panel.onSelect(trivium.itemsOf(group), panel, group); });
    mark.addEventListener("dblclick", () => { if (group) { panel.zoomed = frame === top ? null : frame; panel.show("Modules"); } });
    marks.push(mark);
    for (const inner of frame.inner.values()) { place(inner, x, depth + 1); x += (inner.seconds / top.seconds) * (width - 4); }
  };
  place(top, 2, 0);
  const about = "Modules, and below them their launches, in the order of the program. A double click on a module enlarges it, and on the top row shows all. A launch that computes ops of several modules is in that of its product or convolution, or in the module that has them all.";
  return [trivium.chart("time of modules and launches", width, (deepest + 1) * ROW + 4, ...marks), element("p", { class: "note" }, about)];
};
