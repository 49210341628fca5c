"use strict";
// Puts the page together: the picture, the stages beside it, details, search and keys.
const ROOMY = 1900; // the width from which on launches fit beside their profile

trivium.start = function (data) {
  const { element } = trivium;
  const model = trivium.readModel(data);
  const graphs = model.stages.filter((stage) => stage.groups.length);
  const pictures = new Map();
  const details = element("aside", { class: "details", "aria-label": "selection", onscroll: () => { scrolled = details.scrollTop > 0; } });
  const said = element("p", { class: "said", "aria-live": "polite" });
  const frame = element("div", { class: "frame" });
  let shown = null, scrolled = false;

  // A pane that is hidden shows the selection when it is shown.
  const light = (pane, ...selection) => {
    pane.waiting = pane.root.hidden ? selection : null;
    if (!pane.waiting) pane.highlight(...selection);
  };

  const select = (items, from, group, spot) => {
    const related = trivium.related(model, items, spot), lines = trivium.linesOfKernels(model, items, related, spot);
    for (const listing of listings.values()) light(listing, related[listing.stage.index], from, lines);
    for (const picture of pictures.values()) picture.highlight(related[picture.stage.index], from, group);
    if (panel) light(panel, related[model.launches.index], from, group);
    if (passes) light(passes, related[passes.program.index], from);
    details.replaceChildren(...trivium.details(model, items, group, related, select, spot));
    if (scrolled) details.scrollTop = 0;
    trivium.selection = { items, related, spot, lines };
    const counts = model.stages.map((stage, i) => (related[i].size ? `${related[i].size} in ${stage.title}` : "")).filter(Boolean);
    said.textContent = items.length ? `${group ? trivium.pathOf(group) : items[0].label}: ${counts.join(", ")}` : "nothing selected";
  };

  const show = (stage) => {
    if (!pictures.has(stage.name)) {
      const picture = new trivium.Picture(stage, select);
      picture.onMove = (part) => { said.textContent = part.group ? `${part.group.name}, ${trivium.summary(part.group)}` : `${part.item.label} ${part.item.type || ""}`; };
      pictures.set(stage.name, picture);
    }
    shown = pictures.get(stage.name);
    frame.replaceChildren(shown.svg);
    if (!shown.boxes) {
      shown.draw();
      shown.fit(0.85);
      if (trivium.selection) shown.highlight(trivium.selection.related[stage.index]);
    }
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.dataset.stage === stage.name));
  };

  const tabs = graphs.map((stage) => element("button", { "data-stage": stage.name, onclick: () => show(stage) }, stage.title));
  const zoom = [["−", "smaller (-)", () => shown.zoom(0.8)], ["+", "larger (+)", () => shown.zoom(1.25)], ["fit", "everything (0)", () => shown.fit()]].map(
    ([sign, title, onclick]) => element("button", { title, "aria-label": title, onclick }, sign));
  const picture = element("section", { class: "pane picture", "aria-label": "graph" }, element("h2", {}, ...tabs, element("span", { class: "gap" }), ...zoom), frame, details);

  const listings = new Map(model.stages.filter((stage) => stage.lines.length).map((stage) => [stage.name, new trivium.Listing(stage, select)]));
  const panel = model.times ? new trivium.Panel(model, select) : null;
  const passes = model.passes && model.passes.passes.length ? new trivium.Passes(model, select) : null;
  const beside = new Map([...listings, ...(panel ? [["profile", panel]] : []), ...(passes ? [["passes", passes]] : [])]);
  const panes = element("main", {}, picture, ...[...beside.values()].map((pane) => pane.root));
  const names = [...beside.keys()];
  const wanted = new Set(model.small ? [] : panel ? ["source", ...(innerWidth < ROOMY ? [] : ["launches"]), "profile"] : names.includes("graph") ? ["source", "graph", "kernels"] : names.slice(0, 2));
  if (model.open) wanted.add(model.open);
  const switches = names.map((name, i) => element("button", { "data-pane": name, title: `show or hide (${i + 1})`, onclick: () => flip(name) }, `${i + 1} ${beside.get(name).title}`));
  const flip = (name, on) => {
    const { root } = beside.get(name), button = switches[names.indexOf(name)];
    root.hidden = on === undefined ? !root.hidden : !on;
    button.setAttribute("aria-pressed", String(!root.hidden));
    const pane = beside.get(name);
    if (pane.waiting) light(pane, ...pane.waiting);
  };
  for (const name of names) flip(name, wanted.has(name));

  const search = new trivium.Search(model, (item) => {
    if (item.stage.groups.length) { show(item.stage); if (!item.hidden) shown.reveal(item); }
    if (listings.has(item.stage.name)) flip(item.stage.name, true);
    select([item]);
  });
  const theme = () => {
    const dark = getComputedStyle(document.documentElement).getPropertyValue("color-scheme").trim() === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.theme = dark ? "light" : "dark";
  };
  const stepped = (key) => { if (passes && "[]{}".includes(key)) { flip("passes", true); return passes.key(key); } return false; };
  const hottest = (by) => { if (panel) select([panel.hotter(by)]); };
  const help = trivium.help(names.length, panel, passes);
  const facts = Object.entries(model.facts).map(([name, value]) => `${name} ${value}`).join(" · ");
  document.body.append(
    element("header", {}, element("h1", {}, model.title), element("span", { class: "facts" }, facts), search.root,
      element("nav", { "aria-label": "stages" }, ...switches), element("button", { title: "dark or light (d)", "aria-label": "dark or light", onclick: theme }, "◐"),
      element("button", { title: "keys (?)", "aria-label": "keys", onclick: () => help.showModal() }, "?")),
    panes, said, help);
  show(graphs[graphs.length - 1]);
  if (panel) panel.show("Table");
  select([]);
  for (const listing of listings.values()) listing.skipConstants();

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.key === "/") search.input.focus();
    else if (event.key === "Escape") select([]);
    else if (event.key === "?") help.showModal();
    else if (event.key === "d") theme();
    else if (event.key === "g") shown.svg.focus();
    else if (event.key === "h" || event.key === "H") hottest(event.key === "h" ? 1 : -1);
    else if (event.key === "t") show(graphs[(graphs.indexOf(shown.stage) + 1) % graphs.length]);
    else if (stepped(event.key)) { /* done */ }
    else if (Number(event.key) >= 1 && Number(event.key) <= names.length) flip(names[Number(event.key) - 1]);
    else return;
    event.preventDefault();
  });
  Object.assign(trivium, { model, select, listings, pictures, panel, passes, show, search });
};

trivium.help = function (count, panel, passes) {
  const { element } = trivium;
  const keys = {
    "/": "search", "Esc": "select nothing", [`1 … ${count}`]: "show or hide a stage", "g": "to the graph", "t": "the other graph", "d": "dark or light",
    ...(panel ? { "h  H": "the launch that takes longest, then the next one, or the one before" } : {}),
    ...(passes ? { "[  ]": "the previous or next rewrite of the optimizer", "{  }": "its previous or next pass" } : {}),
    "arrows": "in the graph: to the next box; in a text: to the next line", "Enter": "in the graph: open or close a group, select an op",
    "space": "in the graph: select a group or an op", "+  −  0": "in the graph: larger, smaller, everything", "n  p": "in a text: next or previous highlighted line",
  };
  return element("dialog", { "aria-label": "keys" }, element("h2", {}, "Keys"), trivium.rows(keys),
    element("p", {}, "▶ selected  ◂ what it came from  ▸ what it became"),
    element("form", { method: "dialog" }, element("button", {}, "close")));
};

trivium.unpack(document.getElementById("data").textContent).then(trivium.start).catch((error) => {
  document.body.append(`This page could not be shown: ${error}. It needs a browser of 2023 or later.`);
  throw error;
});
