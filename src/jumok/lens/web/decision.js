// The decision of a classifier: its probabilities, which tokens and words decided, and which heads.

import { NeedsServer } from "jumok/api.js";
import { barChart } from "jumok/chart.js";
import { css, diverging, ink } from "jumok/colors.js";
import { choice, fill, h, number } from "jumok/dom.js";
import { figure } from "jumok/figure.js";
import { legend } from "jumok/heatmap.js";
import { showRanking } from "jumok/knockout.js";
import { loading } from "jumok/python.js";
import { shown } from "jumok/tensor.js";
import { t } from "jumok/texts.js";

export const id = "decision";
export const tasks = ["classifier"];

export async function show(root, app) {
  const reasons = h("section", { "aria-live": "polite" });
  const ranking = h("section", {});
  fill(root, h("p", { class: "lead" }, t("decision.lead")), await probabilities(app), reasons, ranking);
  showRanking(ranking, app, "zero", (key) => app.go({ view: "knockout", off: key }));
  const { label, other, model = 0 } = app.place;
  try {
    const found = await app.source.attribution({ model, text: app.trace.text, label, other });
    fill(reasons, explained(app, found));
  } catch (error) {
    fill(reasons, h("p", { class: "quiet" }, error instanceof NeedsServer ? t("status.needs_model") : error.message));
  }
}

/** The probabilities of a classifier of texts or pictures. */
export async function probabilities(app, width) {
  const [shares, scores] = await Promise.all(["class_probabilities", "class_scores"].map((name) => app.source.array(app.trace, name)));
  const { classes } = app.trace.facts;
  const order = [...classes.keys()].sort((a, b) => shares.data[b] - shares.data[a]);
  const rows = order.map((index) => ({ name: classes[index], values: [shares.data[index]], note: t("decision.score", { score: number(scores.data[index]) }) }));
  return figure({
    title: t("decision.probabilities"),
    caption: app.trace.glossary.class_probabilities.formula,
    picture: barChart({ rows, series: [t("column.probability")], range: [0, 1], label: t("decision.probabilities"), width }),
    name: "probabilities",
    python: `${loading(app)}found = model.classify(${JSON.stringify(app.inputOf(app.trace))}).probabilities\nvalues = sorted(found.items(), key=lambda one: -one[1])\n`,
  });
}

function explained(app, found) {
  const { classes } = app.trace.facts;
  const options = (except) => classes.filter((one) => one !== except).map((one) => [one, one]);
  const code = `${loading(app)}from jumok.lens import attribution\n\nfound = attribution(model, ${JSON.stringify(app.trace.text)}, label=${JSON.stringify(found.label)}, other=${JSON.stringify(found.other)})\n`;
  return [
    h("h2", {}, t("decision.why", { label: found.label, other: found.other })),
    h(
      "div",
      { class: "controls" },
      choice(t("decision.for"), options(found.other), found.label, (label) => app.go({ label, other: found.other })),
      choice(t("decision.against"), options(found.label), found.other, (other) => app.go({ label: found.label, other })),
    ),
    coloured(found),
    sum(found),
    figure({
      title: t("decision.words"),
      caption: t("decision.words.note"),
      picture: barChart({
        rows: found.words.map((word) => ({ name: word.text, values: [word.attribution, word.left_out] })),
        series: [t("decision.attribution"), t("decision.left_out")],
        label: t("decision.words"),
      }),
      name: "attribution-words",
      python: `${code}values = [(word.text, word.attribution, word.left_out) for word in found.words]\n`,
    }),
    figure({
      title: t("decision.tokens"),
      caption: t("decision.tokens.note"),
      picture: barChart({
        rows: found.tokens.map((token, index) => ({ name: shown(token, index, found.tokens), values: [found.encoder[index], found.ngrams[index]] })),
        series: [t("decision.encoder"), t("decision.ngrams")],
        label: t("decision.tokens"),
      }),
      name: "attribution-tokens",
      python: `${code}values = list(zip(found.tokens, found.encoder, found.ngrams))\n`,
    }),
  ];
}

/** The text, each token coloured by what it adds. */
function coloured(found) {
  const totals = found.tokens.map((_, index) => found.encoder[index] + found.ngrams[index]);
  const scale = diverging(Math.min(...totals), Math.max(...totals));
  const tokens = found.tokens.map((token, index) => {
    const color = scale.color(totals[index]);
    return h("li", { style: { background: css(color), color: ink(color) } }, h("strong", {}, shown(token, index, found.tokens)), h("span", { "data-attribution": index }, number(totals[index])));
  });
  return [legend(scale, {}), h("ol", { class: "tokens coloured" }, tokens)];
}

/** The parts add up: the sum, term by term, with what is missing in it. */
function sum(found) {
  const total = (values) => values.reduce((all, one) => all + one, 0);
  const parts = [
    ["baseline", found.baseline],
    ["encoder", total(found.encoder)],
    ["ngrams", total(found.ngrams)],
    ["error", found.error],
    ["difference", found.difference],
  ];
  return [
    h("dl", { class: "facts inline" }, parts.map(([key, value]) => h("div", {}, h("dt", {}, t(`decision.sum.${key}`)), h("dd", { "data-sum": key }, number(value, 4))))),
    h("p", { class: "quiet" }, t("decision.sum.note", { points: found.points })),
  ];
}
