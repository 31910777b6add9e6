// A matrix as coloured cells on a canvas. Rows are queries, columns keys, and the axes say so. Masked cells are hatched.
// Arrow keys walk through the cells, and what is under the cursor is said in words. Large maps are panned and zoomed.

import { css, ink } from "jumok/colors.js";
import { cut, escape, h, number } from "jumok/dom.js";

const LABEL_FONT = 13;
const READABLE = 46; // pixels: a cell that a short token fits above
const NARROWEST = 30; // in which a value with two digits can be read
const SMALLEST = 3;
const MANY = 24; // columns that are shown at a readable size without being asked
const PADDING = 8;

/** `options`: rows and columns (texts), value(r, c), hidden(r, c) → "" | "future" | "padding", scale, rowTitle,
 *  columnTitle, describe(r, c) → the words for a cell, onselect(r, c), numbers (write values into cells), label. */
export class Heatmap {
  constructor(options) {
    this.options = options;
    this.cursor = null;
    this.canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "grid",
      "aria-label": options.label ?? "",
      onkeydown: (event) => this.key(event),
      onmousemove: (event) => this.hover(event),
      onmouseleave: () => this.leave(),
      onclick: () => this.cursor && this.options.onselect?.(...this.cursor),
      onwheel: (event) => this.wheel(event),
    });
    this.readout = h("output", { class: "readout", "aria-live": "polite" });
    this.scroller = h("div", { class: "map-scroller" }, this.canvas);
    this.element = h("div", { class: "map" }, this.scroller, this.readout);
    this.enablePanning();
    this.cell = this.initialCell();
    this.draw();
    this.fitOnce();
  }

  /** When the width of the page is known: slightly narrower cells, if all columns then fit. */
  fitOnce() {
    const observer = new ResizeObserver(() => {
      const room = this.scroller.clientWidth;
      if (!room) return;
      observer.disconnect();
      const width = Math.floor((room - this.frame.left - PADDING) / this.size[1]);
      if (width >= this.cell.width || width < (this.options.cell ? SMALLEST : NARROWEST)) return;
      this.cell = { ...this.cell, width };
      this.draw();
    });
    observer.observe(this.scroller);
  }

  get size() {
    return [this.options.rows.length, this.options.columns.length];
  }

  initialCell() {
    const [rows, columns] = this.size;
    if (this.options.cell) return this.options.cell;
    if (columns <= MANY) return { width: Math.max(READABLE, this.widest(this.options.columns) + 10), height: 26 };
    const width = Math.max(SMALLEST, Math.min(READABLE, Math.floor(900 / Math.max(columns, rows))));
    return { width, height: Math.min(width, 26) };
  }

  widest(texts) {
    const pen = this.canvas.getContext("2d");
    pen.font = font();
    return Math.min(130, Math.max(0, ...texts.map((text) => pen.measureText(text).width)));
  }

  update(options) {
    Object.assign(this.options, options);
    this.draw();
  }

  layout() {
    const [rows, columns] = this.size;
    const labels = this.cell.height >= 11;
    const left = labels && this.options.rows.some(Boolean) ? this.widest(this.options.rows) + 2 * PADDING + 18 : 24;
    const top = 42;
    return {
      left,
      top,
      labels,
      width: left + columns * this.cell.width + PADDING,
      height: top + rows * this.cell.height + PADDING,
    };
  }

  draw() {
    const { left, top, width, height } = (this.frame = this.layout());
    const ratio = Math.min(window.devicePixelRatio || 1, Math.sqrt(16e6 / (width * height)));
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    this.paint(pen, left, top);
    this.base = null;
    this.markCursor();
  }

  paint(pen, left, top) {
    const { rows, columns, value, hidden, scale, numbers } = this.options;
    const { width, height } = this.cell;
    const gap = width > 8 ? 1 : 0;
    rows.forEach((_, row) => {
      columns.forEach((_, column) => {
        const [x, y] = [left + column * width, top + row * height];
        const why = hidden?.(row, column);
        if (why) {
          hatch(pen, x, y, width - gap, height - gap, why);
          return;
        }
        const color = scale.color(value(row, column));
        pen.fillStyle = css(color);
        pen.fillRect(x, y, width - gap, height - gap);
        if (numbers && width >= NARROWEST) {
          pen.fillStyle = ink(color);
          pen.font = font(11);
          pen.textAlign = "center";
          pen.fillText(short(value(row, column)), x + width / 2, y + height / 2 + 4);
        }
      });
    });
    this.paintLabels(pen, left, top);
  }

  /** Where the titles of the axes stand: that of the rows above their labels, or beside that of the columns. */
  titles(pen) {
    const { rowTitle, columnTitle } = this.options;
    const { left, top, labels } = this.frame;
    pen.font = font(11);
    const [row, width] = [`${rowTitle} ↓`, pen.measureText(`${rowTitle} ↓`).width];
    const beside = !labels || width > left - PADDING;
    const first = beside ? { text: row, x: 2, y: 13, align: "left" } : { text: row, x: left - PADDING, y: top - 8, align: "right" };
    return [first, { text: `${columnTitle} →`, x: beside ? Math.max(left, width + 16) : left, y: 13, align: "left" }];
  }

  paintLabels(pen, left, top) {
    const { rows, columns } = this.options;
    const style = getComputedStyle(document.documentElement);
    pen.fillStyle = style.getPropertyValue("--quiet");
    pen.font = font(11);
    for (const { text, x, y, align } of this.titles(pen)) {
      pen.textAlign = align;
      pen.fillText(text, x, y);
    }
    pen.fillStyle = style.getPropertyValue("--text");
    pen.font = font();
    if (this.frame.labels) {
      pen.textAlign = "right";
      rows.forEach((text, row) => pen.fillText(fit(pen, text, 130), left - PADDING, top + (row + 0.5) * this.cell.height + 4));
    }
    pen.textAlign = "center";
    if (this.cell.width >= 30) {
      columns.forEach((text, column) =>
        pen.fillText(fit(pen, text, this.cell.width - 2), left + (column + 0.5) * this.cell.width, top - 8),
      );
    }
  }

  markCursor() {
    const pen = this.canvas.getContext("2d");
    if (this.base) pen.putImageData(this.base.data, this.base.x, this.base.y);
    this.base = null;
    if (!this.cursor) return;
    const [row, column] = this.cursor;
    const ratio = this.canvas.width / this.frame.width;
    const [x, y] = [this.frame.left + column * this.cell.width, this.frame.top + row * this.cell.height];
    const box = [x - 3, y - 3, this.cell.width + 6, this.cell.height + 6].map((side) => Math.round(side * ratio));
    this.base = { data: pen.getImageData(...box), x: box[0], y: box[1] };
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    pen.lineWidth = 2;
    pen.strokeRect(x - 1, y - 1, this.cell.width + 1, this.cell.height + 1);
  }

  point(row, column) {
    const [rows, columns] = this.size;
    this.cursor = [Math.max(0, Math.min(rows - 1, row)), Math.max(0, Math.min(columns - 1, column))];
    this.readout.textContent = this.options.describe(...this.cursor);
    this.markCursor();
    this.options.onpoint?.(...this.cursor);
  }

  leave() {
    if (document.activeElement === this.canvas) return;
    this.cursor = null;
    this.markCursor();
  }

  hover(event) {
    if (this.panning) return;
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.frame.left) / this.cell.width);
    const row = Math.floor((event.clientY - box.top - this.frame.top) / this.cell.height);
    const [rows, columns] = this.size;
    if (row >= 0 && column >= 0 && row < rows && column < columns) this.point(row, column);
  }

  key(event) {
    const [row, column] = this.cursor ?? [0, -1];
    const [rows, columns] = this.size;
    const moves = {
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      ArrowDown: [row + 1, Math.max(0, column)],
      ArrowUp: [row - 1, Math.max(0, column)],
      Home: [row, 0],
      End: [row, columns - 1],
      PageUp: [0, Math.max(0, column)],
      PageDown: [rows - 1, Math.max(0, column)],
    };
    if (moves[event.key]) {
      this.point(...moves[event.key]);
      this.reveal();
    } else if (event.key === "Enter" && this.cursor) this.options.onselect?.(...this.cursor);
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else return;
    event.preventDefault();
  }

  reveal() {
    const [row, column] = this.cursor;
    const [x, y] = [this.frame.left + column * this.cell.width, this.frame.top + row * this.cell.height];
    const box = this.scroller;
    if (x < box.scrollLeft) box.scrollLeft = x - 40;
    if (x + this.cell.width > box.scrollLeft + box.clientWidth) box.scrollLeft = x + this.cell.width - box.clientWidth + 40;
    if (y < box.scrollTop) box.scrollTop = y - 40;
    if (y + this.cell.height > box.scrollTop + box.clientHeight) box.scrollTop = y + this.cell.height - box.clientHeight + 40;
  }

  wheel(event) {
    if (!event.ctrlKey) return; // an ordinary wheel scrolls
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
  }

  zoom(factor) {
    const width = Math.max(SMALLEST, Math.min(120, this.cell.width * factor));
    const height = Math.max(SMALLEST, Math.min(60, this.cell.height * factor));
    this.cell = { width: width >= 10 ? Math.round(width) : width, height: height >= 10 ? Math.round(height) : height };
    this.draw();
  }

  enablePanning() {
    let from = null;
    this.scroller.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, y: event.clientY, left: this.scroller.scrollLeft, top: this.scroller.scrollTop };
    });
    this.scroller.addEventListener("pointermove", (event) => {
      if (!from || !event.buttons) return (from = null), (this.panning = false);
      if (Math.abs(event.clientX - from.x) + Math.abs(event.clientY - from.y) < 4) return undefined;
      this.panning = true;
      this.scroller.scrollLeft = from.left - (event.clientX - from.x);
      this.scroller.scrollTop = from.top - (event.clientY - from.y);
      return undefined;
    });
    this.scroller.addEventListener("pointerup", () => ((from = null), (this.panning = false)));
  }

  /** The figure as SVG text, each cell a rectangle with its value as its title. */
  svg() {
    const { left, top, width, height } = this.frame;
    const { rows, columns, value, hidden, scale } = this.options;
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--text");
    const parts = [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="${LABEL_FONT}">`,
      `<rect width="100%" height="100%" fill="${style.getPropertyValue("--page").trim()}"/>`,
      '<defs><pattern id="future" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line y2="6" stroke="#999"/></pattern>',
      '<pattern id="padding" width="4" height="4" patternUnits="userSpaceOnUse"><circle cx="1" cy="1" r="0.7" fill="#999"/></pattern></defs>',
      ...this.titles(this.canvas.getContext("2d")).map(
        (one) => `<text x="${one.x}" y="${one.y}" text-anchor="${one.align === "right" ? "end" : "start"}" fill="${text}" font-size="11">${escape(one.text)}</text>`,
      ),
    ];
    rows.forEach((row, r) => {
      const y = top + r * this.cell.height;
      parts.push(`<text x="${left - PADDING}" y="${y + this.cell.height / 2 + 4}" text-anchor="end" fill="${text}">${escape(row)}</text>`);
      columns.forEach((_, c) => {
        const why = hidden?.(r, c);
        const fillWith = why ? `url(#${why})` : css(scale.color(value(r, c)));
        const said = why ? "" : `<title>${value(r, c)}</title>`;
        parts.push(
          `<rect x="${left + c * this.cell.width}" y="${y}" width="${this.cell.width - 1}" height="${this.cell.height - 1}" fill="${fillWith}">${said}</rect>`,
        );
      });
    });
    columns.forEach((column, c) =>
      parts.push(`<text x="${left + (c + 0.5) * this.cell.width}" y="${top - 8}" text-anchor="middle" fill="${text}">${escape(column)}</text>`),
    );
    return `${parts.join("\n")}\n</svg>\n`;
  }

  /** The values as CSV; a masked cell is empty. */
  csv() {
    const { rows, columns, value, hidden } = this.options;
    const line = (cells) => cells.map((cell) => `"${String(cell).replaceAll('"', '""')}"`).join(",");
    const body = rows.map((row, r) => line([row, ...columns.map((_, c) => (hidden?.(r, c) ? "" : value(r, c)))]));
    return [line(["", ...columns]), ...body].join("\r\n") + "\r\n";
  }
}

/** A strip of the scale with its ends, and what hatched cells are; without a scale only these. */
export function legend(scale, words) {
  return h("div", { class: "legend" }, scale && strip(scale), words.future && h("span", { class: "key future" }, words.future), words.padding && h("span", { class: "key padding" }, words.padding));
}

function strip(scale) {
  const steps = 40;
  const colors = Array.from({ length: steps }, (_, step) => css(scale.color(scale.low + ((scale.high - scale.low) * step) / (steps - 1))));
  return [h("span", {}, number(scale.low, 2)), h("span", { class: "strip", style: { background: `linear-gradient(to right, ${colors.join(",")})` } }), h("span", {}, number(scale.high, 2))];
}

/** Cells that may not be attended to: lines for the future, dots for padding. Never a colour. */
function hatch(pen, x, y, width, height, why) {
  const style = getComputedStyle(document.documentElement);
  pen.fillStyle = style.getPropertyValue("--hatch-ground");
  pen.fillRect(x, y, width, height);
  pen.fillStyle = pen.strokeStyle = style.getPropertyValue("--hatch");
  if (why === "padding") {
    for (let dx = 3; dx < width; dx += 6) for (let dy = 3; dy < height; dy += 6) pen.fillRect(x + dx, y + dy, 1.5, 1.5);
    return;
  }
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.lineWidth = 1;
  pen.beginPath();
  const step = Math.max(4, Math.min(7, width / 3));
  for (let at = -height; at < width; at += step) {
    pen.moveTo(x + at, y + height);
    pen.lineTo(x + at + height, y);
  }
  pen.stroke();
  pen.restore();
}

/** A value with two digits, without the sign of a zero. */
function short(value) {
  return value.toFixed(2).replace(/^-(?=0\.00$)/, "").replace("-", "−");
}

function font(size = LABEL_FONT) {
  return `${size}px ${getComputedStyle(document.body).fontFamily}`;
}

function fit(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${cut(text, end)}…`).width > width) end -= 1;
  return `${cut(text, end)}…`;
}

