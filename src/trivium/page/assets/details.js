"use strict";
// What is known of the selection: facts, what it came from and became, and a constant's histogram.
trivium.details = function (model, items, group, related, select, spot) {
  const { element } = trivium;
  if (!items.length) return [element("p", { class: "hint" }, "Select a line, an op, a launch or an instruction: what it came from and what it became lights up in every stage. Press ? for the keys.")];
  const [item] = items, several = items.length > 1;
  const title = group ? trivium.pathOf(group) || "everything" : several ? `${items.length} items` : item.label;
  const rows = group || several ? { ops: String(items.length) } : { stage: item.stage.title, type: item.type, part: item.path, ...item.facts };
  rows.time = trivium.timeOf(model, items);
  const parts = [element("h3", {}, title), trivium.rows(rows)];
  if (!several && item.constant) parts.push(...trivium.constant(item.constant));
  if (!several && item.first >= 0) parts.push(element("pre", {}, item.stage.lines[spot ? spot.at : item.first].trim()));
  if (!several && item.operands.length) parts.push(trivium.chips("reads", item.operands.map((n) => item.stage.items[n]), select));
  if (!several && item.readers.length) parts.push(trivium.chips("read by", item.readers.map((n) => item.stage.items[n]), select));
  related.forEach((found, index) => {
    const stage = model.stages[index];
    if (stage === item.stage || !found.size) return;
    const word = index < item.stage.index ? "from" : "became";
    parts.push(trivium.chips(`${word}: ${stage.title.toLowerCase()}`, [...found.keys()].map((n) => stage.items[n]), select));
  });
  return parts;
};

trivium.rows = (rows) => {
  const { element } = trivium;
  return element("dl", {}, ...Object.entries(rows).filter(([, value]) => value).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
};

trivium.chips = (title, items, select) => {
  const { element } = trivium, most = 24, named = new Map(); // those of one name are one chip, which selects all of them
  for (const item of items) named.set(item.label, [...(named.get(item.label) || []), item]);
  const chips = [...named].slice(0, most).map(([label, same]) =>
    element("button", { class: "chip", title: `${label} ${same[0].type || ""}`, onclick: () => select(same) }, same.length > 1 ? `${label} ×${same.length}` : label));
  return element("div", { class: "chips" }, element("h4", {}, `${title} (${items.length})`), ...chips, named.size > most ? ` and ${named.size - most} more` : null);
};

trivium.constant = (constant) => {
  const { element } = trivium, number = (x) => Number(x.toPrecision(6)).toString();
  const total = constant.shape.reduce((a, b) => a * b, 1), most = Math.max(...constant.counts, 1);
  const bars = constant.counts.map((count, i) =>
    element("rect", { x: i * 10, y: 60 - (56 * count) / most, width: 9, height: (56 * count) / most }, element("title", {}, String(count))));
  const words = `histogram from ${number(constant.low)} to ${number(constant.high)}`;
  return [
    trivium.rows({
      elements: total > constant.sampled ? `${total.toLocaleString("en")}, of which ${constant.sampled.toLocaleString("en")} were looked at` : total.toLocaleString("en"),
      range: `${number(constant.low)} … ${number(constant.high)}`,
      mean: `${number(constant.mean)}, deviation ${number(constant.deviation)}`,
      zeros: String(constant.zeros),
      "not finite": constant.nonfinite ? String(constant.nonfinite) : "",
    }),
    element("svg", { class: "histogram", viewBox: `0 0 ${constant.counts.length * 10} 60`, role: "img", "aria-label": words }, ...bars),
  ];
};
