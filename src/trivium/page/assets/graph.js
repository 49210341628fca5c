"use strict";
// The picture of a graph: boxes, edges, panning and zooming, and moving from box to box by keys.
trivium.Picture = class {
  constructor(stage, onSelect) {
    this.stage = stage;
    this.onSelect = onSelect;
    this.layout = new trivium.Layout(stage);
    this.roles = new Map();
    const { element } = trivium;
    this.world = element("g", {});
    this.svg = element("svg", { role: "application", tabindex: 0, "aria-label": `${stage.title} as a graph; arrow keys move, Enter opens or selects` },
      element("defs", {}, element("marker", { id: `arrow-${stage.name}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" },
        element("path", { d: "M0 0 L8 4 L0 8 z", class: "arrow" }))), this.world);
    this.view = { x: 0, y: 0, scale: 1 };
    this.listen();
  }

  listen() {
    let from = null;
    this.svg.addEventListener("pointerdown", (event) => { from = { x: event.clientX, y: event.clientY, view: { ...this.view }, moved: false }; });
    this.svg.addEventListener("pointermove", (event) => {
      if (!from || !event.buttons) return;
      const dx = event.clientX - from.x, dy = event.clientY - from.y;
      if (Math.abs(dx) + Math.abs(dy) > 4) from.moved = true;
      if (from.moved) { this.view.x = from.view.x + dx; this.view.y = from.view.y + dy; this.move(); }
    });
    this.svg.addEventListener("click", (event) => {
      if (from && from.moved) return;
      const box = event.target.closest("[data-key]");
      if (!box) return this.onSelect([], this);
      this.current = box.dataset.key;
      if (event.target.closest(".toggle")) this.toggle(box.dataset.key);
      else this.choose(box.dataset.key);
    });
    this.svg.addEventListener("dblclick", (event) => {
      const box = event.target.closest("[data-key]");
      if (box && !event.target.closest(".toggle")) this.toggle(box.dataset.key);
    });
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.ctrlKey || !event.shiftKey) this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.offsetX, event.offsetY);
      else { this.view.x -= event.deltaY; this.move(); }
    }, { passive: false });
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(([{ contentRect }]) => { this.room = contentRect; }).observe(this.svg);
  }

  part(key) { return this.boxes.get(key); }

  choose(key) {
    const part = this.part(key);
    if (part) this.onSelect(part.item ? [part.item] : trivium.itemsOf(part.group), this, part.group);
    this.focus();
  }

  toggle(key) {
    const part = this.part(key);
    if (!part || !part.group) return;
    const before = { x: part.left * this.view.scale + this.view.x, y: part.top * this.view.scale + this.view.y };
    this.layout.toggle(part.group);
    this.draw();
    const now = this.part(key); // stays where it is on the screen
    this.view.x = before.x - now.left * this.view.scale;
    this.view.y = before.y - now.top * this.view.scale;
    this.move();
    this.focus();
  }

  draw() {
    const placed = this.layout.run();
    this.size = placed;
    this.boxes = new Map();
    this.world.replaceChildren(this.drawInside(placed, 0, 0));
    this.mark();
  }

  drawInside(placed, left, top) {
    const { element } = trivium, layer = element("g", { transform: `translate(${left},${top})` });
    for (const [key, part] of placed.parts) layer.append(this.box(key, part));
    for (const edge of placed.edges) layer.append(this.edge(edge));
    return layer;
  }

  box(key, part) {
    const { element } = trivium, { group, item, inside } = part;
    const origin = this.origin || { x: 0, y: 0 };
    part.left = origin.x + part.x;
    part.top = origin.y + part.y;
    this.boxes.set(key, part);
    const kind = group ? (inside ? "open" : "closed") : `item ${trivium.family(item)}${trivium.signOf(item) ? " differs" : ""}`;
    const box = element("g", { class: `box ${kind}`, "data-key": key, transform: `translate(${part.x},${part.y})` },
      element("title", {}, group ? `${trivium.pathOf(group)}\n${trivium.summary(group)}` : `${item.label} ${item.type || ""}`),
      element("rect", { width: part.width, height: part.height, rx: group ? 8 : item.kind === "argument" || item.kind === "end" ? 20 : 4 }));
    part.drawn = box;
    if (group) {
      box.append(element("g", { class: "toggle" },
        element("rect", { class: "hit", width: 26, height: 26 }), element("text", { x: 9, y: 18 }, inside ? "−" : "+")),
      element("text", { class: "name", x: 28, y: 18 }, trivium.fit(inside ? trivium.timed(group, group.name) : group.name, part.width - 36, 7.4)));
      if (inside) {
        this.origin = { x: part.left, y: part.top };
        box.append(this.drawInside(inside, 0, 0));
        this.origin = origin;
      } else box.append(element("text", { class: "about", x: 12, y: 39 }, trivium.fit(trivium.timed(group, trivium.summary(group)), part.width - 20, 5.9)));
    } else {
      box.append(element("text", { class: "name", x: part.width / 2, y: 17 }, trivium.fit(`${trivium.signOf(item)}${item.label}`, part.width - 10, 7.2)),
        element("text", { class: "about", x: part.width / 2, y: 32 }, trivium.fit(trivium.timed(item, trivium.short(item.type)), part.width - 10, 5.9)));
    }
    this.warm(box, part);
    return box;
  }

  // A bar as long as the share of the time that a box has of the whole.
  warm(box, { group, item, width, height, inside }) {
    const seconds = (group || item).seconds, all = this.stage.groups[0].seconds;
    if (!seconds) return;
    box.append(trivium.element("g", { class: "warm" },
      trivium.element("rect", { x: 1, y: inside ? 1 : height - 5, width: Math.max(1, ((width - 2) * seconds) / all), height: 4 })));
  }

  edge({ a, b, label, faint, points, at }) {
    const { element } = trivium;
    const [first, ...others] = points;
    let path = `M${first.x} ${first.y}`;
    others.forEach((point, i) => {
      const next = others[i + 1];
      path += next ? ` Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}` : ` L${point.x} ${point.y}`;
    });
    return element("g", { class: faint ? "edge faint" : "edge", "data-a": a, "data-b": b },
      element("path", { d: path, "marker-end": `url(#arrow-${this.stage.name})` }),
      at.x && label ? element("text", { x: at.x - Math.min(label.length * 6, 90) / 2 + 4, y: at.y + 4 }, label.length > 20 ? `${label.slice(0, 19)}…` : label) : null);
  }

  highlight(roles, from, group) {
    this.roles = roles;
    this.chosenGroup = group && group.stage === this.stage ? group.number : -1;
    this.mark();
    if (from !== this && roles.size) this.showFirst();
  }

  // Marks the boxes of the selection; a closed group stands for what is in it.
  mark() {
    const strength = { chosen: 3, origin: 2, result: 1 }, found = new Map();
    for (const [number, role] of this.roles) {
      const item = this.stage.items[number];
      const keys = item.hidden ? item.readers.slice(0, 9).map((n) => this.layout.boxOf(this.stage.items[n])) : [this.layout.boxOf(item)];
      for (const key of keys) if (key && strength[role] > (strength[found.get(key)] || 0)) found.set(key, role);
    }
    if (this.chosenGroup >= 0) found.set(`g${this.chosenGroup}`, "chosen");
    for (const [key, part] of this.boxes) {
      const role = found.get(key);
      for (const name of Object.keys(strength)) part.drawn.classList.toggle(name, name === role);
    }
    for (const edge of this.world.querySelectorAll(".edge"))
      edge.classList.toggle("touched", found.get(edge.dataset.a) === "chosen" || found.get(edge.dataset.b) === "chosen");
    this.found = found;
    this.focus();
  }

  showFirst() {
    const { width, height } = this.room || this.svg.getBoundingClientRect();
    const inView = (part) => {
      const x = part.left * this.view.scale + this.view.x, y = part.top * this.view.scale + this.view.y;
      return x > -part.width / 2 && y > -10 && x < width - 40 && y < height - 30;
    };
    const keys = [...this.found.keys()].filter((key) => this.part(key));
    if (keys.length && !keys.some((key) => inView(this.part(key)))) this.center(keys[0]);
  }

  center(key) {
    const part = this.part(key);
    if (!part) return;
    const { width, height } = this.room || this.svg.getBoundingClientRect();
    this.view.x = width / 2 - (part.left + part.width / 2) * this.view.scale;
    this.view.y = height / 3 - part.top * this.view.scale;
    this.move();
  }

  reveal(item) {
    this.layout.reveal(item);
    this.draw();
    if (this.view.scale < 0.6) this.view.scale = 0.9;
    this.current = this.layout.boxOf(item);
    this.center(this.current);
  }

  // Shows everything; with `least`, from the top and as large as can be read.
  fit(least = 0.03) {
    const { clientWidth: width, clientHeight: height } = this.svg;
    const scale = Math.min(1, (width - 30) / this.size.width, (height - 30) / this.size.height);
    this.view.scale = Math.max(scale, Math.min(least, Math.max(0.5, (width - 30) / this.size.width)));
    this.view.x = (width - this.size.width * this.view.scale) / 2;
    this.view.y = scale < this.view.scale ? 15 : Math.max(15, (height - this.size.height * this.view.scale) / 2);
    this.move();
  }

  zoom(by, x = this.svg.clientWidth / 2, y = this.svg.clientHeight / 2) {
    const scale = Math.min(3, Math.max(0.03, this.view.scale * by)), ratio = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * ratio, y: y - (y - this.view.y) * ratio };
    this.move();
  }

  move() {
    this.world.setAttribute("transform", `translate(${this.view.x},${this.view.y}) scale(${this.view.scale})`);
    this.svg.classList.toggle("far", this.view.scale < 0.5);
  }

  focus() {
    for (const box of this.world.querySelectorAll(".current")) box.classList.remove("current");
    const part = this.part(this.current);
    if (part) part.drawn.classList.add("current");
  }

  key(event) {
    const arrows = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] };
    if (event.key in arrows) this.walk(...arrows[event.key]);
    else if (event.key === "Enter") {
      const part = this.part(this.current);
      if (part && part.group) this.toggle(this.current);
      else if (part) this.choose(this.current);
    } else if (event.key === " ") this.choose(this.current);
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Goes to the nearest box in a direction.
  walk(dx, dy) {
    const here = this.part(this.current), keys = [...this.boxes.keys()];
    if (!here) this.current = keys[0];
    else {
      const middle = (p) => ({ x: p.left + p.width / 2, y: p.top + (p.inside ? 10 : p.height / 2) }), from = middle(here);
      let best = Infinity;
      for (const key of keys) {
        const to = middle(this.part(key)), along = (to.x - from.x) * dx + (to.y - from.y) * dy;
        const across = Math.abs((to.x - from.x) * dy) + Math.abs((to.y - from.y) * dx);
        if (key !== this.current && along > 4 && along + 2.5 * across < best) { best = along + 2.5 * across; this.next = key; }
      }
      if (best < Infinity) this.current = this.next;
    }
    this.focus();
    const part = this.part(this.current), x = part.left * this.view.scale + this.view.x, y = part.top * this.view.scale + this.view.y;
    if (x < 0 || y < 0 || x > this.svg.clientWidth - 60 || y > this.svg.clientHeight - 40) this.center(this.current);
    this.onMove(part);
  }
};

// The sign of an op that differs, on a page of two programs.
trivium.signOf = ({ facts }) => {
  const words = (facts && facts.difference) || "", signs = { "the same op": "~ ", "only in the first": "− ", "only in the second": "+ " };
  return words.includes("agree") ? "" : signs[Object.keys(signs).find((start) => words.startsWith(start))] || "";
};

// A text with the time before it, if there is one.
trivium.timed = ({ seconds }, text) => (seconds ? `${trivium.time(seconds)} · ${text}` : text);

trivium.fit = (text, width, letter) => {
  const most = Math.floor(width / letter);
  return text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text;
};

// What kind of op it is, for the colour of its edge; the name says it, too.
trivium.family = (item) => {
  if (item.kind === "argument" || item.kind === "end") return "end";
  for (const [family, names] of Object.entries(trivium.FAMILIES)) if (names.has(item.label)) return family;
  return "elementwise";
};
trivium.FAMILIES = {
  contraction: new Set(["dot_general", "dot", "convolution", "dynamic_conv"]),
  reduction: new Set(["reduce", "reduce_window", "select_and_scatter", "sort", "cholesky", "triangular_solve", "fft"]),
  movement: new Set(["reshape", "broadcast_in_dim", "transpose", "slice", "concatenate", "pad", "gather", "scatter", "dynamic_slice", "dynamic_update_slice", "reverse", "iota"]),
  control: new Set(["while", "if", "case", "call", "custom_call", "composite"]),
};
