"use strict";
// Where the boxes of a graph are. Each open group is laid out by itself, as a graph of few nodes, and then is one node of
// the group around it; so opening one changes nothing else but the sizes of those around it.
trivium.Layout = class {
  static TITLE = 26;
  static PADDING = 14;

  constructor(stage) {
    this.stage = stage;
    this.open = new Set([0]);
    this.cache = new Map();
    this.edges = this.edgesByGroup();
    this.openFirst();
  }

  // Opens groups, outer ones first, all those of one group or none, for as long as the picture can be read at once.
  openFirst(most = 26) {
    const { groups } = this.stage;
    let shown = groups[0].groups.length + groups[0].items.length;
    const waiting = [groups[0]];
    while (waiting.length) {
      const inner = waiting.shift().groups.filter((group) => group.groups.length);
      const more = inner.reduce((sum, group) => sum + group.groups.length + group.items.length - 1, 0);
      if (shown + more > most) continue;
      shown += more;
      for (const group of inner) this.open.add(group.number);
      waiting.push(...inner);
    }
  }

  // The edges between the direct parts of every group, by the group; a part is "i5" (an item) or "g2" (a group).
  edgesByGroup() {
    const { items, groups } = this.stage, found = groups.map(() => new Map());
    const chain = (item) => {
      const list = [];
      for (let g = groups[item.group]; g.number !== 0; g = groups[g.parent]) list.push(g.number);
      return list.reverse();
    };
    for (const item of items) {
      if (item.hidden) continue;
      for (const number of item.operands) {
        const source = items[number];
        if (source.hidden || source === item) continue;
        const from = chain(source), to = chain(item);
        let depth = 0;
        while (depth < from.length && depth < to.length && from[depth] === to[depth]) depth++;
        const a = depth < from.length ? `g${from[depth]}` : `i${source.number}`;
        const b = depth < to.length ? `g${to[depth]}` : `i${item.number}`;
        const around = depth ? from[depth - 1] : 0, key = `${a} ${b}`;
        const edge = found[around].get(key) || { a, b, types: new Set(), count: 0 };
        edge.types.add(source.type);
        edge.count += 1;
        found[around].set(key, edge);
      }
    }
    return found;
  }

  toggle(group) {
    if (this.open.has(group.number)) this.open.delete(group.number);
    else this.open.add(group.number);
    this.forget(group);
  }

  // Opens all groups around an item.
  reveal(item) {
    for (let g = this.stage.groups[item.group]; g.number !== 0; g = this.stage.groups[g.parent]) {
      if (!this.open.has(g.number)) { this.open.add(g.number); this.forget(g); }
    }
  }

  forget(group) {
    for (let g = group; ; g = this.stage.groups[g.parent]) {
      this.cache.delete(g.number);
      if (g.number === 0) break;
    }
  }

  // The box that stands for an item: its own, or the outermost closed group around it.
  boxOf(item) {
    let key = item.hidden ? null : `i${item.number}`;
    for (let g = this.stage.groups[item.group]; g.number !== 0; g = this.stage.groups[g.parent])
      if (!this.open.has(g.number)) key = `g${g.number}`;
    return key;
  }

  run() { return this.place(this.stage.groups[0]); }

  // The parts of an open group with their places inside it, its edges, and its size.
  place(group) {
    if (this.cache.has(group.number)) return this.cache.get(group.number);
    const { TITLE, PADDING } = trivium.Layout;
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, edgesep: 8, marginx: 0, marginy: 0 });
    const parts = new Map();
    for (const inner of group.groups) {
      if (!inner.size) continue;
      const opened = this.open.has(inner.number) ? this.place(inner) : null;
      parts.set(`g${inner.number}`, { group: inner, inside: opened, ...(opened || trivium.sizeOfGroup(inner)) });
    }
    for (const item of group.items) parts.set(`i${item.number}`, { item, ...trivium.sizeOfItem(item) });
    for (const [key, part] of parts) graph.setNode(key, { width: part.width, height: part.height });
    const shown = [...this.edges[group.number].values()].filter((edge) => parts.has(edge.a) && parts.has(edge.b)), readers = new Map();
    for (const { a } of shown) readers.set(a, (readers.get(a) || 0) + 1);
    for (const edge of shown) { // what many read, such as a mask, does not pull them apart, and has no label at each of them
      const many = readers.get(edge.a) > 3 && edge.types.size === 1;
      edge.label = many ? "" : edge.types.size === 1 ? trivium.short([...edge.types][0]) : `${edge.count} values`;
      graph.setEdge(edge.a, edge.b, { width: Math.min(edge.label.length * 6, 90), height: many ? 0 : 12, labelpos: "r", weight: many ? 1 : 8 });
    }
    dagre.layout(graph);
    const top = group.number === 0 ? 0 : TITLE, side = group.number === 0 ? 0 : PADDING;
    for (const [key, part] of parts) {
      const node = graph.node(key);
      part.x = node.x - node.width / 2 + side;
      part.y = node.y - node.height / 2 + top + side;
    }
    const edges = graph.edges().map((e) => {
      const made = graph.edge(e), known = this.edges[group.number].get(`${e.v} ${e.w}`);
      const move = (p) => ({ x: p.x + side, y: p.y + top + side });
      return { a: e.v, b: e.w, label: known.label, faint: !known.label, points: made.points.map(move), at: move({ x: made.x, y: made.y }) };
    });
    const { width = 0, height = 0 } = graph.graph();
    const result = { parts, edges, width: Math.max(width || 0, 60) + 2 * side, height: (height || 0) + top + 2 * side };
    if (group.number !== 0) result.width = Math.max(result.width, group.name.length * 7.5 + 120);
    this.cache.set(group.number, result);
    return result;
  }
};

trivium.sizeOfItem = (item) => ({ width: Math.max(90, Math.min(230, Math.max(item.label.length * 7.4, trivium.timed(item, trivium.short(item.type)).length * 6.2) + 22)), height: 40 });
trivium.sizeOfGroup = (group) => ({ width: Math.max(150, Math.min(300, Math.max(group.name.length * 7.6 + 40, trivium.timed(group, trivium.summary(group)).length * 6.1 + 20))), height: 54 });

// A type without the word tensor: `4x8xf32`.
trivium.short = (type) => {
  const text = (type || "").replace(/tensor<([^<>]*)>/g, "$1");
  return text.length > 36 ? `${text.slice(0, 35)}…` : text;
};

// What is inside a group, in a few words: the most frequent ops that compute.
trivium.summary = (group) => {
  if (group.words) return group.words;
  const counts = new Map(), plain = new Set(["reshape", "broadcast_in_dim", "transpose", "convert", "return", "slice"]);
  for (const item of trivium.itemsOf(group)) if (!plain.has(item.label)) counts.set(item.label, (counts.get(item.label) || 0) + 1);
  const heavy = ["dot_general", "convolution"];
  const names = [...counts].sort((a, b) => heavy.includes(b[0]) - heavy.includes(a[0]) || b[1] - a[1]).slice(0, 2);
  group.words = `${group.size} op${group.size === 1 ? "" : "s"}${names.length ? ": " : ""}${names.map(([name, n]) => (n > 1 ? `${n} ${name}` : name)).join(", ")}`;
  if (group.words.length > 42) group.words = `${group.words.slice(0, 41)}…`;
  return group.words;
};
