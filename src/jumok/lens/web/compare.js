// Two sentences, or two models: their outputs, scores, and where their attention differs.

import { hiddenCells } from "jumok/atlas.js";
import { diverging } from "jumok/colors.js";
import { choice, fill, h, number, writing } from "jumok/dom.js";
import { figure } from "jumok/figure.js";
import { Heatmap, legend } from "jumok/heatmap.js";
import { NeedsServer } from "jumok/api.js";
import { loading, tracing } from "jumok/python.js";
import { shown } from "jumok/tensor.js";
import { t } from "jumok/texts.js";

export const id = "compare";
export const tasks = ["translator", "classifier", "language_model"];

export async function show(root, app) {
  const { place } = app;
  const models = app.models.map((model) => [String(model.id), model.title]);
  const input = h("input", { type: "text", class: "wide", value: place.other ?? app.trace.text, "aria-label": t("compare.other"), ...writing((other) => app.go({ other }), 300) });
  const result = h("section", { "aria-live": "polite" });
  fill(
    root,
    h("p", { class: "lead" }, t("compare.lead")),
    h(
      "div",
      { class: "controls" },
      h("label", { class: "field grow" }, h("span", {}, t("compare.other")), input),
      models.length > 1 && choice(t("compare.model"), models, String(place.with ?? place.model ?? 0), (next) => app.go({ with: Number(next) })),
    ),
    result,
  );
  try {
    const request = { model: Number(place.with ?? place.model ?? 0), text: place.other ?? app.trace.text };
    await showDifference(result, app, await app.source.trace(request), request.model);
  } catch (error) {
    fill(result, h("p", { class: "quiet" }, error instanceof NeedsServer ? t("status.needs_model") : error.message));
  }
}

async function showDifference(root, app, other, model) {
  const [one, two] = [app.trace, other];
  const names = Object.keys(one.arrays).filter((name) => name.endsWith(".weights") && same(one.arrays[name].shape, two.arrays[name]?.shape));
  const score = (trace) => trace.search && trace.search.nodes[trace.search.best].score;
  fill(
    root,
    h(
      "table",
      { class: "plain" },
      h("thead", {}, h("tr", {}, h("th", {}), h("th", {}, t("column.input")), h("th", {}, t("column.output")), h("th", {}, t("column.score")))),
      h("tbody", {}, [one, two].map((trace, index) => h("tr", {}, h("th", { scope: "row" }, index ? "B" : "A"), h("td", {}, trace.text), h("td", {}, trace.output), h("td", {}, score(trace) === null ? "" : number(score(trace)))))),
      score(one) !== null && h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "B − A"), h("td", {}), h("td", {}), h("td", { "data-difference": "score" }, number(score(two) - score(one))))),
    ),
    names.length ? await differenceMap(app, one, two, names, model) : h("p", { class: "quiet" }, t("compare.lengths")),
  );
}

async function differenceMap(app, one, two, names, model) {
  const name = names.includes(app.place.name) ? app.place.name : names[names.length - 1];
  const [a, b] = await Promise.all([app.source.array(one, name), app.source.array(two, name)]);
  const leading = a.axes[0] === "window" ? [0] : [];
  const head = Math.min(app.place.head ?? 0, a.shape[leading.length] - 1);
  const [left, right] = [a.matrix(...leading, head), b.matrix(...leading, head)];
  const [stack] = name.split(".");
  const side = (axis) => (axis === "key" && name.includes(".cross.") ? "encoder" : stack);
  const both = (axis) => one.sides[side(axis)].map((token, index) => joined(shown(token, index, one.sides[side(axis)]), shown(two.sides[side(axis)][index], index, two.sides[side(axis)])));
  const difference = (r, c) => right.at(r, c) - left.at(r, c);
  let most = 0;
  left.data.forEach((value, index) => (most = Math.max(most, Math.abs(right.data[index] - value))));
  const scale = diverging(-most, most);
  const causal = name.startsWith("decoder.") && name.includes(".self.");
  const hidden = await hiddenCells(app, { attention: name.replace(/\.weights$/, ""), leading }, causal ? "decoder.self" : "");
  const [rows, columns] = [both("query"), both("key")];
  const picture = new Heatmap({ rows, columns, value: difference, hidden, scale, rowTitle: t("axis.query"), columnTitle: t("axis.key"), label: t("compare.map"), numbers: columns.length <= 24, describe: (r, c) => hidden(r, c) ? t("atlas.masked", { query: rows[r], key: columns[c] }) : t("compare.cell", { query: rows[r], key: columns[c], a: number(left.at(r, c)), b: number(right.at(r, c)), value: number(difference(r, c)) }) });
  return h(
    "div",
    {},
    h(
      "div",
      { class: "controls" },
      choice(t("softhard.attention"), names.map((each) => [each, each.replace(/\.weights$/, "")]), name, (next) => app.go({ name: next })),
      choice(t("axis.head"), Array.from({ length: a.shape[leading.length] }, (_, index) => [String(index), String(index)]), String(head), (next) => app.go({ head: Number(next) })),
    ),
    figure({ title: t("compare.map"), caption: `${name} · B − A`, picture, name: "difference", python: subtracting(app, two, model, name, [...leading, head]), extra: legend(scale, { future: causal ? t("mask.future") : "" }) }),
  );
}

function subtracting(app, other, model, name, indices) {
  const part = `[${JSON.stringify(name)}].values${indices.map((index) => `[${index}]`).join("")}`;
  const again = model === (app.place.model ?? 0) ? "" : loading(app, model);
  return `${loading(app)}from jumok.lens import trace\n\na = ${tracing(app)}${part}\n${again}b = ${tracing(app, other)}${part}\nvalues = b - a\n`;
}

function same(a, b) {
  return Boolean(b) && a.length === b.length && a.every((size, index) => size === b[index]);
}

function joined(a, b) {
  return a === b ? a : `${a}/${b}`;
}
