"use strict";
// What each pass of the optimizer changed, and each rewrite in it, as a difference of two texts. Every line says from which
// step (`born`) to which one (`died`) it is in the program.
trivium.Passes = class {
  static CONTEXT = 2;

  constructor(model, onSelect) {
    const { element } = trivium;
    Object.assign(this, { model, onSelect, title: "Passes", data: model.passes, related: new Map() });
    this.program = model.stages.find((stage) => stage.name === "program");
    const runs = [this.all(), ...this.data.passes];
    this.choice = element("select", { "aria-label": "pass", onchange: () => this.pass(Number(this.choice.value)) },
      ...runs.map((run, i) => element("option", { value: i }, `${i ? `${i} ` : ""}${run.name}: ${run.before} → ${run.after} ops${run.end - run.first > 1 ? `, ${run.end - run.first} steps` : ""}`)));
    this.runs = runs;
    this.about = element("p", { class: "note", "aria-live": "polite" });
    const buttons = [["◀◀", "previous pass ({)", () => this.pass(this.at - 1)], ["◀", "previous rewrite ([)", () => this.step(-1)],
      ["▶", "next rewrite (])", () => this.step(1)], ["▶▶", "next pass (})", () => this.pass(this.at + 1)]].map(
      ([sign, title, onclick]) => element("button", { title, "aria-label": title, onclick }, sign));
    this.frame = element("div", { class: "frame-of-lines" });
    this.root = element("section", { class: "pane passes", "aria-label": "Passes" }, element("h2", {}, "Passes", this.choice, element("span", { class: "gap" }), ...buttons), this.about, this.frame);
    this.pass(0);
  }

  all() {
    const { passes, steps } = this.data, last = passes[passes.length - 1];
    return { name: "all passes", first: 0, end: steps.length, before: passes.length ? passes[0].before : 0, after: last ? last.after : 0 };
  }

  // Shows a whole pass; 0 is all of them.
  pass(number) {
    if (number < 0 || number >= this.runs.length) return;
    this.at = number;
    this.single = -1;
    const { first, end } = this.runs[number];
    this.show(first, end, end - first > 1 ? `${end - first} steps. ] shows the first one.` : "");
  }

  // Shows the next step, or the one before, across passes.
  step(by) {
    const { first, end } = this.runs[this.at], { steps, passes, rules } = this.data;
    const next = this.single < 0 ? (by > 0 ? first : end - 1) : this.single + by;
    if (next < 0 || next >= steps.length) return;
    this.single = next;
    this.at = 1 + passes.findIndex((run) => next < run.end);
    const run = this.runs[this.at], [rule, equation] = rules[steps[next]];
    this.show(next, next + 1, `${next - run.first + 1} of ${run.end - run.first} · ${rule || run.name}${equation ? ` · ${equation}` : ""}`);
    this.onSelect(this.changed(), this);
  }

  show(first, end, words) {
    const { lines, owners, items } = this.difference(first, end);
    const stage = { name: "passes", title: "Passes", lines, owners, items, note: "", index: -1 };
    for (const item of items) item.stage = stage;
    this.choice.value = String(this.at);
    this.about.textContent = words;
    this.about.hidden = !words;
    this.listing = new trivium.Listing(stage, (chosen) => this.onSelect(chosen[0].origins.map((n) => this.program.items[n]), this));
    this.frame.replaceChildren(this.listing.scroller);
    this.mark();
  }

  // The lines of both programs, with a sign before those that only one of them has; equal ones far from those are folded.
  difference(first, end) {
    const { lines, born, died, origins } = this.data, has = (i, step) => born[i] <= step && (died[i] < 0 || step < died[i]);
    const shown = [];
    for (let i = 0; i < lines.length; i++) {
      const before = has(i, first), after = has(i, end);
      if (before || after) shown.push({ line: i, sign: before && after ? " " : before ? "-" : "+" });
    }
    const near = new Uint8Array(shown.length), { CONTEXT } = trivium.Passes;
    shown.forEach(({ sign }, i) => { if (sign !== " ") near.fill(1, Math.max(0, i - CONTEXT), i + CONTEXT + 1); });
    const made = { lines: [], owners: [], items: [] };
    const fold = (count) => { if (count) { made.lines.push(`  ⋯ ${count} equal lines`); made.owners.push(-1); } };
    let folded = 0;
    shown.forEach(({ line, sign }, i) => {
      if (!near[i]) { folded += 1; return; }
      fold(folded);
      folded = 0;
      made.owners.push(origins[line].length ? made.items.length : -1);
      if (origins[line].length) made.items.push({ number: made.items.length, first: made.lines.length, label: "", origins: origins[line], sign });
      made.lines.push(`${sign} ${lines[line]}`);
    });
    fold(folded);
    return made;
  }

  // The ops of the program that the lines with a sign came from.
  changed() {
    const { items } = this.listing.stage;
    const numbers = new Set(items.filter((item) => item.sign !== " ").flatMap((item) => item.origins));
    return [...numbers].map((n) => this.program.items[n]);
  }

  highlight(related, from) {
    this.related = related;
    this.mark(from);
  }

  mark(from) {
    const roles = new Map(), order = ["chosen", "origin", "result"];
    for (const item of this.listing.stage.items) {
      const found = item.origins.map((n) => this.related.get(n)), role = order.find((name) => found.includes(name));
      if (role) roles.set(item.number, role);
    }
    this.listing.highlight(roles, from === this ? this.listing : null);
  }

  key(key) {
    if (key === "[" || key === "]") this.step(key === "]" ? 1 : -1);
    else if (key === "{" || key === "}") this.pass(this.at + (key === "}" ? 1 : -1));
    else return false;
    return true;
  }
};
