// The attention atlas: every head of every layer, small; one of them large, in every stage from scores to its output.

import { hiddenCells, maskedWords, tokensAlong, windowChoice, windowOf } from "jumok/attentions.js";
import { barChart, standalone, table } from "jumok/chart.js";
import { css, diverging, sequential } from "jumok/colors.js";
import { choice, fill, h, named, number, segments } from "jumok/dom.js";
import { figure } from "jumok/figure.js";
import { Heatmap, legend } from "jumok/heatmap.js";
import { list, python } from "jumok/python.js";
import { byWords, entropy, share, shown, wordsOf } from "jumok/tensor.js";
import { t } from "jumok/texts.js";

const STAGES = ["scores", "masked", "weights", "mixed"];
const FORMS = ["map", "lines", "bars"];
const ORDERS = {
  place: () => 0,
  entropy: (weights) => entropy(weights),
  diagonal: (weights) => -share(weights, 0),
  previous: (weights) => -share(weights, -1),
};

export const id = "atlas";
export const beforeSearch = true; // it shows nothing of the search

export async function show(root, app) {
  const { trace } = app;
  const kinds = attentionKinds(trace);
  const kind = kinds.includes(app.place.kind) ? app.place.kind : kinds[kinds.length - 1];
  const heads = await thumbnails(app, kind);
  const order = ORDERS[app.place.order] ? app.place.order : "place";
  const [stage, form] = [STAGES.includes(app.place.stage) ? app.place.stage : "weights", FORMS.includes(app.place.form) ? app.place.form : "map"];
  heads.sort((a, b) => ORDERS[order](a.weights) - ORDERS[order](b.weights) || a.layer - b.layer || a.head - b.head);
  const chosen = heads.find((one) => one.layer === app.place.layer && one.head === app.place.head) ?? heads[0];
  const big = h("div", { class: "atlas-big" });
  fill(
    root,
    h("p", { class: "lead" }, t("atlas.lead")),
    h(
      "div",
      { class: "controls" },
      segments(t("atlas.kind"), kinds.map((one) => [one, t(`attention.${one}`)]), kind, (next) => app.go({ kind: next })),
      choice(t("atlas.order"), Object.keys(ORDERS).map((one) => [one, t(`atlas.order.${one}`)]), order, (next) => app.go({ order: next })),
      named(t("atlas.stage"), segments(t("atlas.stage"), STAGES.map((one) => [one, t(`stage.${one}`)]), stage, (next) => app.go({ stage: next }))),
      segments(t("atlas.form"), FORMS.map((one) => [one, t(`atlas.form.${one}`)]), form, (next) => app.go({ form: next })),
      segments(t("atlas.units"), [["subwords", t("atlas.subwords")], ["words", t("atlas.words")]], app.place.units ?? "subwords", (next) => app.go({ units: next })),
      windowChoice(app, trace.arrays[`${heads[0].attention}.weights`]),
    ),
    h("div", { class: "atlas" }, thumbnailGrid(app, heads, chosen), big),
  );
  await showBig(big, app, chosen, stage, stage === "mixed" ? "map" : form);
}

/** Which attentions a trace has: encoder self, decoder self, cross. */
export function attentionKinds(trace) {
  const names = Object.keys(trace.arrays);
  return ["encoder.self", "decoder.self", "cross"].filter((kind) => names.some((name) => belongs(name, kind)));
}

function belongs(name, kind) {
  if (!name.endsWith(".weights")) return false;
  const [stack, , part] = name.split(".");
  return kind === "cross" ? part === "cross" : part === "self" && stack === kind.split(".")[0];
}

async function thumbnails(app, kind) {
  const heads = [];
  for (const name of Object.keys(app.trace.arrays).filter((one) => belongs(one, kind))) {
    const weights = await app.source.array(app.trace, name);
    const leading = windowOf(app, weights);
    const attention = name.replace(/\.weights$/, "");
    const hidden = await hiddenCells(app, app.trace, attention, leading);
    for (let head = 0; head < weights.shape[leading.length]; head += 1) {
      heads.push({ attention, layer: Number(name.split(".")[1]), head, leading, hidden, weights: weights.matrix(...leading, head) });
    }
  }
  return heads;
}

function thumbnailGrid(app, heads, chosen) {
  const count = Math.max(...heads.map((one) => one.head)) + 1;
  const grid = h("div", { class: "thumbnails", style: { gridTemplateColumns: `repeat(${count}, minmax(0, 1fr))` } });
  for (const one of heads) {
    const selected = one === chosen;
    grid.append(
      h(
        "button",
        {
          type: "button",
          class: "thumbnail",
          "aria-pressed": String(selected),
          "aria-label": t("atlas.head", { layer: one.layer, head: one.head }),
          onclick: () => app.go({ layer: one.layer, head: one.head }),
        },
        thumbnail(one.weights, one.hidden),
        h("span", {}, `${one.layer}·${one.head}`),
        h("span", { class: "quiet" }, t("atlas.bits", { bits: number(entropy(one.weights), 1) })),
      ),
    );
  }
  return h("div", { class: "atlas-small" }, h("p", { class: "quiet" }, t("atlas.thumbnails")), grid);
}

/** One pixel for each cell; a masked one is transparent, and shows the hatching behind: of the future if there is any. */
function thumbnail(weights, hidden) {
  const { future, padding } = maskedWords(hidden, weights.rows, weights.columns);
  const canvas = h("canvas", { class: padding && !future ? "padding" : null, width: weights.columns, height: weights.rows, "aria-hidden": "true" });
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(weights.columns, weights.rows);
  const scale = sequential(0, weights.range()[1]);
  weights.data.forEach((weight, index) => {
    const masked = hidden(Math.floor(index / weights.columns), index % weights.columns);
    image.data.set([...scale.color(weight), masked ? 0 : 255], 4 * index);
  });
  pen.putImageData(image, 0, 0);
  return canvas;
}

async function showBig(root, app, chosen, stage, form) {
  const { trace, place } = app;
  const name = `${chosen.attention}.${stage}`;
  const values = (await app.source.array(trace, name)).matrix(...chosen.leading, chosen.head);
  const [queries, keys] = ["query", "key"].map((axis) => tokensAlong(trace, name, axis, chosen.leading, chosen.weights[axis === "key" ? "columns" : "rows"]));
  const hidden = stage === "scores" || stage === "mixed" ? () => "" : chosen.hidden;
  let [rows, columns, matrix] = [queries.map(shown), keys.map(shown), values];
  let why = hidden;
  const words = place.units === "words" && stage === "weights";
  if (stage === "mixed") columns = Array.from({ length: values.columns }, (_, index) => String(index));
  if (words) {
    const [from, to] = [wordsOf(queries), wordsOf(keys)];
    [rows, columns, matrix] = [from.map((one) => one.text), to.map((one) => one.text), byWords(values, from, to)];
    why = (r, c) => hidden(from[r].end - 1, to[c].first);
  }
  const scale = stage === "weights" ? sequential(0, matrix.range()[1]) : diverging(...matrix.range());
  const describe = (r, c) =>
    why(r, c)
      ? t("atlas.masked", { query: rows[r], key: columns[c] })
      : t(stage === "mixed" ? "atlas.cell.mixed" : "atlas.cell", { query: rows[r], key: columns[c], value: number(matrix.at(r, c)) });
  const common = { rows, columns, value: (r, c) => matrix.at(r, c), hidden: why, scale, describe };
  const picture = form === "lines" ? lines(common) : form === "bars" ? bars(common, app) : map(common, stage, chosen);
  const row = form === "bars" ? [Math.min(place.query ?? rows.length - 1, rows.length - 1)] : [];
  fill(
    root,
    figure({
      title: t("atlas.head", { layer: chosen.layer, head: chosen.head }),
      caption: `${name} · ${t(`stage.${stage}.formula`)}`,
      picture,
      name: name.replaceAll(".", "-"),
      python: words ? byWordsInPython(app, name, chosen, queries, keys, row) : python(app, name, [...chosen.leading, chosen.head, ...row]),
      extra: legend(form === "map" ? scale : null, maskedWords(why, rows.length, columns.length)),
    }),
    h(
      "dl",
      { class: "facts" },
      fact(t("atlas.entropy"), t("atlas.bits", { bits: number(entropy(chosen.weights), 2) })),
      fact(t("atlas.diagonal"), number(share(chosen.weights, 0), 2)),
      fact(t("atlas.previous"), number(share(chosen.weights, -1), 2)),
    ),
  );
}

/** The code for weights between words: a word attends with the mean of its subwords, and is attended to with their sum. */
function byWordsInPython(app, name, { leading, head }, queries, keys, row) {
  const slices = (tokens) => list(wordsOf(tokens).map(({ first, end }) => `slice(${first}, ${end})`));
  const index = row.map((one) => `[${one}]`).join("");
  return `${python(app, name, [...leading, head])}queries = ${slices(queries)}  # tokens of each word\nkeys = ${slices(keys)}\nvalues = [[values[q, k].sum(1).mean() for k in keys] for q in queries]${index}\n`;
}

function fact(name, value) {
  return [h("dt", {}, name), h("dd", {}, value)];
}

function map(common, stage, chosen) {
  const label = t("atlas.map.label", { layer: chosen.layer, head: chosen.head });
  const titles = { rowTitle: t("axis.query"), columnTitle: t(stage === "mixed" ? "axis.d_v" : "axis.key") };
  return new Heatmap({ ...common, ...titles, label, numbers: common.columns.length <= 24, cell: stage === "mixed" ? { width: 24, height: 26 } : null });
}

/** Queries on the left, keys on the right, a line as thick as its weight. On a canvas: thousands of lines do not freeze. */
function lines({ rows, columns, value, hidden, describe }) {
  const step = 26;
  const [width, height] = [640, Math.max(rows.length, columns.length) * step + 40];
  const canvas = h("canvas", { width: width * 2, height: height * 2, style: { width: `${width}px`, height: `${height}px` }, role: "img", "aria-label": t("atlas.form.lines") });
  const readout = h("output", { class: "readout", "aria-live": "polite" });
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const y = (index) => 40 + index * step;
  const paint = (only) => {
    pen.setTransform(2, 0, 0, 2, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `13px ${getComputedStyle(document.body).fontFamily}`;
    pen.fillStyle = style.getPropertyValue("--quiet");
    pen.textAlign = "right";
    pen.fillText(t("axis.query"), 180, 16);
    pen.textAlign = "left";
    pen.fillText(t("axis.key"), width - 180, 16);
    pen.strokeStyle = style.getPropertyValue("--accent");
    rows.forEach((_, row) => {
      if (only !== null && row !== only) return;
      columns.forEach((_, column) => {
        const weight = hidden(row, column) ? 0 : value(row, column);
        if (weight < 0.01) return;
        pen.globalAlpha = Math.min(1, weight);
        pen.lineWidth = 0.5 + 3.5 * Math.min(1, weight);
        pen.beginPath();
        pen.moveTo(190, y(row));
        pen.bezierCurveTo(320, y(row), 320, y(column), width - 190, y(column));
        pen.stroke();
      });
    });
    pen.globalAlpha = 1;
    pen.fillStyle = style.getPropertyValue("--text");
    pen.textAlign = "right";
    rows.forEach((text, row) => pen.fillText(text, 180, y(row) + 4));
    pen.textAlign = "left";
    columns.forEach((text, column) => pen.fillText(text, width - 180, y(column) + 4));
  };
  canvas.addEventListener("mousemove", (event) => {
    const row = Math.round((event.offsetY - 40) / step);
    const inside = event.offsetX < 320 && row >= 0 && row < rows.length;
    paint(inside ? row : null);
    const best = inside ? [...columns.keys()].filter((column) => !hidden(row, column)).sort((a, b) => value(row, b) - value(row, a)).slice(0, 3) : [];
    readout.textContent = best.map((column) => describe(row, column)).join(" · ");
  });
  paint(null);
  const picked = (row) => columns.map((name, column) => ({ name, values: [hidden(row, column) ? NaN : value(row, column)] }));
  const csv = () => table([["", ...columns], ...rows.map((name, row) => [name, ...picked(row).map(({ values }) => (Number.isNaN(values[0]) ? "" : values[0]))])]);
  return { element: h("div", { class: "map" }, h("div", { class: "map-scroller" }, canvas), readout), canvas, csv, svg: () => linesAsSvg({ rows, columns, value, hidden, width, height, y }) };
}

/** The same lines as SVG, for a file. */
function linesAsSvg({ rows, columns, value, hidden, width, height, y }) {
  const svg = h("svg:svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  rows.forEach((text, row) => {
    svg.append(h("svg:text", { x: 180, y: y(row) + 4, "text-anchor": "end" }, text));
    columns.forEach((_, column) => {
      const weight = hidden(row, column) ? 0 : value(row, column);
      if (weight < 0.01) return;
      svg.append(h("svg:path", { d: `M190,${y(row)} C320,${y(row)} 320,${y(column)} ${width - 190},${y(column)}`, fill: "none", stroke: "var(--accent)", "stroke-opacity": Math.min(1, weight).toFixed(3), "stroke-width": 0.5 + 3.5 * Math.min(1, weight) }));
    });
  });
  columns.forEach((text, column) => svg.append(h("svg:text", { x: width - 180, y: y(column) + 4 }, text)));
  svg.append(h("svg:text", { x: 180, y: 16, "text-anchor": "end" }, t("axis.query")), h("svg:text", { x: width - 180, y: 16 }, t("axis.key")));
  return standalone(svg);
}

/** One query: a bar for every key. */
function bars({ rows, columns, value, hidden, describe, scale }, app) {
  const chosen = Math.min(app.place.query ?? rows.length - 1, rows.length - 1);
  const picker = choice(t("query.which"), rows.map((text, row) => [String(row), `${row} ${text}`]), String(chosen), (row) => app.go({ query: Number(row) }));
  const most = Math.max(...columns.map((_, column) => (hidden(chosen, column) ? 0 : Math.abs(value(chosen, column)))));
  const list = columns.map((text, column) => {
    const why = hidden(chosen, column);
    const width = why ? 0 : (100 * Math.abs(value(chosen, column))) / (most || 1);
    return h(
      "li",
      { title: describe(chosen, column) },
      h("span", { class: "bar-name" }, text),
      h("span", { class: `bar ${why}` }, h("i", { style: { width: `${width}%`, background: css(scale.color(scale.high)) } })),
      h("span", { class: "bar-value" }, why ? t("mask.short") : number(value(chosen, column))),
    );
  });
  const saved = barChart({ rows: columns.map((name, column) => ({ name, values: [hidden(chosen, column) ? NaN : value(chosen, column)] })), series: [rows[chosen]], label: rows[chosen] });
  return { ...saved, element: h("div", {}, picker, h("ol", { class: "bars" }, list)) };
}
