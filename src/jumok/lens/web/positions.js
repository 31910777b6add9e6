// Positions: the sinusoids as a picture, one of their waves, how alike they are, and a sentence without them.

import { diverging } from "jumok/colors.js";
import { fill, h, number, segments } from "jumok/dom.js";
import { figure } from "jumok/figure.js";
import { Heatmap, legend } from "jumok/heatmap.js";
import { chart, standalone, table as csvOf } from "jumok/chart.js";
import { NeedsServer } from "jumok/api.js";
import { t } from "jumok/texts.js";

const [MOST_PRODUCTS, MOST_TURNED] = [60, 12]; // positions in a picture

export const id = "positions";
export const tasks = ["translator", "classifier", "language_model"];

export async function show(root, app) {
  const { place } = app;
  const own = app.trace.facts.config;
  const settings = {
    d_model: Number(place.d_model ?? Math.min(own.d_model, 128)),
    length: Number(place.length ?? 50),
    base: Number(place.base ?? 10000),
    dimension: Number(place.dimension ?? 4),
    shift: Number(place.shift ?? 1),
  };
  settings.dimension = Math.min(settings.dimension, settings.d_model - 1);
  const table = sinusoids(settings);
  const turned = rotation(table, settings);
  const most = table[0].reduce((sum, value) => sum + value * value, 0); // a position with itself
  const again = h("section", { "aria-live": "polite" });
  fill(
    root,
    h("p", { class: "lead" }, t("positions.lead")),
    h("p", { class: "formula" }, "PE(pos, 2i) = sin(pos / base^(2i/d_model))", h("br"), "PE(pos, 2i+1) = cos(pos / base^(2i/d_model))"),
    h(
      "div",
      { class: "controls" },
      slider(app, "d_model", settings.d_model, 4, 512, 4),
      slider(app, "length", settings.length, 5, 200, 1),
      slider(app, "base", settings.base, 10, 100000, 10),
      slider(app, "dimension", settings.dimension, 0, settings.d_model - 1, 1),
      slider(app, "shift", settings.shift, 1, 50, 1),
    ),
    own.positions === "learned" && h("p", { class: "quiet" }, t("positions.learned")),
    own.rotary && h("p", { class: "quiet" }, t("positions.rotary")),
    figure({ title: t("positions.map"), caption: `${settings.length} × ${settings.d_model}`, picture: map(table, settings), name: "positions", extra: legend(diverging(-1, 1), {}), python: `${code(settings)}values = table  # position × d_model\n` }),
    h(
      "div",
      { class: "two" },
      figure({ title: t("positions.wave", { dimension: settings.dimension }), caption: t("positions.wave.note"), picture: wave(table, settings), name: "wave", python: `${code(settings)}values = list(enumerate(table[:, ${settings.dimension}].tolist()))\n` }),
      figure({ title: t("positions.rotation", { shift: settings.shift }), caption: t("positions.rotation.note"), picture: turned, name: "rotation", python: turned.python }),
    ),
    figure({ title: t("positions.products"), caption: t("positions.products.note"), picture: products(table, settings, most), name: "dot-products", extra: legend(diverging(-most, most), {}), python: `${code(settings)}values = table[:${MOST_PRODUCTS}] @ table[:${MOST_PRODUCTS}].T\n` }),
    h("h2", {}, t("positions.rerun")),
    h("p", { class: "quiet" }, t("positions.rerun.note")),
    segments(
      t("positions.rerun"),
      [["kept", t("positions.kept")], ["removed", t("positions.removed")], ["shuffled", t("positions.shuffled")], ["1", t("positions.shifted", { by: 1 })], ["5", t("positions.shifted", { by: 5 })]],
      place.change ?? "kept",
      (change) => app.go({ change }),
    ),
    again,
  );
  await rerun(again, app, place.change ?? "kept");
}

/** The formula of the paper; tests compare it with the model's own table. */
export function sinusoids({ d_model: width, length, base }) {
  const rows = [];
  for (let position = 0; position < length; position += 1) {
    const row = new Float64Array(width);
    for (let pair = 0; pair < width; pair += 2) {
      const angle = position * base ** (-pair / width);
      row[pair] = Math.sin(angle);
      if (pair + 1 < width) row[pair + 1] = Math.cos(angle);
    }
    rows.push(row);
  }
  return rows;
}

function slider(app, name, value, low, high, step) {
  const shownValue = h("output", {}, String(value));
  const input = h("input", { type: "range", min: low, max: high, step, value, oninput: (event) => (shownValue.textContent = event.target.value), onchange: (event) => app.go({ [name]: Number(event.target.value) }) });
  return h("label", { class: "field" }, h("span", {}, t(`positions.${name}`)), input, shownValue);
}

function map(table, { d_model: width, length }) {
  return new Heatmap({
    rows: Array.from({ length }, (_, index) => (index % 5 === 0 ? String(index) : "")),
    columns: Array.from({ length: width }, () => ""),
    value: (r, c) => table[r][c],
    scale: diverging(-1, 1),
    rowTitle: t("axis.position"),
    columnTitle: t("axis.d_model"),
    label: t("positions.map"),
    cell: { width: Math.max(2, Math.min(8, Math.floor(1000 / width))), height: Math.max(4, Math.min(12, Math.floor(600 / length))) },
    describe: (r, c) => `PE(${r}, ${c}) = ${number(table[r][c], 4)}`,
  });
}

function wave(table, { dimension, length }) {
  return chart({ series: [{ name: `PE(pos, ${dimension})`, points: table.map((row, position) => [position, row[dimension]]) }], x: t("axis.position"), y: "PE", width: 520, height: 240, range: [[0, length - 1], [-1.05, 1.05]] });
}

/** A pair of dimensions is a point on a circle; a step of k positions turns it by the same angle everywhere. */
function rotation(table, settings) {
  const { dimension, shift, d_model: width, base } = settings;
  const pair = dimension - (dimension % 2);
  const angle = shift * base ** (-pair / width);
  const [size, middle, radius] = [260, 130, 100];
  const svg = h("svg:svg", { width: size, height: size, viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": t("positions.rotation", { shift }), class: "chart" }, h("svg:circle", { cx: middle, cy: middle, r: radius, class: "axis" }));
  const point = (position, far = radius) => [middle + far * table[position][pair + 1], middle - far * table[position][pair]];
  const count = Math.max(0, Math.min(MOST_TURNED, table.length - shift));
  const positions = Array.from({ length: count }, (_, position) => position);
  for (const position of positions) {
    const [[x1, y1], [x2, y2]] = [point(position), point(position + shift)];
    const [x, y] = point(position, radius + 14);
    svg.append(h("svg:line", { x1, y1, x2, y2, class: "chord" }), h("svg:circle", { cx: x1, cy: y1, r: 3, class: "dot" }), h("svg:text", { x, y: y + 4, "text-anchor": "middle" }, String(position)));
  }
  const words = t("positions.angle", { angle: number(angle, 4), pair: `${pair}, ${pair + 1}` });
  const names = [0, shift].flatMap((by) => ["sin", "cos"].map((wave) => (by ? `${wave}(pos + ${by})` : wave)));
  const csv = () => csvOf([["pos", ...names], ...positions.map((position) => [position, ...[position, position + shift].flatMap((one) => [table[one][pair], table[one][pair + 1]])])]);
  const python = `${code(settings)}pair = table[:, ${pair}:${pair + 2}]  # sine and cosine of one frequency\nvalues = [[*pair[position], *pair[position + ${shift}]] for position in range(${count})]\n`;
  return { element: h("div", {}, svg, h("p", { class: "quiet" }, words)), svg: () => standalone(svg), csv, python };
}

function products(table, { length }, most) {
  const count = Math.min(length, MOST_PRODUCTS);
  const rows = Array.from({ length: count }, (_, index) => (index % 5 === 0 ? String(index) : ""));
  const dot = (a, b) => table[a].reduce((sum, value, index) => sum + value * table[b][index], 0);
  return new Heatmap({
    rows,
    columns: rows.map(() => ""),
    value: dot,
    scale: diverging(-most, most),
    rowTitle: t("axis.position"),
    columnTitle: t("axis.position"),
    label: t("positions.products"),
    cell: { width: 12, height: 12 },
    describe: (r, c) => `PE(${r}) · PE(${c}) = ${number(dot(r, c), 3)}`,
  });
}

async function rerun(root, app, change) {
  if (change === "kept") {
    fill(root, h("p", { class: "pair" }, app.trace.output));
    return;
  }
  const positions = /^\d+$/.test(change) ? Number(change) : change;
  try {
    const changed = await app.source.trace(app.request({ changes: { positions } }));
    fill(root, h("div", { class: "pair" }, h("p", { class: "quiet" }, app.trace.output), h("p", { "data-output": change }, changed.output)));
  } catch (error) {
    if (!(error instanceof NeedsServer)) throw error;
    fill(root, h("p", { class: "quiet" }, t("status.needs_model")));
  }
}

function code({ length, d_model: width, base }) {
  return `from jumok.model.positions import sinusoids\n\ntable = sinusoids(${length}, ${width}, base=${base}).numpy()\n`;
}
