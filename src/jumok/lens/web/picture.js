// A picture cut into cells, patches or image tokens. Over it a value of each cell may be shown as a colour. Arrow keys walk
// through the cells, Enter chooses one, and what is under the cursor is said in words.

import { table } from "jumok/chart.js";
import { css } from "jumok/colors.js";
import { choice, h } from "jumok/dom.js";
import { list, traced } from "jumok/python.js";
import { Matrix } from "jumok/tensor.js";
import { t } from "jumok/texts.js";

const SIDE = 340; // pixels of the page
const OVERLAY = 0.66; // opacity of the colours

/** `options`: picture (Tensor: row, column, channel), grid ([rows, columns]), patch (pixels), label, describe(cell);
 *  value(cell) and scale for colours; selected (a cell), onselect(cell); until: how many cells are painted already. */
export class PictureGrid {
  constructor(options) {
    this.options = options;
    const [height, width] = options.picture.shape;
    this.zoom = SIDE / Math.max(height, width);
    this.canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "grid",
      "aria-label": options.label,
      class: "picture",
      onkeydown: (event) => this.key(event),
      onmousemove: (event) => this.hover(event),
      onclick: () => this.cursor !== null && this.options.onselect?.(this.cursor),
    });
    this.canvas.width = Math.round(width * this.zoom);
    this.canvas.height = Math.round(height * this.zoom);
    this.readout = h("output", { class: "readout", "aria-live": "polite" });
    this.element = h("div", { class: "map" }, this.canvas, this.readout);
    this.pixels = pixelsOf(options.picture, Boolean(options.value));
    this.cursor = null;
    this.draw();
    if (options.selected !== undefined) this.readout.textContent = options.describe(options.selected);
  }

  get cells() {
    return this.options.grid[0] * this.options.grid[1];
  }

  update(options) {
    Object.assign(this.options, options);
    this.draw();
  }

  /** Left, top and side of a cell on the canvas. */
  place(cell) {
    const columns = this.options.grid[1];
    const side = this.options.patch * this.zoom;
    return [(cell % columns) * side, Math.floor(cell / columns) * side, side];
  }

  draw() {
    const { value, scale, selected, until = this.cells } = this.options;
    const pen = this.canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    pen.imageSmoothingEnabled = false;
    pen.globalAlpha = 1;
    pen.drawImage(this.pixels, 0, 0, this.canvas.width, this.canvas.height);
    for (let cell = 0; cell < this.cells; cell += 1) {
      const [x, y, side] = this.place(cell);
      if (cell >= until) {
        pen.fillStyle = style.getPropertyValue("--hatch-ground");
        pen.fillRect(x, y, side, side);
      } else if (value) {
        pen.globalAlpha = OVERLAY;
        pen.fillStyle = css(scale.color(value(cell)));
        pen.fillRect(x, y, side, side);
        pen.globalAlpha = 1;
      }
      pen.strokeStyle = "rgb(128 128 128 / 35%)";
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
    }
    this.outline(pen, selected, style.getPropertyValue("--warm"));
    if (this.cursor !== null) this.outline(pen, this.cursor, style.getPropertyValue("--accent"));
  }

  outline(pen, cell, color) {
    if (cell === undefined || cell === null) return;
    const [x, y, side] = this.place(cell);
    pen.lineWidth = 4;
    pen.strokeStyle = color;
    pen.strokeRect(x + 2, y + 2, side - 4, side - 4);
  }

  point(cell) {
    this.cursor = cell;
    this.readout.textContent = this.options.describe(cell);
    this.draw();
  }

  hover(event) {
    const [rows, columns] = this.options.grid;
    const box = this.canvas.getBoundingClientRect();
    const side = (this.options.patch * this.zoom * box.width) / this.canvas.width;
    const [column, row] = [Math.floor((event.clientX - box.left) / side), Math.floor((event.clientY - box.top) / side)];
    if (row >= 0 && column >= 0 && row < rows && column < columns) this.point(row * columns + column);
  }

  key(event) {
    const [rows, columns] = this.options.grid;
    const at = this.cursor ?? this.options.selected ?? 0;
    const [row, column] = [Math.floor(at / columns), at % columns];
    const within = (value, count) => Math.max(0, Math.min(count - 1, value));
    const to = (r, c) => within(r, rows) * columns + within(c, columns);
    const next = { ArrowRight: to(row, column + 1), ArrowLeft: to(row, column - 1), ArrowDown: to(row + 1, column), ArrowUp: to(row - 1, column), Home: to(row, 0), End: to(row, columns - 1) };
    if (event.key in next) this.point(this.cursor === null ? at : next[event.key]);
    else if (event.key === "Enter" && this.cursor !== null) this.options.onselect?.(this.cursor);
    else return;
    event.preventDefault();
  }

  /** The picture as SVG text, with a rectangle for each cell that has a colour. */
  svg() {
    const { value, scale } = this.options;
    const { width, height } = this.canvas;
    const cells = Array.from({ length: value ? this.cells : 0 }, (_, cell) => {
      const [x, y, side] = this.place(cell);
      return `<rect x="${x}" y="${y}" width="${side}" height="${side}" fill="${css(scale.color(value(cell)))}" fill-opacity="${OVERLAY}"><title>${value(cell)}</title></rect>`;
    });
    const image = `<image href="${this.pixels.toDataURL()}" width="${width}" height="${height}" style="image-rendering: pixelated"/>`;
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">\n${[image, ...cells].join("\n")}\n</svg>\n`;
  }

  /** The values of the cells, or, without any, of the pixels. */
  csv() {
    const { value, picture } = this.options;
    const [rows, columns] = value ? this.options.grid : [picture.shape[0], picture.shape[1] * picture.shape[2]];
    const at = value ?? ((index) => picture.data[index]);
    const numbers = (count) => Array.from({ length: count }, (_, index) => index);
    return table([["", ...numbers(columns)], ...numbers(rows).map((row) => [row, ...numbers(columns).map((column) => at(row * columns + column))])]);
  }
}

/** A canvas with the pixels of a picture, one by one. Under colours the picture is grey. */
export function pixelsOf(picture, grey = false) {
  const [height, width, channels] = picture.shape;
  const canvas = h("canvas", { width, height });
  const image = canvas.getContext("2d").createImageData(width, height);
  for (let index = 0; index < width * height; index += 1) {
    let colors = Array.from({ length: 3 }, (_, channel) => picture.data[index * channels + (channel % channels)]);
    if (grey) colors = Array(3).fill((colors[0] + colors[1] + colors[2]) / 3);
    image.data.set([...colors, 255], 4 * index);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** The picture of a trace as an element, as large as asked for. */
export function smallPicture(picture, side, label) {
  const canvas = pixelsOf(picture);
  const zoom = side / Math.max(canvas.width, canvas.height);
  Object.assign(canvas.style, { width: `${canvas.width * zoom}px`, height: `${canvas.height * zoom}px`, imageRendering: "pixelated" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  canvas.classList.add("picture");
  return canvas;
}

/** The weights of one kind of attention, such as `encoder.*.self`: of the chosen layer and head, or their mean over all. */
export class MeanAttention {
  static async of(app, kind) {
    const [stack, part] = kind.split(".*.");
    const names = Object.keys(app.trace.arrays).filter((name) => name.startsWith(`${stack}.`) && name.endsWith(`.${part}.weights`));
    const layers = names.length;
    const chosen = app.place.layer < layers ? names.slice(app.place.layer, app.place.layer + 1) : names;
    const arrays = await Promise.all(chosen.map((name) => app.source.array(app.trace, name)));
    return new MeanAttention(app, chosen, layers, arrays);
  }

  constructor(app, names, layers, arrays) {
    const heads = arrays[0].shape[0];
    const head = app.place.head < heads ? app.place.head : null;
    Object.assign(this, { app, names, layers, heads, head });
    const used = arrays.flatMap((array) => (head === null ? [...Array(heads).keys()] : [head]).map((one) => array.matrix(one)));
    const [rows, columns] = arrays[0].shape.slice(-2);
    const data = new Float64Array(rows * columns);
    for (const matrix of used) matrix.data.forEach((weight, index) => (data[index] += weight / used.length));
    this.matrix = new Matrix(rows, columns, data);
  }

  /** Which layer and head. */
  controls() {
    const { app, layers, heads, names, head } = this;
    const options = (count, all) => [["", all], ...Array.from({ length: count }, (_, index) => [String(index), String(index)])];
    const layer = names.length === 1 && layers > 1 ? String(app.place.layer) : "";
    const pick = (key) => (value) => app.go({ [key]: value === "" ? null : Number(value) });
    return [
      layers > 1 && choice(t("picture.layer"), options(layers, t("picture.mean")), layer, pick("layer")),
      heads > 1 && choice(t("axis.head"), options(heads, t("picture.mean")), head === null ? "" : String(head), pick("head")),
    ];
  }

  /** Lines of Python that leave the same weights [query × key] in `weights`. */
  python() {
    const head = this.head === null ? ".mean(0)" : `[${this.head}]`;
    return `import numpy as np\n\n${traced(this.app)}names = ${list(this.names.map((name) => JSON.stringify(name)))}\nweights = np.mean([found[name].values for name in names], 0)${head}  # query × key\n`;
  }
}
