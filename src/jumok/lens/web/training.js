// The training run: its curves, live while it goes on, and what it said about the same sentences over time.

import { fill, h, number } from "jumok/dom.js";
import { chart } from "jumok/chart.js";
import { figure } from "jumok/figure.js";
import { path } from "jumok/python.js";
import { showReplay } from "jumok/replay.js";
import { pictured } from "jumok/tables.js";
import { forTask, metric, t } from "jumok/texts.js";

const EVERY = 5000; // milliseconds between two looks at the log

export const id = "training";

export async function show(root, app) {
  const [curves, replay] = [h("div", {}), h("section", {})];
  await showCurves(curves, app);
  fill(root, curves, replay);
  await showReplay(replay, app);
}

/** What the log says; while the training goes on, it is looked at again and again. */
async function showCurves(root, app) {
  const log = await app.source.log();
  const trained = log.filter((entry) => entry.event === "train");
  const valid = log.filter((entry) => entry.event === "valid");
  const own = valid.filter((entry) => !entry.averaged); // averages of checkpoints are no steps of the training
  if (!trained.length && !valid.length) {
    fill(root, h("p", { class: "lead" }, t("training.none")));
    return;
  }
  const done = log.some((entry) => entry.event === "done");
  const last = trained.at(-1) ?? valid.at(-1);
  fill(
    root,
    h("p", { class: "lead" }, t("training.lead", { step: last.step.toLocaleString(), epoch: number(last.epoch, 1) })),
    h("div", { class: "two" }, figures(app, trained, own)),
    samples(app, valid),
  );
  if (app.source.live && !done) setTimeout(() => root.isConnected && showCurves(root, app), EVERY);
}

function figures(app, trained, valid) {
  const { task } = app.models[0];
  const line = (entries, key) => entries.filter((entry) => typeof entry[key] === "number").map((entry) => [entry.step, entry[key]]);
  const speed = trained.slice(1).map((entry, index) => [entry.step, (entry.tokens - trained[index].tokens) / (entry.seconds - trained[index].seconds)]);
  const pictures = [
    ["loss", [{ name: t("training.loss.train"), points: line(trained, "loss") }, { name: t("training.loss.valid"), points: line(valid, "loss") }]],
    ["lr", rates(trained, app.start.training ?? {})],
    ["score", scores(valid)],
    ["speed", [{ name: forTask("training.speed", task), points: speed }]],
  ];
  return pictures
    .filter(([, series]) => series.some((one) => one.points.length))
    .map(([name, series]) => figure({ title: forTask(`training.${name}`, task), picture: chart({ series: series.filter((one) => one.points.length), x: t("training.step"), y: forTask(`training.${name}`, task), width: 560 }), name: `training-${name}`, python: `${reading(app)}${CODE[name]}\n` }));
}

/** The learning rate, and the paper's formula with the peak and the warm-up of this run's settings. */
function rates(trained, { lr: peak, warmup }) {
  const points = trained.map((entry) => [entry.step, entry.lr]);
  const formula = peak && warmup ? points.map(([step]) => [step, peak * Math.min(step / warmup, Math.sqrt(warmup / step))]) : [];
  return [{ name: t("training.lr"), points }, { name: t("training.lr.paper", { peak, warmup }), points: formula, dashed: true }];
}

const pairs = (key, event, value = `entry["${key}"]`) => `[(entry["step"], ${value}) for entry in log if entry["event"] == "${event}" and "${key}" in entry${event === "valid" ? ' and "averaged" not in entry' : ""}]`;
const CODE = {
  loss: `values = ${pairs("loss", "train")} + ${pairs("loss", "valid")}`,
  lr: [
    `values = ${pairs("lr", "train")}`,
    'settings = (read_run(run) or {}).get("settings", {})',
    'peak, warmup = settings.get("optimizer", {}).get("lr"), settings.get("schedule", {}).get("warmup")',
    "if peak and warmup:  # the paper's formula",
    "    values += [(step, peak * min(step / warmup, (warmup / step) ** 0.5)) for step, _ in values]",
  ].join("\n"),
  score: `values = ${pairs("bleu", "valid")} + ${pairs("chrf", "valid")} + ${pairs("accuracy", "valid", '100 * entry["accuracy"]')}`,
  speed: [
    'trained = [entry for entry in log if entry["event"] == "train"]',
    "values = [",
    '    (after["step"], (after["tokens"] - before["tokens"]) / (after["seconds"] - before["seconds"]))',
    "    for before, after in zip(trained, trained[1:])",
    "]",
  ].join("\n"),
};

/** Lines that read the log of the run. */
function reading(app) {
  return `from pathlib import Path\n\nfrom jumok.training.records import read_log, read_run\n\nrun = Path(${path(app)})\nlog = read_log(run)\n`;
}

function scores(valid) {
  const names = ["bleu", "chrf", "accuracy"].filter((name) => valid.some((entry) => typeof entry[name] === "number"));
  return names.map((name) => ({ name: metric(name), points: valid.filter((entry) => typeof entry[name] === "number").map((entry) => [entry.step, name === "accuracy" ? 100 * entry[name] : entry[name]]) }));
}

/** What the model said about the same sentences at each validation. */
function samples(app, valid) {
  const shown = valid.filter((entry) => Array.isArray(entry.samples) && entry.samples.length);
  if (!shown.length) return null;
  const said = (entry, index) => entry.samples[index]?.output ?? entry.samples[index]?.hypothesis ?? "";
  const when = (entry) => (entry.averaged ? t(`training.averaged.${entry.averaged}`) : entry.step.toLocaleString());
  const sources = shown[0].samples.map((sample) => sample.source ?? sample.text);
  const element = h(
    "div",
    {},
    sources.map((source, index) =>
      h(
        "details",
        { open: index === 0 },
        h("summary", {}, source),
        h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", {}, t("training.step")), h("th", {}, t("column.output")))), h("tbody", {}, shown.map((entry) => h("tr", {}, h("th", { scope: "row" }, when(entry)), h("td", {}, said(entry, index)))))),
      ),
    ),
  );
  const rows = sources.flatMap((source, index) => shown.map((entry) => [source, entry.step, said(entry, index)]));
  const python = `${reading(app)}valid = [entry for entry in log if entry["event"] == "valid" and entry.get("samples")]\nvalues = [(entry["step"], entry["samples"][place]["output"]) for place in range(${sources.length}) for entry in valid]\n`;
  return figure({ title: t("training.samples"), picture: pictured(element, ["input", "step", "output"], rows), name: "samples", python });
}
