// Line charts as SVG: axes with a few round numbers, one colour a line, values on hover.

import { asXml, cut, h, number } from "jumok/dom.js";

const TEXT = 'text{font:12px system-ui,sans-serif;fill:var(--text)}.grid,.axis{stroke:var(--line);fill:none}.edge{stroke:var(--quiet)}.chord{stroke:var(--accent);opacity:.5}.dot{fill:var(--accent)}';

const COLORS = ["var(--accent)", "var(--warm)", "#2a8f6d", "#b8860b", "#4a78c2"];
const [LEFT, BOTTOM, TOP, RIGHT] = [58, 34, 20, 12];

/** `series`: [{name, points: [[x, y], …], dashed, mark (a help line, not data)}]; `range`: [[x from, x to], [y from, y to]] if not that of the points. */
export function chart({ series, x, y, width = 620, height = 280, range, log = false }) {
  const points = series.flatMap((one) => one.points).filter(([, value]) => Number.isFinite(value) && (!log || value > 0));
  const scaled = (value) => (log ? Math.log10(value) : value);
  const [[x0, x1], [y0, y1]] = range ?? [extent(points.map(([value]) => value)), extent(points.map(([, value]) => scaled(value)))];
  const px = (value) => LEFT + ((value - x0) / (x1 - x0 || 1)) * (width - LEFT - RIGHT);
  const py = (value) => height - BOTTOM - ((scaled(value) - y0) / (y1 - y0 || 1)) * (height - BOTTOM - TOP);
  const svg = h("svg:svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${y}, ${x}`, class: "chart" });
  for (const tick of ticks(x0, x1)) {
    svg.append(h("svg:line", { x1: px(tick), x2: px(tick), y1: TOP, y2: height - BOTTOM, class: "grid" }), h("svg:text", { x: px(tick), y: height - BOTTOM + 16, "text-anchor": "middle" }, short(tick)));
  }
  for (const tick of ticks(y0, y1)) {
    const value = log ? 10 ** tick : tick;
    svg.append(h("svg:line", { x1: LEFT, x2: width - RIGHT, y1: py(value), y2: py(value), class: "grid" }), h("svg:text", { x: LEFT - 6, y: py(value) + 4, "text-anchor": "end" }, short(value)));
  }
  svg.append(h("svg:text", { x: width - RIGHT, y: height - 4, "text-anchor": "end", class: "title" }, x), h("svg:text", { x: LEFT, y: 10, class: "title" }, y));
  series.forEach((one, index) => {
    const visible = one.points.filter(([, value]) => Number.isFinite(value) && (!log || value > 0));
    const path = visible.map(([at, value], place) => `${place ? "L" : "M"}${px(at).toFixed(1)},${py(value).toFixed(1)}`).join("");
    svg.append(h("svg:path", { d: path, fill: "none", stroke: one.color ?? COLORS[index % COLORS.length], "stroke-width": 2, "stroke-dasharray": one.dashed ? "5 4" : null }));
    if (visible.length <= 60) {
      visible.forEach(([at, value]) => svg.append(h("svg:circle", { cx: px(at), cy: py(value), r: 3, fill: one.color ?? COLORS[index % COLORS.length] }, h("svg:title", {}, `${one.name}: ${short(at)} → ${number(value, 4)}`))));
    }
  });
  const names = series.length > 1 ? h("p", { class: "legend" }, series.map((one, index) => h("span", {}, h("i", { class: "swatch", style: { background: one.color ?? COLORS[index % COLORS.length] } }), one.name))) : null;
  const csv = () => table([["series", "x", "y"], ...series.filter((one) => !one.mark).flatMap((one) => one.points.map(([at, value]) => [one.name, at, value]))]);
  return { element: h("div", { class: "chart-scroller" }, svg, names), svg: () => standalone(svg, series.map((one, index) => [one.name, one.color ?? COLORS[index % COLORS.length]])), csv };
}

function extent(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low < high ? [low, high] : [low - 0.5, high + 0.5];
}

/** About five round numbers between two. */
export function ticks(low, high) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? power;
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step) found.push(Number(tick.toPrecision(12)));
  return found;
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return size !== 0 && size < 1e-3 ? value.toExponential(0) : String(+value.toPrecision(4));
}

const [BAR, NAME, VALUE] = [18, 150, 76];

/** Horizontal bars from a common zero. `rows`: [{name, values, note}], a value for each of `series`; NaN is masked. */
export function barChart({ rows, series, range, label, width = 720 }) {
  const values = rows.flatMap((row) => row.values).filter(Number.isFinite);
  const [low, high] = range ?? [Math.min(0, ...values), Math.max(0, ...values)];
  const [left, right] = [NAME + (low < 0 ? VALUE : 0), width - VALUE - (rows.some((row) => row.note) ? 110 : 0)];
  const x = (value) => left + ((value - low) / (high - low || 1)) * (right - left);
  const step = BAR * series.length + 8;
  const height = rows.length * step + 8;
  const svg = h("svg:svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart" });
  rows.forEach((row, index) => {
    const top = index * step + 6;
    svg.append(h("svg:text", { x: NAME - 10, y: top + (step - 8) / 2 + 4, "text-anchor": "end", class: "title" }, shortened(row.name)));
    row.values.forEach((value, which) => {
      const y = top + which * BAR;
      if (!Number.isFinite(value)) return;
      const [from, to] = [Math.min(x(0), x(value)), Math.max(x(0), x(value))];
      svg.append(
        h("svg:rect", { x: from, y, width: Math.max(0.5, to - from), height: BAR - 3, rx: 2, fill: COLORS[which] }, h("svg:title", {}, `${row.name}: ${series[which]} ${number(value, 4)}`)),
        h("svg:text", { x: value < 0 ? from - 5 : to + 5, y: y + 12, "text-anchor": value < 0 ? "end" : "start", "data-bar": `${index}/${which}` }, number(value)),
      );
    });
    if (row.note) svg.append(h("svg:text", { x: width - 4, y: top + 12, "text-anchor": "end" }, row.note));
  });
  svg.append(h("svg:line", { x1: x(0), x2: x(0), y1: 0, y2: height, class: "grid" }));
  const colors = series.map((name, which) => [name, COLORS[which]]);
  const names = series.length > 1 ? h("p", { class: "legend" }, colors.map(([name, color]) => h("span", {}, h("i", { class: "swatch", style: { background: color } }), name))) : null;
  const csv = () => table([["", ...series], ...rows.map((row) => [row.name, ...row.values.map((value) => (Number.isFinite(value) ? value : ""))])]);
  return { element: h("div", { class: "chart-scroller" }, names, svg), svg: () => standalone(svg, series.length > 1 ? colors : []), csv };
}

function shortened(text) {
  return [...text].length > 18 ? `${cut(text, 17)}…` : text;
}

/** An SVG element as the text of a file: with the colours of the page, a background, and the names of its series. */
export function standalone(svg, names = []) {
  const copy = svg.cloneNode(true);
  const [width, height] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  const room = names.length > 1 ? 22 * names.length : 0;
  Object.entries({ width, height: height + room, viewBox: `0 0 ${width} ${height + room}` }).forEach(([key, value]) => copy.setAttribute(key, value));
  copy.prepend(h("svg:style", {}, TEXT), h("svg:rect", { width: "100%", height: "100%", fill: "var(--panel)", stroke: "none" }));
  if (room) names.forEach(([name, color], index) => copy.append(h("svg:rect", { x: 12, y: height + 22 * index + 6, width: 14, height: 4, fill: color }), h("svg:text", { x: 34, y: height + 22 * index + 12 }, name)));
  const style = getComputedStyle(document.documentElement);
  return asXml(new XMLSerializer().serializeToString(copy)).replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
}

/** Rows of cells as CSV. */
export function table(rows) {
  return rows.map((row) => row.map((cell) => `"${String(cell).replaceAll('"', '""')}"`).join(",")).join("\r\n") + "\r\n";
}
