// Tables as pictures: what a figure needs to save one as SVG, PNG and CSV.

import { table } from "jumok/chart.js";
import { css, ink } from "jumok/colors.js";
import { escape, number } from "jumok/dom.js";

const [LINE, SPACE, SIZE] = [26, 12, 13]; // pixels: height of a row, room beside a text, letters

/** The picture of a table that stands on the page as `element`: `rows` of texts and numbers under the names of `columns`.
 *  `text(row, column)`: what a cell says, if not its value; `color(row, column)`: its colour [r, g, b], if it has one. */
export function pictured(element, columns, rows, { text = (row, column) => written(rows[row][column]), color = () => null } = {}) {
  return { element, csv: () => table([columns, ...rows]), svg: () => tableAsSvg(columns, rows.map((row, index) => row.map((_, column) => text(index, column))), color) };
}

function written(value) {
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) ? String(value) : number(value, 4);
}

function tableAsSvg(columns, texts, color) {
  const style = getComputedStyle(document.documentElement);
  const [quiet, dark, line, panel] = ["--quiet", "--text", "--line", "--panel"].map((name) => style.getPropertyValue(name).trim());
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${SIZE}px ${getComputedStyle(document.body).fontFamily}`;
  const widths = columns.map((name, column) => Math.ceil(Math.max(...[name, ...texts.map((row) => row[column])].map((text) => pen.measureText(text).width))) + 2 * SPACE);
  const starts = widths.map((_, column) => widths.slice(0, column).reduce((sum, width) => sum + width, 0));
  const [width, height] = [widths.reduce((sum, one) => sum + one, 0), LINE * (texts.length + 1)];
  const cell = (text, row, column, fill) => `<text x="${starts[column] + SPACE}" y="${row * LINE + 18}" fill="${fill}">${escape(text)}</text>`;
  const parts = texts.flatMap((row, index) =>
    row.flatMap((text, column) => {
      const shade = color(index, column);
      const back = shade && `<rect x="${starts[column]}" y="${(index + 1) * LINE}" width="${widths[column]}" height="${LINE}" fill="${css(shade)}"/>`;
      return [back ?? "", cell(text, index + 1, column, shade ? ink(shade) : dark)];
    }),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="${SIZE}">`,
    `<rect width="100%" height="100%" fill="${panel}"/>`,
    ...columns.map((name, column) => cell(name, 0, column, quiet)),
    ...texts.map((_, index) => `<line x2="${width}" y1="${(index + 1) * LINE}" y2="${(index + 1) * LINE}" stroke="${line}"/>`),
    ...parts,
    "</svg>\n",
  ].join("\n");
}
