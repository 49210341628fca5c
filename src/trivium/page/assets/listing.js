"use strict";
// The text of one stage. Only the lines in view are elements, because assembly has tens of thousands of lines.
trivium.Listing = class {
  static LINE = 18;
  static SIGNS = { chosen: "▶", origin: "◂", result: "▸" };

  constructor(stage, onSelect) {
    this.stage = stage;
    this.title = stage.title;
    this.onSelect = onSelect;
    this.roles = new Map();
    this.rows = new Map(); // the elements of the lines in view, by line
    this.cursor = -1;
    this.top = this.height = 0; // of what is in view: asking the browser would make it lay out the page
    const { element } = trivium;
    this.lines = element("div", { class: "lines" });
    this.space = element("div", { class: "space" }, this.lines);
    this.scroller = element(
      "div",
      { class: "scroller", tabindex: 0, role: "listbox", "aria-label": `${stage.title}: lines`, onscroll: () => { this.top = this.scroller.scrollTop; this.draw(); }, onkeydown: (event) => this.key(event) },
      this.space,
    );
    this.count = element("span", { class: "count" });
    this.note = stage.note ? element("p", { class: "note" }, stage.note) : null;
    const buttons = [["↑", -1, "previous highlighted line (p)"], ["↓", 1, "next highlighted line (n)"]].map(([sign, by, title]) =>
      element("button", { title, "aria-label": title, onclick: () => this.step(by) }, sign));
    this.root = element("section", { class: "pane listing", "data-stage": stage.name, "aria-label": stage.title },
      element("h2", {}, stage.title, this.count, ...buttons), this.note, this.scroller);
    const longest = stage.lines.reduce((most, line) => Math.max(most, line.length), 0);
    this.space.style.height = `${stage.lines.length * trivium.Listing.LINE}px`;
    this.space.style.minWidth = `${longest + (stage.most ? 14 : 4)}ch`;
    this.space.addEventListener("click", (event) => { // by its place, since the elements may change under the pointer
      const line = Math.floor((event.clientY - this.space.getBoundingClientRect().top) / trivium.Listing.LINE);
      if (line < stage.lines.length && !String(getSelection())) this.choose(line);
    });
    new ResizeObserver(([{ contentRect }]) => { this.height = contentRect.height; this.draw(); }).observe(this.scroller);
  }

  choose(line) {
    this.cursor = line;
    const owner = this.stage.owners[line];
    if (owner >= 0) this.onSelect([this.stage.items[owner]], this, null, trivium.spotOf(trivium.model, this.stage, line));
    else this.draw();
  }

  // Shows which lines belong to the selection, and the first of them unless the reader chose it here. `lines` are those of
  // kernels: where some of a kernel's are known, its other lines are not shown.
  highlight(roles, from, lines = new Map()) {
    const { owners, places, computes, items } = this.stage;
    this.roles = roles;
    if (from !== this) this.cursor = -1;
    this.marked = [];
    this.fine = lines.size ? new Map() : null; // the roles of lines
    const role = places ? (line) => lines.get(places[line]) : computes ? (line) => (lines.get(line) === "around" ? undefined : lines.get(line)) : () => undefined;
    const kernel = (owner) => trivium.kernelOf(items[owner]), parted = new Set();
    if (lines.size) owners.forEach((owner, line) => { if (role(line) && roles.has(owner)) parted.add(kernel(owner)); });
    owners.forEach((owner, line) => {
      if (!roles.has(owner)) return;
      const apart = parted.size && parted.has(kernel(owner)), found = apart && !role(line) ? "" : roles.get(owner);
      if (apart) this.fine.set(line, found);
      if (found) this.marked.push(line);
    });
    this.count.textContent = roles.size ? ` ${roles.size} of ${this.stage.items.length}` : "";
    if (from !== this && this.marked.length) this.show(this.marked[0]);
    this.draw();
  }

  // Programs begin with their constants, of which there may be hundreds.
  skipConstants() {
    const first = this.stage.owners.findIndex((owner) => owner >= 0 && this.stage.items[owner].kind !== "constant");
    if (first > 20) this.scroll((first - 3) * trivium.Listing.LINE);
  }

  show(line) {
    const { LINE } = trivium.Listing, top = line * LINE;
    this.height ||= this.scroller.clientHeight; // of a pane that was hidden
    if (top < this.top || top > this.top + this.height - 3 * LINE) this.scroll(Math.max(0, top - this.height / 3));
  }

  scroll(top) {
    this.scroller.scrollTop = top;
    this.top = this.scroller.scrollTop; // which is in its range
  }

  // Goes to the next line that begins a highlighted item.
  step(by) {
    if (!this.marked || !this.marked.length) return;
    const starts = this.marked.filter((line, i) => i === 0 || this.marked[i - 1] !== line - 1 || this.stage.owners[line] !== this.stage.owners[line - 1]);
    const here = this.at === undefined ? -1 : starts.indexOf(this.at);
    this.at = starts[(here + by + starts.length) % starts.length];
    this.cursor = this.at;
    this.show(this.at);
    this.draw();
  }

  key(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 };
    if (event.key in moves && !event.altKey) {
      const sign = Math.sign(moves[event.key]);
      let line = this.cursor + moves[event.key];
      while (line >= 0 && line < this.stage.lines.length && this.stage.owners[line] < 0) line += sign;
      if (line >= 0 && line < this.stage.lines.length) { this.choose(line); this.show(line); }
    } else if (event.key === "n" || event.key === "p") this.step(event.key === "n" ? 1 : -1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The time of the item that begins on a line.
  heat(line, owner) {
    if (!this.stage.most) return null;
    const item = this.stage.items[owner], warm = item && item.first === line && item.seconds;
    return trivium.element("span", warm ? { class: "heat", style: trivium.bar(item.seconds, this.stage.most) } : { class: "cold" }, warm ? trivium.time(item.seconds) : " ");
  }

  row(line, owner) {
    const { element } = trivium;
    return element("div", { "data-line": line, role: "option" },
      element("span", { class: "sign", "aria-hidden": "true" }), this.heat(line, owner), this.stage.lines[line] || " ");
  }

  draw() {
    const { LINE, SIGNS } = trivium.Listing;
    const first = Math.max(0, Math.floor(this.top / LINE) - 10);
    const last = Math.min(this.stage.lines.length, first + Math.ceil(this.height / LINE) + 20);
    for (const [n, row] of this.rows) if (n < first || n >= last) { row.remove(); this.rows.delete(n); }
    let next = null;
    for (let n = last - 1; n >= first; n--) {
      const owner = this.stage.owners[n], role = this.fine && this.fine.has(n) ? this.fine.get(n) : this.roles.get(owner);
      // Elements are kept: a browser loses a click if the element under the pointer is replaced before the button is released.
      const row = this.rows.get(n) || this.row(n, owner);
      if (!this.rows.has(n)) { this.rows.set(n, row); this.lines.insertBefore(row, next); }
      const classes = `line${owner >= 0 ? " owned" : ""}${owner >= 0 && trivium.signOf(this.stage.items[owner]) ? " differs" : ""}${role ? ` ${role}` : ""}${n === this.cursor ? " cursor" : ""}`;
      if (row.className !== classes) { // what is written is laid out again, even if it is equal
        row.className = classes;
        row.setAttribute("aria-selected", role === "chosen" ? "true" : "false");
        row.firstChild.textContent = role ? SIGNS[role] : " ";
      }
      next = row;
    }
    this.lines.style.transform = `translateY(${first * LINE}px)`;
  }
};
