// Two sentences, or two models: their outputs, scores, and where their attention differs.

import { hiddenCells, maskedWords, tokensAlong, windowChoice, windowOf } from "jumok/attentions.js";
import { diverging } from "jumok/colors.js";
import { choice, fill, h, number, writing } from "jumok/dom.js";
import { figure } from "jumok/figure.js";
import { Heatmap, legend } from "jumok/heatmap.js";
import { NeedsServer } from "jumok/api.js";
import { loading, tracing } from "jumok/python.js";
import { pictured } from "jumok/tables.js";
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
    if (request.text === app.trace.text && request.model === (place.model ?? 0)) result.prepend(h("p", { class: "quiet" }, t("compare.same")));
  } catch (error) {
    fill(result, h("p", { class: "quiet" }, error instanceof NeedsServer ? t("status.needs_model") : error.message));
  }
}

async function showDifference(root, app, other, model) {
  const [one, two] = [app.trace, other];
  const names = Object.keys(one.arrays).filter((name) => name.endsWith(".weights") && same(one.arrays[name].shape, two.arrays[name]?.shape));
  fill(
    root,
    await outputs(app, one, two, model),
    names.length ? await differenceMap(app, one, two, names, model) : h("p", { class: "quiet" }, t("compare.lengths")),
  );
}

/** How good an output is for its model, by task: its name on the page, and the Python that gets it from a trace `one`. */
const SCORES = {
  translator: ["column.score", "one.search.nodes[one.search.best].score", (app, trace) => trace.search?.nodes[trace.search.best].score],
  classifier: ["column.probability", 'one["class_probabilities"].values.max()', async (app, trace) => Math.max(...(await app.source.array(trace, "class_probabilities")).data)],
  language_model: ["surprise.total", 'one["surprise"].values.sum()', async (app, trace) => (await app.source.array(trace, "surprise")).data.reduce((sum, bits) => sum + bits, 0)],
};

/** What went in and came out, and how good that is for the model. */
async function outputs(app, one, two, model) {
  const [title, code, score] = SCORES[one.task];
  const [a, b] = [await score(app, one), await score(app, two)];
  const scored = a !== undefined && b !== undefined; // an output that was forced was not searched for
  const rows = [["A", one, a], ["B", two, b]].map(([name, trace, value]) => [name, trace.text, trace.output, ...(scored ? [value] : [])]);
  const names = [t("column.input"), t("column.output"), ...(scored ? [t(title)] : [])];
  const element = h(
    "table",
    { class: "plain" },
    h("thead", {}, h("tr", {}, h("th", {}), names.map((name) => h("th", {}, name)))),
    h("tbody", {}, rows.map(([name, input, output, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, input), h("td", {}, output), scored && h("td", { class: "number" }, number(value))))),
    scored && h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "B − A"), h("td", {}), h("td", {}), h("td", { class: "number", "data-difference": "score" }, number(b - a)))),
  );
  const python = `${both(app, two, model)}values = [(one.text, one.output${scored ? `, ${code}` : ""}) for one in (a, b)]\n`;
  return figure({ title: t("compare.outputs"), picture: pictured(element, ["", ...names], rows), name: "outputs", python });
}

async function differenceMap(app, one, two, names, model) {
  const name = names.includes(app.place.name) ? app.place.name : names[names.length - 1];
  const [a, b] = await Promise.all([app.source.array(one, name), app.source.array(two, name)]);
  const leading = windowOf(app, a);
  const head = Math.min(app.place.head ?? 0, a.shape[leading.length] - 1);
  const [left, right] = [a.matrix(...leading, head), b.matrix(...leading, head)];
  const both = (axis, length) => {
    const [first, second] = [one, two].map((trace) => tokensAlong(trace, name, axis, leading, length));
    return first.map((token, index) => joined(shown(token, index, first), shown(second[index], index, second)));
  };
  const difference = (r, c) => right.at(r, c) - left.at(r, c);
  let most = 0;
  left.data.forEach((value, index) => (most = Math.max(most, Math.abs(right.data[index] - value))));
  const scale = diverging(-most, most);
  const hidden = await hiddenCells(app, one, name.replace(/\.weights$/, ""), leading);
  const [rows, columns] = [both("query", left.rows), both("key", left.columns)];
  const picture = new Heatmap({ rows, columns, value: difference, hidden, scale, rowTitle: t("axis.query"), columnTitle: t("axis.key"), label: t("compare.map"), numbers: columns.length <= 24, describe: (r, c) => hidden(r, c) ? t("atlas.masked", { query: rows[r], key: columns[c] }) : t("compare.cell", { query: rows[r], key: columns[c], a: number(left.at(r, c)), b: number(right.at(r, c)), value: number(difference(r, c)) }) });
  return h(
    "div",
    {},
    h(
      "div",
      { class: "controls" },
      choice(t("softhard.attention"), names.map((each) => [each, each.replace(/\.weights$/, "")]), name, (next) => app.go({ name: next })),
      choice(t("axis.head"), Array.from({ length: a.shape[leading.length] }, (_, index) => [String(index), String(index)]), String(head), (next) => app.go({ head: Number(next) })),
      windowChoice(app, a),
    ),
    figure({ title: t("compare.map"), caption: `${name} · B − A`, picture, name: "difference", python: subtracting(app, two, model, name, [...leading, head]), extra: legend(scale, maskedWords(hidden, rows.length, columns.length)) }),
  );
}

function subtracting(app, other, model, name, indices) {
  const part = `[${JSON.stringify(name)}].values${indices.map((index) => `[${index}]`).join("")}`;
  return `${both(app, other, model)}values = b${part} - a${part}\n`;
}

/** Lines that leave the two traces in `a` and `b`. */
function both(app, other, model) {
  const again = model === (app.place.model ?? 0) ? "" : loading(app, model);
  return `${loading(app)}from jumok.lens import trace\n\na = ${tracing(app)}\n${again}b = ${tracing(app, other)}\n`;
}

function same(a, b) {
  return Boolean(b) && a.length === b.length && a.every((size, index) => size === b[index]);
}

function joined(a, b) {
  return a === b ? a : `${a}/${b}`;
}
