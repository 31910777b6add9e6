// The surprise of a language model: how unexpected each token was, and what each layer would already have said.

import { barChart } from "jumok/chart.js";
import { css, ink, sequential } from "jumok/colors.js";
import { fill, h, number } from "jumok/dom.js";
import { figure } from "jumok/figure.js";
import { legend } from "jumok/heatmap.js";
import { list, python, traced } from "jumok/python.js";
import { pictured } from "jumok/tables.js";
import { alone, shown } from "jumok/tensor.js";
import { t } from "jumok/texts.js";

export const id = "surprise";
export const tasks = ["language_model"];

export async function show(root, app) {
  const { trace } = app;
  const bits = (await app.source.array(trace, "surprise")).data;
  const tokens = trace.sides.chosen.map((token, index) => shown(token, index, trace.sides.chosen));
  const scale = sequential(0, Math.max(...bits));
  const step = Math.min(app.place.step ?? 0, tokens.length - 1);
  const total = bits.reduce((sum, one) => sum + one, 0);
  fill(
    root,
    h("p", { class: "lead" }, t("surprise.lead")),
    legend(scale, {}),
    h(
      "ol",
      { class: "tokens coloured" },
      tokens.map((token, index) => {
        const color = scale.color(bits[index]);
        const label = t("surprise.token", { token, bits: number(bits[index], 2) });
        return h(
          "li",
          { style: { background: css(color), color: ink(color) } },
          h("button", { type: "button", class: "bare", "aria-pressed": String(index === step), "aria-label": label, onclick: () => app.go({ step: index }) }, h("strong", {}, token), h("span", { "data-bits": index }, number(bits[index], 2))),
        );
      }),
    ),
    h(
      "dl",
      { class: "facts inline" },
      [["total", total], ["mean", total / bits.length], ["perplexity", 2 ** (total / bits.length)]].map(([key, value]) => h("div", {}, h("dt", {}, t(`surprise.${key}`)), h("dd", { "data-surprise": key }, number(value, 2)))),
    ),
    figure({
      title: t("surprise.bars"),
      caption: trace.glossary.surprise.formula,
      picture: barChart({ rows: tokens.map((name, index) => ({ name, values: [bits[index]] })), series: [t("surprise.bits")], label: t("surprise.bars") }),
      name: "surprise",
      python: python(app, "surprise"),
    }),
    expected(app, step, tokens),
    await layers(app, tokens, step),
  );
}

/** What the model expected where the chosen token came. */
function expected(app, step, tokens) {
  const { chosen, top } = app.trace.predictions[step];
  const rows = [...top, ...(top.some((one) => one.id === chosen.id) ? [] : [chosen])];
  const names = ["token", "id", "probability"];
  const element = h(
    "table",
    { class: "top" },
    h("thead", {}, h("tr", {}, names.map((name) => h("th", {}, t(`column.${name}`))))),
    h(
      "tbody",
      {},
      rows.map((one) =>
        h("tr", { "aria-current": one.id === chosen.id ? "true" : null }, h("td", {}, alone(one.text)), h("td", {}, String(one.id)), h("td", {}, h("span", { class: "share", style: { width: `${100 * one.probability}%` } }), h("span", { "data-probability": one.id }, number(one.probability)))),
      ),
    ),
  );
  const python = `import numpy as np\n\n${traced(app)}probabilities = found["probabilities"].values[${step}]\nvalues = [(token, probabilities[token]) for token in ${list(rows.map((one) => one.id))}]\n`;
  return figure({
    title: t("surprise.expected", { token: tokens[step] }),
    caption: t("surprise.expected.note"),
    picture: pictured(element, names, rows.map((one) => [one.text, one.id, one.probability])),
    name: `expected-${step}`,
    python,
  });
}

/** A row a layer, a column a token: what this layer would already say there. */
async function layers(app, tokens, step) {
  const names = Object.keys(app.trace.arrays).filter((name) => name.endsWith(".layer_ids"));
  const rows = await Promise.all(
    names.map(async (name) => {
      const [ids, shares] = await Promise.all([name, name.replace("layer_ids", "layer_probabilities")].map((one) => app.source.array(app.trace, one)));
      return { layer: name.split(".")[1], ids: ids.matrix(), shares: shares.matrix() };
    }),
  );
  const scale = sequential(0, 1);
  const cell = (row, index) => {
    const [token, share] = [row.ids.at(index, 0), row.shares.at(index, 0)];
    const color = scale.color(share);
    const right = token === app.trace.facts.chosen[index];
    return h("td", { class: right ? "right" : null, style: { background: css(color), color: ink(color) }, title: number(share) }, said(app, token), h("small", { "data-layer": `${row.layer}/${index}` }, number(share, 2)));
  };
  const columns = tokens.map((token, index) => h("th", { scope: "col", "aria-current": index === step ? "true" : null }, token));
  const element = h(
    "div",
    { class: "map-scroller", tabindex: "0", role: "region", "aria-label": t("surprise.layers") },
    h(
      "table",
      { class: "layers" },
      h("thead", {}, h("tr", {}, h("th", {}, t("axis.layer")), columns)),
      h("tbody", {}, rows.reverse().map((row) => h("tr", {}, h("th", { scope: "row" }, row.layer), tokens.map((_, index) => cell(row, index))))),
    ),
  );
  const shares = rows.map((row) => [row.layer, ...tokens.map((_, index) => row.shares.at(index, 0))]);
  const picture = pictured(element, ["layer", ...tokens], shares, {
    text: (row, column) => (column ? `${said(app, rows[row].ids.at(column - 1, 0))} ${number(shares[row][column], 2)}` : shares[row][0]),
    color: (row, column) => (column ? scale.color(shares[row][column]) : null),
  });
  const code = `${traced(app)}layers = range(${rows.length - 1}, -1, -1)\nvalues = [found[f"decoder.{layer}.layer_probabilities"].values[:, 0] for layer in layers]\n`;
  return figure({ title: t("surprise.layers"), caption: t("surprise.layers.note"), extra: legend(scale, {}), picture, name: "layers", python: code });
}

/** The text of a token that a layer would say. */
function said(app, token) {
  return alone(app.trace.tokens[token] ?? `#${token}`);
}
