"use strict";
// The data of the page (described in data.py), and what follows from it: links in both directions, and groups.
// Every script adds its part to this one object.
const trivium = {};

// The data is JSON, compressed, in base64.
trivium.unpack = async function (text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
};

trivium.readModel = function (text) {
  const model = JSON.parse(text);
  model.stages.forEach((stage, index) => {
    stage.index = index;
    stage.items.forEach((item, number) => {
      item.stage = stage;
      item.number = number;
      item.origins = item.origins || [];
      item.operands = item.operands || [];
      item.results = [];
      item.readers = [];
      item.group = item.group || 0;
      item.first = -1; // its first line
    });
    stage.owners.forEach((owner, line) => {
      if (owner >= 0 && stage.items[owner].first < 0) stage.items[owner].first = line;
    });
  });
  model.stages.forEach((stage, index) => {
    for (const item of stage.items) {
      for (const origin of item.origins) model.stages[index - 1].items[origin].results.push(item.number);
      for (const operand of item.operands) stage.items[operand].readers.push(item.number);
    }
    if (stage.groups.length) trivium.nest(stage);
  });
  for (const name of ["graph", "kernels"]) model[name] = model.stages.find((stage) => stage.name === name);
  trivium.addTimes(model);
  return model;
};

// Gives every group its parts: groups and items, and the items of all that is inside.
trivium.nest = function (stage) {
  stage.groups.forEach((group, number) => {
    Object.assign(group, { number, stage, groups: [], items: [], size: 0, depth: 0 });
    if (number) {
      const parent = stage.groups[group.parent];
      group.depth = parent.depth + 1;
      parent.groups.push(group);
    }
  });
  for (const item of stage.items) {
    if (item.hidden) continue;
    stage.groups[item.group].items.push(item);
    for (let group = stage.groups[item.group]; ; group = stage.groups[group.parent]) {
      group.size += 1;
      if (group.number === 0) break;
    }
  }
};

// All that items came from and became, as one map (number -> role) for each stage. Roles: "chosen", "origin", "result".
// Of a line inside a kernel (`spot`), the ops are those that it computes, and not all of its kernel.
trivium.related = function (model, items, spot) {
  const found = model.stages.map(() => new Map());
  if (!items.length) return found;
  const start = items[0].stage.index;
  for (const item of items) found[start].set(item.number, "chosen");
  const spread = (from, to, links, role) => {
    for (const number of found[from].keys())
      for (const next of model.stages[from].items[number][links])
        if (!found[to].has(next)) found[to].set(next, role);
  };
  for (let i = start; i > 0; i--) {
    if (spot && i - 1 === model.graph.index) for (const op of trivium.opsOfLine(model, spot.line)) found[i - 1].set(op, "origin");
    else spread(i, i - 1, "origins", "origin");
  }
  for (let i = start; i + 1 < model.stages.length; i++) spread(i, i + 1, "results", "result");
  return found;
};

// The lines of kernels that a selection is about, as a map (line -> role): those that compute ops of the selection, or the
// line that was selected itself. Without them, whole kernels are shown.
trivium.linesOfKernels = function (model, items, related, spot) {
  const { kernels, graph } = model, lines = new Map();
  if (!kernels || !kernels.computes) return lines;
  if (spot) {
    for (let line = spot.line; line < Math.max(spot.line + 1, kernels.ends[spot.line]); line++) lines.set(line, spot.stage === kernels ? "chosen" : "origin");
    trivium.addAround(model, spot.line, lines);
  }
  else if (items.length && items[0].stage.index <= graph.index) {
    const shown = related[graph.index];
    kernels.computes.forEach((ops, line) => { if (ops.some((op) => shown.has(op))) lines.set(line, "result"); });
  }
  return lines;
};

// A line whose instructions are part of others has theirs: of other lines of the same op (the loops of a product stand beside
// its epilogue), or else of the loop around it, as for a load that became an operand.
trivium.addAround = function (model, line, lines) {
  const { ends, computes, owners } = model.kernels, stages = model.stages.filter((stage) => stage.places);
  model.placed ||= new Set(stages.length ? stages[stages.length - 1].places : []);
  if ([...lines.keys()].some((at) => model.placed.has(at))) return;
  const same = (at) => owners[at] === owners[line] && model.placed.has(at) && computes[at].some((op) => computes[line].includes(op));
  const others = [...model.placed].filter((at) => at >= 0 && same(at));
  if (others.length) return others.forEach((at) => lines.set(at, "around"));
  let around = line - 1;
  while (around >= 0 && !(ends[around] > line && model.placed.has(around))) around -= 1;
  if (around >= 0) lines.set(around, "around");
};

// The ops that a line of a kernel computes a part of; all that is inside a loop belongs to its line.
trivium.opsOfLine = function (model, line) {
  const { computes, ends } = model.kernels;
  return new Set(computes.slice(line, Math.max(line + 1, ends[line])).flat());
};

// The kernel that a function came from, or the kernel itself.
trivium.kernelOf = (item) => {
  const { model } = trivium;
  for (let at = item; model && model.kernels; at = model.stages[at.stage.index - 1].items[at.origins[0]]) {
    if (!at || at.stage === model.kernels) return at;
    if (at.stage.index < model.kernels.index) break;
  }
  return null;
};

// The line of the kernels that a line of kernels or of machine code came from, if that is known.
trivium.spotOf = function (model, stage, at) {
  if (!model.kernels || !model.kernels.computes) return null;
  const line = stage === model.kernels ? at : stage.places ? stage.places[at] : -1;
  return line >= 0 && trivium.opsOfLine(model, line).size && (stage !== model.kernels || model.kernels.ends[line]) ? { stage, line, at } : null;
};

// Every visible item of a group, inner groups included.
trivium.itemsOf = function (group) {
  const found = [...group.items];
  for (const inner of group.groups) found.push(...trivium.itemsOf(inner));
  return found;
};

trivium.pathOf = function (group) {
  const names = [];
  for (let at = group; at.number !== 0; at = at.stage.groups[at.parent]) names.unshift(at.name);
  return names.join(" / ");
};

// Makes an element; children are elements or text, which never becomes markup.
trivium.element = function (name, attributes = {}, ...children) {
  const svg = trivium.SVG.has(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};
trivium.SVG = new Set(["svg", "g", "rect", "path", "circle", "line", "text", "title", "marker", "defs"]);
