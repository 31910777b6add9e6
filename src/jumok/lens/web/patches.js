// A classifier of pictures: its probabilities, what each patch adds to the decision, and which patches are attended to.

import { diverging, sequential } from "jumok/colors.js";
import { probabilities } from "jumok/decision.js";
import { choice, fill, h, number } from "jumok/dom.js";
import { figure } from "jumok/figure.js";
import { legend } from "jumok/heatmap.js";
import { MeanAttention, PictureGrid } from "jumok/picture.js";
import { traced } from "jumok/python.js";
import { t } from "jumok/texts.js";

export const id = "patches";
export const tasks = ["image_classifier"];

export async function show(root, app) {
  const names = ["picture", "class_scores", "patch_scores", "hidden_scores"];
  const [picture, scores, parts, hidden] = await Promise.all(names.map((name) => app.source.array(app.trace, name)));
  const decision = { ...twoClasses(app, scores), scores, parts: parts.matrix(), hidden: hidden?.matrix() }; // a trace in a notebook may be without
  const attention = await MeanAttention.of(app, "encoder.*.self");
  const { classes } = app.trace.facts;
  const options = (except) => classes.map((name, index) => [String(index), name]).filter(([index]) => Number(index) !== except);
  fill(
    root,
    h("p", { class: "lead" }, t("patches.lead")),
    h("div", { class: "two top" }, original(app, picture, decision), await probabilities(app, 520)),
    h("h2", {}, t("decision.why", { label: classes[decision.chosen], other: classes[decision.other] })),
    h(
      "div",
      { class: "controls" },
      choice(t("decision.for"), options(decision.other), String(decision.chosen), (index) => app.go({ label: classes[index], other: classes[decision.other] })),
      choice(t("decision.against"), options(decision.chosen), String(decision.other), (index) => app.go({ label: classes[decision.chosen], other: classes[index] })),
    ),
    h("div", { class: "two" }, added(app, picture, decision), hidden && lost(app, picture, decision)),
    sum(decision),
    h("h2", {}, t("patches.attention")),
    h("p", { class: "quiet" }, t("patches.attention.note")),
    h("div", { class: "controls" }, attention.controls()),
    h("div", { class: "two" }, attended(app, picture, attention, null), attended(app, picture, attention, selectedOf(app, decision))),
  );
}

/** The class that is explained, and the one that it is compared with: those of the page, or the two most probable. */
function twoClasses(app, scores) {
  const { classes } = app.trace.facts;
  const order = [...classes.keys()].sort((a, b) => scores.data[b] - scores.data[a]);
  const [label, against] = [classes.indexOf(app.place.label), classes.indexOf(app.place.other)];
  const chosen = label >= 0 ? label : order.find((one) => one !== against);
  return { chosen, other: against >= 0 && against !== chosen ? against : order.find((one) => one !== chosen) };
}

/** The patch that was chosen, or the one without which most is lost. */
function selectedOf(app, { chosen, other, parts, hidden }) {
  const left = (cell) => (hidden ? hidden.at(cell, chosen) - hidden.at(cell, other) : 0);
  const most = [...Array(parts.rows).keys()].reduce((best, cell) => (left(cell) < left(best) ? cell : best), 0);
  return Math.min(app.place.query ?? most, parts.rows - 1);
}

/** What all pictures of this page have in common. */
function common(app, picture, selected) {
  const { grid, config } = app.trace.facts;
  return { picture, grid, patch: config.patch, selected, onselect: (query) => app.go({ query }) };
}

function placeOf(app, cell) {
  const [, columns] = app.trace.facts.grid;
  return t("patches.place", { row: Math.floor(cell / columns), column: cell % columns });
}

function original(app, picture, decision) {
  const { config, grid } = app.trace.facts;
  const describe = (cell) => placeOf(app, cell);
  return figure({
    title: t("patches.picture"),
    caption: t("patches.picture.note", { width: picture.shape[1], height: picture.shape[0], patch: config.patch, count: grid[0] * grid[1] }),
    picture: new PictureGrid({ ...common(app, picture, selectedOf(app, decision)), describe, label: t("patches.picture") }),
    name: "picture",
    python: `${traced(app)}values = found["picture"].values  # row × column × channel\n`,
  });
}

/** A map of a value of each patch, blue against the class and red for it. */
function decisive(app, picture, decision, value, key, python) {
  const [rows, columns] = app.trace.facts.grid;
  const values = Array.from({ length: rows * columns }, (_, cell) => value(cell));
  const scale = diverging(Math.min(...values), Math.max(...values));
  const describe = (cell) => `${placeOf(app, cell)}: ${number(values[cell], 4)}`;
  return figure({
    title: t(`patches.${key}`),
    caption: t(`patches.${key}.note`),
    picture: new PictureGrid({ ...common(app, picture, selectedOf(app, decision)), value: (cell) => values[cell], scale, describe, label: t(`patches.${key}`) }),
    name: `patches-${key}`,
    python: `${traced(app, ["hide=True"])}${python}values = values.reshape(${rows}, ${columns})\n`,
    extra: legend(scale, {}),
  });
}

function added(app, picture, decision) {
  const { chosen, other, parts } = decision;
  const python = `parts = found["patch_scores"].values  # position × class\nvalues = parts[:, ${chosen}] - parts[:, ${other}]\n`;
  return decisive(app, picture, decision, (cell) => parts.at(cell, chosen) - parts.at(cell, other), "added", python);
}

function lost(app, picture, decision) {
  const { chosen, other, scores, hidden } = decision;
  const python = `scores, hidden = found["class_scores"].values, found["hidden_scores"].values  # position × class\nvalues = scores[${chosen}] - scores[${other}] - (hidden[:, ${chosen}] - hidden[:, ${other}])\n`;
  const difference = scores.data[chosen] - scores.data[other];
  return decisive(app, picture, decision, (cell) => difference - (hidden.at(cell, chosen) - hidden.at(cell, other)), "lost", python);
}

/** The parts add up to the difference of the scores; what the patches do not add is the bias of the last layer. */
function sum({ chosen, other, scores, parts }) {
  let patches = 0;
  for (let cell = 0; cell < parts.rows; cell += 1) patches += parts.at(cell, chosen) - parts.at(cell, other);
  const difference = scores.data[chosen] - scores.data[other];
  const terms = [["patches", patches], ["bias", difference - patches], ["difference", difference]];
  return h("dl", { class: "facts inline" }, terms.map(([key, value]) => h("div", {}, h("dt", {}, t(`patches.sum.${key}`)), h("dd", { "data-sum": key }, number(value, 4)))));
}

/** How much each patch is attended to: by one patch, the query, or by all of them in the mean. */
function attended(app, picture, attention, query) {
  const [rows, columns] = app.trace.facts.grid;
  const { matrix } = attention;
  const mean = (cell) => Array.from({ length: matrix.rows }, (_, row) => matrix.at(row, cell)).reduce((a, b) => a + b, 0) / matrix.rows;
  const values = Array.from({ length: matrix.columns }, (_, cell) => (query === null ? mean(cell) : matrix.at(query, cell)));
  const scale = sequential(0, Math.max(...values));
  const python = `values = weights${query === null ? ".mean(0)" : `[${query}]`}.reshape(${rows}, ${columns})\n`;
  return figure({
    title: query === null ? t("patches.attended") : t("patches.attended.by", { place: placeOf(app, query) }),
    caption: attention.names.length > 1 ? "encoder.*.self.weights" : attention.names[0],
    picture: new PictureGrid({ ...common(app, picture, query ?? undefined), value: (cell) => values[cell], scale, describe: (cell) => `${placeOf(app, cell)}: ${number(values[cell])}`, label: t("patches.attention") }),
    name: query === null ? "patches-attended" : "patches-attention",
    python: attention.python() + python,
    extra: legend(scale, {}),
  });
}
