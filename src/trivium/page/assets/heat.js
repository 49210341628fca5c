"use strict";
// The times of a profile, on everything that launches came from or became. A launch computes several ops: each of them, and
// its line, has the launch's whole time; of several ops, a launch that computes some of them counts once.
trivium.addTimes = function (model) {
  if (!model.times) return;
  const launches = model.stages.find((stage) => stage.name === "launches");
  model.launches = launches;
  launches.items.forEach((item) => { item.launches = new Set(); });
  for (const time of model.times.steps) {
    launches.items[time.number].time = time;
    launches.items[time.number].launches.add(time.number);
  }
  const collect = (stage, links, next) => {
    for (const item of stage.items) item.launches = new Set(item[links].flatMap((n) => [...next.items[n].launches]));
  };
  for (let i = launches.index; i > 0; i--) collect(model.stages[i - 1], "results", model.stages[i]);
  for (let i = launches.index; i + 1 < model.stages.length; i++) collect(model.stages[i + 1], "origins", model.stages[i]);
  for (const stage of model.stages) for (const item of stage.items) item.seconds = trivium.secondsOf(model, [item]);
  for (const stage of model.stages) {
    stage.most = stage.items.reduce((most, item) => Math.max(most, item.seconds), 0);
    for (const group of stage.groups) group.seconds = trivium.secondsOf(model, trivium.itemsOf(group));
  }
};

trivium.secondsOf = (model, items) => {
  const launches = new Set(items.flatMap((item) => [...(item.launches || [])]));
  return [...launches].reduce((sum, n) => sum + model.launches.items[n].time.seconds, 0);
};

trivium.time = (seconds) => {
  const [by, unit] = seconds < 1e-3 ? [1e6, "us"] : seconds < 1 ? [1e3, "ms"] : [1, "s"], value = seconds * by;
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${unit}`;
};

trivium.percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

// The time of items in words, for details.
trivium.timeOf = (model, items) => {
  const seconds = model.times ? trivium.secondsOf(model, items) : 0;
  if (!seconds) return "";
  const whole = `${trivium.time(seconds)}, ${trivium.percent(seconds / model.times.seconds)} of a run`;
  const count = new Set(items.flatMap((item) => [...item.launches])).size;
  return items[0].stage === model.launches ? whole : `${whole}, in ${count} launch${count > 1 ? "es" : ""}`;
};

// How warm a time is, from 0 to 100, for the colour beside the number.
trivium.warmth = (seconds, most) => (most ? Math.round(100 * Math.sqrt(seconds / most)) : 0);
