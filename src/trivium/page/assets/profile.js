"use strict";
// The panel of a profile: a table and charts of the launches. Selecting a launch in one selects it everywhere.
trivium.Panel = class {
  static COLUMNS = [
    ["step", (item) => item.label, (item) => item.number],
    ["calls", (item) => String(item.time.calls), (item) => item.time.calls],
    ["time", (item) => trivium.time(item.time.seconds), (item) => -item.time.seconds],
    ["share", (item, all) => trivium.percent(item.time.seconds / all.seconds), (item) => -item.time.seconds],
    ["GFLOP/s", (item) => (item.time.flops / item.time.seconds / 1e9).toFixed(1), (item) => -item.time.flops / item.time.seconds],
    ["GB/s", (item) => (item.time.nbytes / item.time.seconds / 1e9).toFixed(1), (item) => -item.time.nbytes / item.time.seconds],
    ["of limit", (item) => trivium.near(item.time), (item) => item.time.limit / item.time.seconds],
  ];

  constructor(model, onSelect) {
    const { element } = trivium, { times } = model;
    Object.assign(this, { model, onSelect, title: "Profile", roles: new Map(), order: "time" });
    this.columns = trivium.Panel.COLUMNS.filter(([name]) => name !== "calls" || times.steps.some((step) => step.calls > 1));
    this.items = times.steps.map((time) => model.launches.items[time.number]); // the hottest first
    this.views = { Table: () => this.table(), ...trivium.charts(this) };
    this.body = element("div", { class: "view" });
    this.tabs = Object.keys(this.views).map((name) => element("button", { "data-view": name, onclick: () => this.show(name) }, name));
    const words = `${trivium.time(times.seconds)}, the median of ${times.runs} runs. The device does ${(times.flops / 1e9).toFixed(0)} GFLOP/s and reads ${(times.nbytes / 1e9).toFixed(1)} GB/s.`;
    this.root = element("section", { class: "pane profile", "aria-label": "Profile" },
      element("h2", {}, "Profile", element("span", { class: "gap" }), ...this.tabs), element("p", { class: "note" }, words), this.body);
    this.body.addEventListener("click", (event) => {
      const mark = event.target.closest("[data-step]");
      if (mark) this.onSelect([model.launches.items[mark.dataset.step]], this);
    });
    this.view = "Table";
    this.width = 0;
    new ResizeObserver(() => { if (this.body.clientWidth !== this.width && this.view !== "Table") this.show(this.view); }).observe(this.body);
  }

  show(name) {
    this.view = name;
    this.width = this.body.clientWidth;
    for (const tab of this.tabs) tab.setAttribute("aria-pressed", String(tab.dataset.view === name));
    this.body.replaceChildren(...[this.views[name]()].flat());
    this.mark();
  }

  table() {
    const { element } = trivium, { columns } = this, { times } = this.model;
    const [, , by] = columns.find(([name]) => name === this.order), sorted = [...this.items].sort((a, b) => by(a) - by(b));
    const head = columns.map(([name]) => element("th", { scope: "col", "aria-sort": name === this.order ? "descending" : "none" },
      element("button", { title: `sort by ${name}`, onclick: () => { this.order = name; this.show("Table"); } }, name === this.order ? `${name} ▾` : name)));
    const rows = sorted.map((item) => element("tr", { "data-step": item.number },
      ...columns.map(([name, text], i) => element("td", name === "time" ? { class: "heat", style: trivium.bar(item.seconds, this.model.launches.most) } : {},
        i ? text(item, times) : element("button", { title: item.label }, element("span", { class: "sign" }, ""), ...trivium.breakable(item.label)))),
      element("td", { class: "lines-of", title: trivium.linesOf(this.model, item) }, trivium.linesOf(this.model, item))));
    return element("table", {}, element("thead", {}, element("tr", {}, ...head, element("th", { scope: "col", class: "lines-of" }, "from"))), element("tbody", {}, ...rows));
  }

  // The next launch in the order of time: after the selected one, or the hottest.
  hotter(by) {
    const at = this.items.findIndex((item) => this.roles.get(item.number) === "chosen");
    const next = at < 0 ? 0 : (at + by + this.items.length) % this.items.length;
    return this.items[next];
  }

  highlight(roles, from, group) {
    this.roles = roles;
    this.group = group && group.stage.index + 1 === this.model.launches.index ? group : null;
    this.mark(from !== this);
  }

  mark(scroll = false) {
    const { SIGNS } = trivium.Listing;
    let first = null;
    for (const mark of this.body.querySelectorAll("[data-step], [data-steps]")) {
      const steps = (mark.dataset.steps || mark.dataset.step).split(" ").map(Number);
      const found = steps.map((n) => this.roles.get(n)), role = ["chosen", "origin", "result"].find((name) => found.includes(name));
      for (const name of Object.keys(SIGNS)) mark.classList.toggle(name, name === role);
      const sign = mark.querySelector(".sign");
      if (sign && sign.textContent !== (SIGNS[role] || "")) sign.textContent = SIGNS[role] || "";
      if (role === "chosen" || (role && !first)) first = mark;
    }
    for (const mark of this.body.querySelectorAll("[data-group]")) mark.classList.toggle("chosen", Boolean(this.group) && Number(mark.dataset.group) === this.group.number);
    if (first && scroll && first.scrollIntoView && this.view === "Table") first.scrollIntoView({ block: "nearest" });
  }
};

// A name that may go on in the next line after each of its words.
trivium.breakable = (name) => name.split(/(?<=_)/).flatMap((word, i) => (i ? [trivium.element("wbr"), word] : [word]));

trivium.near = (time) => {
  const share = time.limit / time.seconds;
  return share <= 1 ? `${(100 * share).toFixed(0)} % ${time.bound}` : "from caches";
};

// A bar behind a number, as long as a time is of the longest.
trivium.bar = (seconds, most) => `--part: ${Math.round((100 * seconds) / (most || 1))}%; --warm: ${trivium.warmth(seconds, most)}%`;

// The user's lines that an item came from.
trivium.linesOf = function (model, item) {
  let numbers = [item.number];
  for (let i = item.stage.index; i > 0; i--) numbers = [...new Set(numbers.flatMap((n) => model.stages[i].items[n].origins))];
  return numbers.map((n) => model.stages[0].items[n].label).join(", ");
};
