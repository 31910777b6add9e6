// One attention of a trace: the tokens along its axes, and which of its cells are masked, and why.

import { choice } from "jumok/dom.js";
import { shown } from "jumok/tensor.js";
import { t } from "jumok/texts.js";

const REASONS = ["future", "padding"];

/** A classifier reads a long text in windows, which are the first axis of its arrays: the index of the chosen one, or nothing. */
export function windowOf(app, { axes, shape }) {
  return axes[0] === "window" ? [Math.min(app.place.window ?? 0, shape[0] - 1)] : [];
}

/** A choice of the window, if the array has several. */
export function windowChoice(app, array) {
  const [chosen] = windowOf(app, array);
  if (chosen === undefined) return null;
  const options = Array.from({ length: array.shape[0] }, (_, window) => [String(window), String(window)]);
  return choice(t("axis.window"), options, String(chosen), (next) => app.go({ window: Number(next) }));
}

/** The tokens along an axis of an array such as "decoder.0.self.weights": a position, query or key. A window ends with padding. */
export function tokensAlong(trace, name, axis, [window], length) {
  const [stack] = name.split(".");
  const side = axis === "key" && name.includes(".cross.") ? "encoder" : stack;
  const tokens = trace.sides[side] ?? trace.sides.decoder ?? trace.sides.encoder;
  if (window === undefined) return tokens;
  const own = tokens.slice(window * length, (window + 1) * length);
  return [...own, ...Array(length - own.length).fill("<pad>")];
}

export function shownAlong(...place) {
  return tokensAlong(...place).map(shown);
}

/** Why a cell of an attention, such as "decoder.0.self", is masked: "future", "padding", or "" if it is not. */
export async function hiddenCells(app, trace, attention, window) {
  const found = await app.source.array(trace, `${attention}.mask`);
  if (!found) return () => "";
  const mask = found.matrix(...window);
  const causal = isCausal(attention);
  return (row, column) => (mask.at(row, column) ? "" : causal && column > row ? "future" : "padding");
}

/** Whether the queries of an attention may not look ahead. */
export function isCausal(attention) {
  return /^decoder\.\d+\.self/.test(attention);
}

/** Words for a legend: of every reason for which a cell of these is masked. */
export function maskedWords(hidden, rows, columns) {
  const there = new Set();
  for (let row = 0; row < rows; row += 1) for (let column = 0; column < columns; column += 1) there.add(hidden(row, column));
  return Object.fromEntries(REASONS.filter((why) => there.has(why)).map((why) => [why, t(`mask.${why}`)]));
}
