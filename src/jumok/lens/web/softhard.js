// Soft and hard attention: softmax(β · QKᵀ) for β from 0, where all keys count alike, to ∞, where only the best one does.

import { hiddenCells, tokensAlong, windowChoice, windowOf } from "jumok/attentions.js";
import { choice, fill, h, number } from "jumok/dom.js";
import { barChart, chart } from "jumok/chart.js";
import { figure } from "jumok/figure.js";
import { NeedsServer } from "jumok/api.js";
import { list, loading, python, tracing } from "jumok/python.js";
import { shown } from "jumok/tensor.js";
import { t } from "jumok/texts.js";

const STEPS = 200;
const [LOWEST, HIGHEST] = [-3, 3]; // powers of ten around 1/√d_k; the ends are 0 and ∞

export const id = "softhard";
export const tasks = ["translator", "classifier", "language_model"];
export const beforeSearch = true; // it shows nothing of the search

export async function show(root, app) {
  const { trace, place } = app;
  const names = Object.keys(trace.arrays).filter((name) => name.endsWith(".scores"));
  const name = names.includes(place.name) ? place.name : (names.find((one) => one.includes(".cross.")) ?? names[0]);
  const scores = await app.source.array(trace, name.replace(/\.scores$/, ".masked"));
  const leading = windowOf(app, scores);
  const head = Math.min(place.head ?? 0, scores.shape[leading.length] - 1);
  const matrix = scores.matrix(...leading, head);
  const [queries, keys] = [["query", matrix.rows], ["key", matrix.columns]].map(([axis, length]) => tokensAlong(trace, name, axis, leading, length));
  const hidden = await hiddenCells(app, trace, name.replace(/\.scores$/, ""), leading);
  const query = Math.min(place.query ?? matrix.rows - 1, matrix.rows - 1);
  const width = Math.sqrt(trace.arrays[name.replace(/\.scores$/, ".q")].shape.at(-1)); // √d_k
  const raw = Array.from(matrix.row(query), (score) => score * width); // q · k, before the division by √d_k
  const bars = h("ol", { class: "bars" });
  const words = h("output", { class: "readout", "aria-live": "polite" });
  const applied = h("section", { "aria-live": "polite" });
  const update = (step) => {
    const beta = betaAt(step, width);
    const weights = soften(raw, beta);
    fill(bars, weights.map((weight, key) => h("li", {}, h("span", { class: "bar-name" }, shown(keys[key], key, keys)), h("span", { class: `bar ${hidden(query, key)}` }, h("i", { style: { width: `${100 * weight}%`, background: "var(--accent)" } })), h("span", { class: "bar-value", "data-weight": key }, hidden(query, key) ? t("mask.short") : number(weight)))));
    words.textContent = t("softhard.readout", { beta: beta === Infinity ? "∞" : number(beta, 4), entropy: number(bits(weights), 2) });
    return beta;
  };
  const start = Number(place.beta ?? STEPS / 2);
  const input = h("input", { type: "range", min: 0, max: STEPS, step: 1, value: start, "aria-label": "β", class: "wide", list: "marks", oninput: (event) => update(Number(event.target.value)), onchange: (event) => app.go({ beta: event.target.value }) });
  fill(
    root,
    h("p", { class: "lead" }, t("softhard.lead")),
    h("p", { class: "formula" }, "softmax(β · q kᵀ)"),
    h(
      "div",
      { class: "controls" },
      choice(t("softhard.attention"), names.map((one) => [one, one.replace(/\.scores$/, "")]), name, (next) => app.go({ name: next })),
      choice(t("axis.head"), Array.from({ length: scores.shape[leading.length] }, (_, index) => [String(index), String(index)]), String(head), (next) => app.go({ head: Number(next) })),
      choice(t("query.which"), queries.map((token, index) => [String(index), `${index} ${shown(token, index, queries)}`]), String(query), (next) => app.go({ query: Number(next) })),
      windowChoice(app, scores),
    ),
    h("div", { class: "beta" }, h("span", {}, "0"), input, h("span", {}, "∞"), h("button", { type: "button", class: "small", onclick: () => app.go({ beta: STEPS / 2 }) }, `1/√d_k = ${number(1 / width, 4)}`)),
    words,
    figure({ title: t("softhard.bars"), caption: t("softhard.bars.note"), picture: { ...weightChart(raw, keys, betaAt(start, width)), element: bars }, name: "beta", python: withBeta(app, name.replace(/\.scores$/, ""), betaAt(start, width), [...leading, head, query]) }),
    figure({ title: t("softhard.curve"), caption: t("softhard.curve.note"), picture: curve(raw, width), name: "entropy", python: entropies(app, scores.name, [...leading, head, query]) }),
    h("button", { type: "button", class: "primary", onclick: () => apply(applied, app, name.replace(/\.scores$/, ""), betaAt(Number(input.value), width)) }, t("softhard.apply")),
    h("p", { class: "quiet" }, t("softhard.apply.note")),
    applied,
  );
  update(start);
}

/** β at a step of the slider: 1/√d_k in the middle, 0 and ∞ at the ends. */
export function betaAt(step, width) {
  if (step <= 0) return 0;
  if (step >= STEPS) return Infinity;
  const power = LOWEST + ((HIGHEST - LOWEST) * step) / STEPS;
  return 10 ** power / width;
}

/** softmax(β · scores); at ∞ one-hot, the first of equals. */
export function soften(raw, beta) {
  const best = Math.max(...raw);
  if (beta === Infinity) return raw.map((_, index) => (index === raw.indexOf(best) ? 1 : 0));
  const powers = raw.map((score) => (score === -Infinity ? 0 : Math.exp(beta * (score - best))));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

function bits(weights) {
  return weights.reduce((sum, weight) => (weight > 0 ? sum - weight * Math.log2(weight) : sum), 0);
}

function curve(raw, width) {
  const points = Array.from({ length: STEPS - 1 }, (_, index) => [LOWEST + ((HIGHEST - LOWEST) * (index + 1)) / STEPS, bits(soften(raw, betaAt(index + 1, width)))]);
  const most = Math.log2(raw.filter((score) => score !== -Infinity).length) || 1;
  const middle = { name: "1/√d_k", points: [[0, 0], [0, most]], dashed: true, mark: true };
  return chart({ series: [{ name: t("softhard.entropy"), points }, middle], x: "log₁₀(β √d_k)", y: t("softhard.bits"), range: [[LOWEST, HIGHEST], [0, most]], width: 560, height: 220 });
}

/** The bars as a picture that can be saved; a masked key has none. */
function weightChart(raw, keys, beta) {
  const weights = soften(raw, beta).map((weight, key) => (Number.isFinite(raw[key]) ? weight : NaN));
  return barChart({ rows: weights.map((weight, key) => ({ name: shown(keys[key], key, keys), values: [weight] })), series: [t("atlas.form.bars")], range: [0, 1], label: t("softhard.bars") });
}

/** The code that runs the model with this β in this attention, its output forced to be the one it gave before. */
function withBeta(app, attention, beta, indices) {
  const change = beta === Infinity ? "hard=True" : `beta=${beta}`;
  const forced = app.trace.task === "translator" ? [`target_ids=${list(app.trace.facts.chosen.slice(0, -1))}`] : [];
  const part = `["${attention}.weights"].values${indices.map((index) => `[${index}]`).join("")}`;
  return `${loading(app)}from jumok.lens import changed, trace\n\nwith changed(model, ${change}, attention="${attention}"):\n    values = ${tracing(app, app.trace, forced)}${part}  # key\n`;
}

function entropies(app, name, indices) {
  const lines = [
    "values = []",
    `for power in np.linspace(${LOWEST}, ${HIGHEST}, ${STEPS + 1})[1:-1]:  # of β √d_k`,
    "    weights = np.exp(10**power * (scores - scores.max()))",
    "    weights = weights[weights > 0] / weights.sum()",
    "    values.append((power, -(weights * np.log2(weights)).sum()))",
  ];
  return `import numpy as np\n\n${python(app, name, indices)}scores = values.astype(float)  # q · k / √d_k, −∞ where masked\n${lines.join("\n")}\n`;
}

async function apply(root, app, attention, beta) {
  fill(root, h("p", { class: "quiet" }, t("status.thinking")));
  const changes = beta === Infinity ? { hard: true } : { beta };
  try {
    const changed = await app.source.trace(app.request({ changes }));
    fill(root, h("div", { class: "pair" }, h("p", { class: "quiet" }, app.trace.output), h("p", { "data-output": "beta" }, changed.output)));
  } catch (error) {
    fill(root, h("p", { class: "quiet" }, error instanceof NeedsServer ? t("status.needs_model") : error.message));
  }
}
