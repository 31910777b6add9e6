// The journey of a sentence: every value from the tokens to the chosen word, in the order in which it was computed.

import { hiddenCells, maskedWords, shownAlong, windowChoice, windowOf } from "jumok/attentions.js";
import { diverging, sequential } from "jumok/colors.js";
import { choice, fill, h, number, segments } from "jumok/dom.js";
import { figure } from "jumok/figure.js";
import { Heatmap, legend } from "jumok/heatmap.js";
import { python, traced } from "jumok/python.js";
import { pictured } from "jumok/tables.js";
import { alone, shown, statistics } from "jumok/tensor.js";
import { forTask, t } from "jumok/texts.js";

export const id = "journey";
export const beforeSearch = true; // it shows nothing of the search

export async function show(root, app) {
  const stations = stationsOf(app.trace);
  const all = stations.flatMap((station) => station.names);
  const name = all.includes(app.place.name) ? app.place.name : all[0];
  const at = all.indexOf(name);
  const steps = app.trace.sides.decoder?.length ?? 0;
  const step = Math.min(app.place.step ?? steps - 1, steps - 1);
  const go = (next) => app.go({ name: all[Math.max(0, Math.min(all.length - 1, next))] });
  const sublayer = (direction) => {
    const starts = stations.map((station) => all.indexOf(station.names[0]));
    const next = direction > 0 ? starts.find((start) => start > at) : starts.filter((start) => start < at).pop();
    go(next ?? at);
  };
  const detail = h("div", { class: "journey-detail" });
  fill(
    root,
    h("p", { class: "lead" }, forTask("journey.lead", app.trace.task)),
    h(
      "div",
      { class: "controls", role: "toolbar", "aria-label": t("journey.steps") },
      h("button", { type: "button", onclick: () => sublayer(-1) }, `« ${t("journey.sublayer")}`),
      h("button", { type: "button", onclick: () => go(at - 1) }, `← ${t("journey.back")}`),
      h("button", { type: "button", class: "primary", onclick: () => go(at + 1) }, `${t("journey.on")} →`),
      h("button", { type: "button", onclick: () => sublayer(1) }, `${t("journey.sublayer")} »`),
      steps > 0 && [
        h("button", { type: "button", disabled: step <= 0, "aria-label": t("journey.back.step"), onclick: () => app.go({ step: step - 1 }) }, "‹"),
        choice(
          t("journey.step"),
          app.trace.sides.chosen.map((token, index) => [String(index), `${index}: ${shown(token, index, app.trace.sides.chosen)}`]),
          String(step),
          (value) => app.go({ step: Number(value) }),
        ),
        h("button", { type: "button", disabled: step >= steps - 1, "aria-label": t("journey.next.step"), onclick: () => app.go({ step: step + 1 }) }, "›"),
      ],
    ),
    strip(app, stations, name),
    detail,
  );
  queueMicrotask(() => root.querySelector('.box[aria-current="true"]')?.scrollIntoView({ block: "nearest", inline: "center" })); // when the view is in the page
  await showDetail(detail, app, name, step);
}

/** The boxes of Figure 1 in order, each with the names of its values. */
export function stationsOf(trace) {
  const names = Object.keys(trace.arrays).filter((name) => !/layer_(ids|probabilities)$|^picture$/.test(name));
  const stations = [];
  for (const name of names) {
    const parts = name.split(".");
    const key = parts.length === 4 ? parts.slice(0, 3).join(".") : parts.length === 2 && parts[1] !== "output" ? `${parts[0]}.in` : parts.length === 2 ? `${parts[0]}.out` : "result";
    if (stations[stations.length - 1]?.key !== key) stations.push({ key, names: [] });
    stations[stations.length - 1].names.push(name);
  }
  if (trace.predictions) stations.push({ key: "result", names: ["logits"] });
  return stations;
}

function title(key) {
  const [stack, layer, part] = key.split(".");
  if (layer === "in") return t(`journey.in.${stack}`);
  if (layer === "out") return t(`journey.out.${stack}`);
  if (key === "result") return t("journey.result");
  return t("journey.sublayer.title", { stack: t(`stack.${stack}`), layer, part: t(`part.${part}`) });
}

function strip(app, stations, current) {
  return h(
    "div",
    { class: "strip-scroller", tabindex: "0", "aria-label": t("journey.strip") },
    h(
      "ol",
      { class: "stations" },
      stations.map((station) =>
        h(
          "li",
          { class: `station ${station.key.split(".")[0]}` },
          h("h3", {}, title(station.key)),
          h(
            "div",
            { class: station.names.length > 6 ? "boxes double" : "boxes" },
            station.names.map((name) =>
              h(
                "button",
                { type: "button", class: "box", "aria-current": name === current ? "true" : null, onclick: () => app.go({ name }) },
                h("strong", {}, kindOf(name)),
                h("span", { class: "shape" }, shapeOf(app.trace, name)),
                h("span", { class: "formula", title: formulaOf(app.trace, name) }, formulaOf(app.trace, name)),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

function kindOf(name) {
  return name.split(".").pop();
}

/** The formula of a value; one that is made of words is said in the language of the page. */
function formulaOf(trace, name) {
  const { kind, formula } = meaningOf(trace, name);
  const said = t(`formula.${kind}`);
  return said === `formula.${kind}` ? formula : said;
}

/** Formula and source line of a value. The `output` of attention, feed-forward and a whole stack are three things. */
function meaningOf(trace, name) {
  const parts = name.split(".");
  const owner = parts.length === 2 ? "stack" : parts[2];
  const kind = [name, `${owner}.${kindOf(name)}`, kindOf(name)].find((one) => trace.glossary[one]);
  return { kind, formula: "", source: "", ...trace.glossary[kind] };
}

function shapeOf(trace, name) {
  const whole = { axes: ["position", "token"], shape: [trace.predictions?.length, trace.facts.config.vocabulary] }; // of the logits: a page has only their best
  const described = name === "logits" ? whole : trace.arrays[name];
  return described ? described.axes.map((axis, index) => `${axis} ${described.shape[index]}`).join(" × ") : "";
}

async function showDetail(root, app, name, step) {
  const { trace } = app;
  const kind = kindOf(name);
  const meaning = meaningOf(trace, name);
  const head = h(
    "div",
    { class: "journey-head" },
    h("h2", {}, name),
    h("p", {}, h("span", { class: "formula" }, formulaOf(trace, name)), " · ", h("span", { class: "quiet" }, t("journey.source", { source: meaning.source }))),
  );
  if (name === "logits") {
    fill(root, head, result(app, step));
    return;
  }
  const array = await app.source.array(trace, name);
  if (kind === "ids") {
    fill(root, head, tokens(app, name, array));
    return;
  }
  await showArray(root, app, head, array, step);
}

/** The tokens and their ids. */
function tokens(app, name, array) {
  const texts = app.trace.sides[name.split(".")[0]];
  const element = h(
    "ol",
    { class: "tokens" },
    texts.map((token, index) => h("li", {}, h("strong", {}, shown(token, index, texts)), h("code", {}, String(array.data[index])))),
  );
  const picture = pictured(element, ["token", "id"], texts.map((token, index) => [token, array.data[index]]));
  return figure({ title: name, caption: shapeOf(app.trace, name), picture, name: name.replaceAll(".", "-"), python: python(app, name) });
}

async function showArray(root, app, top, array, step) {
  const { trace, place } = app;
  const window = windowOf(app, array);
  const axes = array.axes.slice(array.axes.includes("head") ? window.length + 1 : window.length);
  const heads = array.axes.includes("head") ? array.shape[window.length] : 0;
  const head = Math.min(place.head ?? 0, heads - 1);
  const indices = heads ? [...window, head] : window;
  const whole = array.shape.length === 1 ? vectorAsMatrix(array) : array.matrix(...indices);
  const rows = labels(trace, array, axes[0], window, whole.rows);
  const columns = axes.length === 1 ? [""] : labels(trace, array, axes[1], window, whole.columns);
  const decoder = array.name.startsWith("decoder.") && axes[0] !== "key" && rows.some(Boolean);
  const visible = decoder ? step + 1 : whole.rows;
  const kind = kindOf(array.name);
  const masks = ["mask", "masked", "weights"].includes(kind);
  const hidden = masks ? await hiddenCells(app, trace, array.name.replace(/\.\w+$/, ""), window) : () => "";
  const finite = [...whole.data.subarray(0, visible * whole.columns)].filter(Number.isFinite);
  const facts = statistics(finite);
  const range = [facts.min, facts.max];
  const scale = kind === "weights" || kind === "mask" ? sequential(0, range[1] || 1) : diverging(...range);
  const readout = h("p", { class: "numbers", "aria-live": "polite" });
  const wide = whole.columns > 48;
  const picture = new Heatmap({
    rows: rows.slice(0, visible),
    columns: columns.map((label) => (wide ? "" : label)),
    value: (r, c) => whole.at(r, c),
    hidden,
    scale,
    rowTitle: t(`axis.${axes[0]}`),
    columnTitle: t(`axis.${axes[1] ?? "value"}`),
    label: t("journey.map.label", { name: array.name }),
    numbers: whole.columns <= 24,
    cell: wide ? { width: Math.max(4, Math.floor(900 / whole.columns)), height: 22 } : null,
    describe: (r, c) => (hidden(r, c) ? t("atlas.masked", { query: rows[r], key: columns[c] }) : t(axes.length === 1 ? "journey.cell.vector" : "journey.cell", { row: rows[r] || r, column: columns[c] || c, value: number(whole.at(r, c), 4) })),
    onpoint: async (r, c) => (readout.textContent = await withNumbers(app, array, indices, r, c)),
  });
  fill(
    root,
    top,
    h(
      "div",
      { class: "controls" },
      windowChoice(app, array),
      heads > 0 && segments(t("axis.head"), Array.from({ length: heads }, (_, index) => [index, t("axis.head.n", { head: index })]), head, (next) => app.go({ head: next })),
    ),
    figure({
      title: array.name,
      caption: shapeOf(trace, array.name),
      picture,
      name: array.name.replaceAll(".", "-"),
      python: python(app, array.name, indices, visible < whole.rows ? visible : null),
      extra: legend(scale, maskedWords(hidden, visible, whole.columns)),
    }),
    readout,
    h(
      "dl",
      { class: "facts inline" },
      ["min", "mean", "max", "norm"].map((key) => h("div", {}, h("dt", {}, t(`statistic.${key}`)), h("dd", { "data-statistic": key }, number(facts[key], 4)))),
    ),
    decoderSays(app, array.name, step),
  );
}

function vectorAsMatrix(array) {
  return { rows: array.shape[0], columns: 1, data: array.data, at: (row) => array.data[row] };
}

function labels(trace, array, axis, window, length) {
  if (["position", "query", "key"].includes(axis)) return shownAlong(trace, array.name, axis, window, length);
  if (axis === "class") return trace.facts.classes;
  return Array.from({ length }, (_, index) => String(index));
}

/** The formula of a cell with the numbers that went into it, where they are all values of the trace. */
async function withNumbers(app, array, indices, row, column) {
  const stem = array.name.replace(/\.\w+$/, "");
  const get = async (kind) => (await app.source.array(app.trace, `${stem}.${kind}`))?.matrix(...indices);
  const value = (array.shape.length === 1 ? array.data[row] : array.matrix(...indices).at(row, column));
  const result = number(value, 4);
  switch (kindOf(array.name)) {
    case "scaled": {
      const raw = (await get("embedding")).at(row, column);
      return `${number(raw, 4)} × √${app.trace.facts.config.d_model} = ${result}`;
    }
    case "embedded":
      return `${number(((await get("scaled")) ?? (await get("embedding"))).at(row, column), 4)} + ${number((await get("positions")).at(row, column), 4)} = ${result}`;
    case "scores":
    case "masked": {
      const [q, k] = [(await get("q")).row(row), (await get("k")).row(column)];
      if (value === -Infinity) return t("journey.hidden");
      const sum = q.reduce((total, one, index) => total + one * k[index], 0);
      return `(${number(q[0], 2)}·${number(k[0], 2)} + ${number(q[1], 2)}·${number(k[1], 2)} + …) / √${q.length} = ${number(sum, 4)} / ${number(Math.sqrt(q.length), 4)} = ${result}`;
    }
    case "weights": {
      const scores = (await get("masked")).row(row);
      const total = scores.reduce((sum, score) => sum + Math.exp(score), 0);
      return `exp(${number(scores[column], 4)}) / Σ exp = ${number(Math.exp(scores[column]), 4)} / ${number(total, 4)} = ${result}`;
    }
    case "mixed": {
      const [weights, v] = [(await get("weights")).row(row), await get("v")];
      const parts = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 2);
      return `${parts.map((key) => `${number(weights[key], 2)}·${number(v.at(key, column), 2)}`).join(" + ")} + … = ${result}`;
    }
    default:
      return `${formulaOf(app.trace, array.name)} = ${result}`;
  }
}

/** What each decoder layer would already say at a step. */
function decoderSays(app, name, step) {
  const layer = name.split(".")[1];
  if (!name.startsWith("decoder.") || !app.trace.arrays[`decoder.${layer}.layer_ids`]) return null;
  const box = h("section", { class: "says" }, h("h3", {}, t("journey.says", { layer })), h("p", { class: "quiet" }, t("journey.says.note")));
  Promise.all([app.source.array(app.trace, `decoder.${layer}.layer_ids`), app.source.array(app.trace, `decoder.${layer}.layer_probabilities`)]).then(([ids, shares]) => {
    const texts = app.trace.tokens ?? {};
    const items = Array.from({ length: 5 }, (_, rank) => {
      const token = ids.matrix().at(step, rank);
      return h("li", {}, h("strong", {}, alone(texts[token] ?? `#${token}`)), h("span", {}, number(shares.matrix().at(step, rank))));
    });
    box.append(h("ol", { class: "tokens" }, items));
  });
  return box;
}

/** The end: the most probable tokens of a step, and the one that was chosen. */
function result(app, step) {
  const { chosen, top } = app.trace.predictions[step];
  const names = ["token", "id", "logit", "probability"];
  const element = h(
    "div",
    {},
    h("p", {}, t("journey.chosen", { step }), " ", h("strong", { class: "chosen" }, alone(chosen.text)), ` ${number(chosen.probability)}`),
    h(
      "table",
      { class: "top" },
      h("thead", {}, h("tr", {}, names.map((name) => h("th", {}, t(`column.${name}`))))),
      h(
        "tbody",
        {},
        top.map((one) =>
          h(
            "tr",
            { "aria-current": one.id === chosen.id ? "true" : null },
            h("td", {}, alone(one.text)),
            h("td", {}, String(one.id)),
            h("td", { "data-logit": one.id }, number(one.logit)),
            h("td", {}, h("span", { class: "share", style: { width: `${100 * one.probability}%` } }), h("span", { "data-probability": one.id }, number(one.probability))),
          ),
        ),
      ),
    ),
  );
  const picture = pictured(element, names, top.map((one) => [one.text, one.id, one.logit, one.probability]));
  const rows = ["logits", "probabilities"].map((name) => `found["${name}"].values[${step}]`).join(", ");
  const python = `import numpy as np\n\n${traced(app)}logits, probabilities = ${rows}\nbest = np.argsort(-probabilities, kind="stable")[:${top.length}]\nvalues = [(token, logits[token], probabilities[token]) for token in best]\n`;
  return figure({ title: t("journey.result"), caption: formulaOf(app.trace, "probabilities"), picture, name: `logits-${step}`, python });
}
