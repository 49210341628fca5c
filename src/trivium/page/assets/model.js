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
trivium.related = function (model, items) {
  const found = model.stages.map(() => new Map());
  if (!items.length) return found;
  const start = items[0].stage.index;
  for (const item of items) found[start].set(item.number, "chosen");
  const spread = (from, to, links, role) => {
    for (const number of found[from].keys())
      for (const next of model.stages[from].items[number][links])
        if (!found[to].has(next)) found[to].set(next, role);
  };
  for (let i = start; i > 0; i--) spread(i, i - 1, "origins", "origin");
  for (let i = start; i + 1 < model.stages.length; i++) spread(i, i + 1, "results", "result");
  return found;
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
