// Line charts as SVG: axes with a few round numbers, one colour a line, values on hover.

import { h, number } from "jumok/dom.js";

const COLORS = ["var(--accent)", "var(--warm)", "#2a8f6d", "#b8860b", "#4a78c2"];
const [LEFT, BOTTOM, TOP, RIGHT] = [58, 34, 20, 12];

/** `series`: [{name, points: [[x, y], …], dashed}]; `range`: [[x from, x to], [y from, y to]] if not that of the points. */
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
  const csv = () => ["series,x,y", ...series.flatMap((one) => one.points.map(([at, value]) => `"${one.name}",${at},${value}`))].join("\r\n") + "\r\n";
  const file = () => {
    const copy = svg.cloneNode(true);
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--text").trim();
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.prepend(h("svg:style", {}, `text{font:12px system-ui,sans-serif;fill:${ink}}.grid{stroke:#8884}path{stroke:#6a3fc4}`));
    return copy.outerHTML;
  };
  return { element: h("div", { class: "map-scroller" }, svg, names), svg: file, csv };
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
