"use strict";
// Search over all stages: every word must occur in an item's name, type, path, or in one of its facts.
trivium.Search = class {
  static MOST = 60;

  constructor(model, onChoose) {
    this.model = model;
    this.onChoose = onChoose;
    this.results = [];
    this.at = -1;
    const { element } = trivium;
    this.list = element("ul", { class: "results", role: "listbox", id: "results", hidden: true, "aria-label": "results" });
    this.input = element("input", {
      type: "search", placeholder: "Search: name, op, type, shape  (/)", "aria-label": "Search by name, op, type or shape", role: "combobox",
      "aria-controls": "results", "aria-expanded": "false", autocomplete: "off", spellcheck: "false",
      oninput: () => this.update(), onkeydown: (event) => this.key(event), onblur: () => setTimeout(() => this.close(), 150), onfocus: () => this.update(),
    });
    this.root = element("div", { class: "search", role: "search" }, this.input, this.list);
  }

  text(item) {
    if (item.text === undefined) item.text = [item.label, item.type, item.path, item.kind, ...Object.values(item.facts || {})].join(" ").toLowerCase();
    return item.text;
  }

  find(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return this.model.stages.flatMap((stage) => stage.items.filter((item) => words.every((word) => this.text(item).includes(word))));
  }

  update() {
    const { element } = trivium, found = this.find(this.input.value);
    this.results = found.slice(0, trivium.Search.MOST);
    this.at = this.results.length ? 0 : -1;
    const rows = this.results.map((item, i) =>
      element("li", { role: "option", id: `result-${i}`, onmousedown: () => this.choose(i) },
        element("b", {}, item.label), " ", element("span", { class: "about" }, trivium.short(item.type)), element("span", { class: "where" }, [item.path, item.stage.title].filter(Boolean).join(" · "))));
    const total = this.input.value.trim() ? [element("li", { class: "total" }, found.length > rows.length ? `${rows.length} of ${found.length}` : `${found.length} found`)] : [];
    this.list.replaceChildren(...total, ...rows);
    this.list.hidden = !total.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.mark();
  }

  mark() {
    this.list.querySelectorAll("[role=option]").forEach((row, i) => {
      row.setAttribute("aria-selected", String(i === this.at));
      if (i === this.at) row.scrollIntoView({ block: "nearest" });
    });
    if (this.at >= 0) this.input.setAttribute("aria-activedescendant", `result-${this.at}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const by = event.key === "ArrowDown" ? 1 : -1;
      if (this.results.length) this.at = (this.at + by + this.results.length) % this.results.length;
      this.mark();
      event.preventDefault();
    } else if (event.key === "Enter" && this.at >= 0) this.choose(this.at);
    else if (event.key === "Escape") { this.input.value = ""; this.close(); this.input.blur(); }
    event.stopPropagation();
  }

  choose(i) {
    this.onChoose(this.results[i]);
    this.close();
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }
};
