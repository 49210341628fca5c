"use strict";
// The charts of a profile: roofline, memory, and the modules with their times.
trivium.charts = (panel) => ({
  Roofline: () => trivium.roofline(panel),
  Memory: () => trivium.memory(panel),
  Modules: () => trivium.flame(panel),
});

trivium.chart = (words, width, height, ...parts) =>
  trivium.element("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words }, ...parts);

trivium.bytes = (count) => {
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  for (; count >= 1024 && at + 1 < units.length; at++) count /= 1024;
  return `${at ? count.toFixed(count < 10 ? 2 : 1) : count} ${units[at]}`;
};

// Each step by its operations per byte and its speed, below the device's limits; both axes are logarithmic. The area of a
// point is its time.
trivium.roofline = function ({ model, items, body }) {
  const { element } = trivium, { times } = model, shown = items.filter((item) => item.time.flops && item.time.nbytes);
  if (!shown.length) return [element("p", { class: "note" }, "No step of this program computes.")];
  const width = Math.max(380, body.clientWidth - 4), height = 360, left = 56, right = 16, top = 26, bottom = 42;
  const ridge = times.flops / times.nbytes, points = shown.map((item) => ({ item, x: item.time.flops / item.time.nbytes, y: item.time.flops / item.time.seconds }));
  const range = (values) => [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)) + 0.05)];
  const [x0, x1] = range([ridge / 4, ridge * 4, ...points.map((p) => p.x)]), [y0, y1] = range([times.flops / 20, times.flops * 1.2, ...points.map((p) => p.y)]);
  const px = (x) => left + ((Math.log10(x) - x0) / (x1 - x0)) * (width - left - right);
  const py = (y) => height - bottom - ((Math.log10(y) - y0) / (y1 - y0)) * (height - top - bottom);
  const label = (n) => (n >= -2 && n <= 4 ? String(Number((10 ** n).toFixed(3))) : `1e${n}`), grid = [];
  for (let n = x0; n <= x1; n++) grid.push(element("path", { class: "grid", d: `M${px(10 ** n)} ${top} V${height - bottom}` }), element("text", { x: px(10 ** n), y: height - bottom + 14, class: "middle" }, label(n)));
  for (let n = y0; n <= y1; n++) grid.push(element("path", { class: "grid", d: `M${left} ${py(10 ** n)} H${width - right}` }), element("text", { x: left - 6, y: py(10 ** n) + 4, class: "end" }, label(n - 9)));
  const low = Math.max(10 ** x0, (10 ** y0) / times.nbytes);
  const roof = element("path", { class: "roof", d: `M${px(low)} ${py(low * times.nbytes)} L${px(ridge)} ${py(times.flops)} H${width - right}` });
  const most = items[0].time.seconds;
  const marks = points.map(({ item, x, y }) =>
    element("circle", { class: "point", "data-step": item.number, cx: px(x), cy: py(y), r: 3 + 9 * Math.sqrt(item.time.seconds / most), style: trivium.bar(item.seconds, most) },
      element("title", {}, `${item.label}\n${trivium.time(item.time.seconds)}, ${x.toPrecision(3)} operations per byte, ${(y / 1e9).toPrecision(3)} GFLOP/s: ${trivium.near(item.time)}`)));
  const words = [
    element("text", { x: width - right, y: py(times.flops) - 16, class: "end" }, `computing: ${(times.flops / 1e9).toFixed(0)} GFLOP/s`),
    element("text", { x: px(low) + 26, y: py(low * times.nbytes) - 10 }, `memory: ${(times.nbytes / 1e9).toFixed(1)} GB/s`),
    element("text", { x: (left + width - right) / 2, y: height - 8, class: "middle" }, "operations per byte"),
    element("text", { x: 8, y: 11 }, "GFLOP/s"),
  ];
  const about = `${shown.length} of ${items.length} steps${shown.length < items.length ? "; the others do not compute" : ""}. The larger a point, the longer its time. Above the slope, data comes from caches.`;
  return [trivium.chart("roofline: speed by operations per byte", width, height, ...grid, roof, ...marks, ...words), element("p", { class: "note" }, about)];
};

// What the arena holds while which step runs: each array as a box, as high as its bytes, at its place; the line is how many bytes are in use.
trivium.memory = function ({ model, body }) {
  const { element } = trivium, { held, arena, used } = model.times;
  if (!held.length) return [element("p", { class: "note" }, "This program has no temporary arrays: all values are arguments, results or constants.")];
  const width = Math.max(380, body.clientWidth - 4), height = 360, left = 70, right = 12, top = 18, bottom = 34;
  const steps = model.launches.items, px = (step) => left + (step / steps.length) * (width - left - right);
  const py = (bytes) => height - bottom - (bytes / arena) * (height - top - bottom);
  const boxes = held.flatMap((array) => array.spans.map(([first, last]) =>
    element("rect", { class: held.length > 150 ? "held thin" : "held", "data-step": array.steps[0], "data-steps": array.steps.join(" "), x: px(first), y: py(array.offset + array.nbytes), width: Math.max(1, px(last + 1) - px(first) - 1), height: Math.max(1, py(array.offset) - py(array.offset + array.nbytes) - 0.5) },
      element("title", {}, `${array.name}: ${array.type}, ${trivium.bytes(array.nbytes)} at ${array.offset}\nsteps ${first + 1} to ${last + 1}, made by ${steps[array.steps[0]].label}`))));
  const peak = used.reduce((best, bytes, i) => (bytes > used[best] ? i : best), 0);
  const line = `M${used.map((bytes, i) => `${px(i)} ${py(bytes)} H${px(i + 1)}`).join(" L")}`;
  const mark = element("path", { class: "peak", d: `M${px(peak + 0.5)} ${height - bottom} V${py(used[peak])}` });
  const words = [
    ...[0, 0.5, 1].flatMap((part) => [element("path", { class: "grid", d: `M${left} ${py(part * arena)} H${width - right}` }), element("text", { x: left - 6, y: py(part * arena) + 4, class: "end" }, trivium.bytes(Math.round(part * arena)))]),
    element("text", { x: left, y: height - bottom + 14 }, "step 1"),
    element("text", { x: width - right, y: height - bottom + 14, class: "end" }, String(steps.length)),
  ];
  const about = `The arena has ${trivium.bytes(arena)}. The most is in use at step ${peak + 1}, ${steps[peak].label}: ${trivium.bytes(used[peak])}. A box is an array at its place in the arena, the line how many bytes are in use.`;
  return [trivium.chart("memory: what the arena holds at each step", width, height, ...words, ...boxes, mark, element("path", { class: "sum", d: line })), element("p", { class: "note" }, about)];
};
