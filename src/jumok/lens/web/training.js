// The training run: its curves, live while it goes on, and what it said about the same sentences over time.

import { fill, h, number } from "jumok/dom.js";
import { chart } from "jumok/chart.js";
import { figure } from "jumok/figure.js";
import { showReplay } from "jumok/replay.js";
import { t } from "jumok/texts.js";

const EVERY = 5000; // milliseconds between two looks at the log

export const id = "training";

export async function show(root, app) {
  const log = await app.source.log();
  const trained = log.filter((entry) => entry.event === "train");
  const valid = log.filter((entry) => entry.event === "valid");
  if (!trained.length && !valid.length) {
    fill(root, h("p", { class: "lead" }, t("training.none")));
    return;
  }
  const done = log.some((entry) => entry.event === "done");
  const last = trained.at(-1) ?? valid.at(-1);
  const replay = h("section", {});
  fill(
    root,
    h("p", { class: "lead" }, t("training.lead", { step: last.step.toLocaleString(), epoch: number(last.epoch, 1) })),
    h("div", { class: "two" }, figures(trained, valid)),
    samples(valid),
    replay,
  );
  showReplay(replay, app);
  if (app.source.live && !done) setTimeout(() => app.place.view === id && app.render(), EVERY);
}

function figures(trained, valid) {
  const line = (entries, key) => entries.filter((entry) => typeof entry[key] === "number").map((entry) => [entry.step, entry[key]]);
  const speed = trained.slice(1).map((entry, index) => [entry.step, (entry.tokens - trained[index].tokens) / (entry.seconds - trained[index].seconds)]);
  const pictures = [
    ["loss", [{ name: t("training.loss.train"), points: line(trained, "loss") }, { name: t("training.loss.valid"), points: line(valid, "loss") }]],
    ["lr", rates(trained)],
    ["score", scores(valid)],
    ["speed", [{ name: t("training.speed"), points: speed }]],
  ];
  return pictures
    .filter(([, series]) => series.some((one) => one.points.length))
    .map(([name, series]) => figure({ title: t(`training.${name}`), picture: chart({ series: series.filter((one) => one.points.length), x: t("training.step"), y: t(`training.${name}`), width: 560 }), name: `training-${name}` }));
}

/** The learning rate, and the warm-up formula of the paper with the same peak. */
function rates(trained) {
  const points = trained.map((entry) => [entry.step, entry.lr]);
  const peak = points.reduce((best, point) => (point[1] > best[1] ? point : best), [1, 0]);
  const formula = points.map(([step]) => [step, peak[1] * Math.min(Math.sqrt(peak[0] / step), step / peak[0])]);
  return [{ name: t("training.lr"), points }, { name: t("training.lr.paper"), points: formula, dashed: true }];
}

function scores(valid) {
  const names = ["bleu", "chrf", "accuracy"].filter((name) => valid.some((entry) => typeof entry[name] === "number"));
  return names.map((name) => ({ name, points: valid.filter((entry) => typeof entry[name] === "number").map((entry) => [entry.step, name === "accuracy" ? 100 * entry[name] : entry[name]]) }));
}

/** What the model said about the same sentences at each validation. */
function samples(valid) {
  const shown = valid.filter((entry) => Array.isArray(entry.samples) && entry.samples.length);
  if (!shown.length) return null;
  const sources = shown[0].samples.map((sample) => sample.source ?? sample.text);
  return [
    h("h2", {}, t("training.samples")),
    sources.map((source, index) =>
      h(
        "details",
        { open: index === 0 },
        h("summary", {}, source),
        h(
          "table",
          { class: "plain" },
          h("tbody", {}, shown.map((entry) => h("tr", {}, h("th", { scope: "row" }, entry.step.toLocaleString()), h("td", {}, entry.samples[index]?.output ?? entry.samples[index]?.hypothesis ?? "")))),
        ),
      ),
    ),
  ];
}
