// A painter: the picture grows token by token; each token shows the words it attends to, each word where it acts.

import { barChart } from "jumok/chart.js";
import { css, diverging, ink, sequential } from "jumok/colors.js";
import { fill, h, number, segments } from "jumok/dom.js";
import { figure } from "jumok/figure.js";
import { legend } from "jumok/heatmap.js";
import { MeanAttention, PictureGrid } from "jumok/picture.js";
import { list, traced } from "jumok/python.js";
import { Matrix, wordsOf } from "jumok/tensor.js";
import { t } from "jumok/texts.js";

export const id = "painting";
export const tasks = ["painter"];

const SECONDS = 4; // that a picture takes to appear
const GUIDANCE = [1, 2, 4, 8];
let animated = ""; // the trace whose picture has appeared already

export async function show(root, app) {
  const view = await Painting.of(app);
  fill(root, h("p", { class: "lead" }, t("painting.lead")), view.settings(), view.player(), h("div", { class: "two top" }, view.growing(), view.side), h("div", { class: "two top" }, view.acts(), view.decided()));
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches || app.place.step !== undefined || app.place.word !== undefined;
  if (!still && animated !== app.trace.id) view.play();
  animated = app.trace.id;
}

class Painting {
  static async of(app) {
    const [picture, gain] = await Promise.all(["picture", "caption_gain"].map((name) => app.source.array(app.trace, name)));
    return new Painting(app, picture, gain, await MeanAttention.of(app, "decoder.*.cross"));
  }

  constructor(app, picture, gain, attention) {
    const { grid } = app.trace.facts;
    Object.assign(this, { app, picture, gain, attention, grid, count: grid[0] * grid[1] });
    this.words = wordsOf(app.trace.sides.encoder);
    this.weights = toWords(attention.matrix, this.words);
    const decided = gain.data.indexOf(Math.max(...gain.data)); // the token for which the caption counts most
    this.selected = Math.min(app.place.step ?? decided, this.count - 1);
    this.word = Math.min(app.place.word ?? this.mostAttended(this.selected), this.words.length - 1);
    this.side = h("section", { class: "painting-side" });
    this.showToken(this.selected);
  }

  /** The word that a token attends to most; `</s>`, which has no meaning of its own, only if there is no other. */
  mostAttended(token) {
    const row = [...this.weights.row(token)].slice(0, Math.max(1, this.words.length - 1));
    return row.indexOf(Math.max(...row));
  }

  settings() {
    const { app } = this;
    const { seed, guidance } = app.trace.facts.painting;
    const live = app.source.live;
    return h(
      "div",
      { class: "controls" },
      live && h("button", { type: "button", onclick: () => app.go({ seed: seed + 1, step: null, word: null }) }, t("painting.another")),
      live && segments(t("painting.guidance"), GUIDANCE.map((one) => [one, t("painting.guidance.n", { value: one })]), guidance, (one) => app.go({ guidance: one, step: null, word: null })),
      h("span", { class: "quiet" }, t("painting.seed", { seed, guidance })),
      this.attention.controls(),
    );
  }

  /** A slider over the steps, and a button that plays them. */
  player() {
    this.slider = h("input", { type: "range", min: 1, max: this.count, value: this.count, class: "grow", "aria-label": t("painting.step"), oninput: () => (this.stop(), this.paintUntil(Number(this.slider.value))) });
    this.button = h("button", { type: "button", onclick: () => (this.timer ? this.stop() : this.play()) }, t("painting.play"));
    return h("div", { class: "controls" }, this.button, this.slider);
  }

  play() {
    let until = 0;
    this.button.textContent = t("painting.pause");
    this.timer = setInterval(() => {
      until += 1;
      this.paintUntil(until);
      if (until >= this.count || (until > 1 && !this.slider.isConnected)) this.stop();
    }, (1000 * SECONDS) / this.count);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.button.textContent = t("painting.play");
  }

  /** As after so many steps: the token of the last of them is the one that is explained. */
  paintUntil(until) {
    this.slider.value = until;
    this.grower.update({ until, selected: until - 1 });
    this.showToken(until - 1);
  }

  placeOf(token) {
    return t("patches.place", { row: Math.floor(token / this.grid[1]), column: token % this.grid[1] });
  }

  common() {
    return { picture: this.picture, grid: this.grid, patch: this.app.trace.facts.config.patch, selected: this.selected, onselect: (step) => this.app.go({ step, word: this.app.place.word }) };
  }

  growing() {
    const describe = (token) => `${this.placeOf(token)}: ${this.app.trace.predictions[token].chosen.text}`;
    this.grower = new PictureGrid({ ...this.common(), describe, label: t("painting.picture") });
    return figure({
      title: t("painting.picture"),
      caption: t("painting.picture.note"),
      picture: this.grower,
      name: "picture",
      python: `${traced(this.app)}values = found["picture"].values  # row × column × channel\n`,
    });
  }

  /** The words that a token attends to, and what is known of it. */
  showToken(token) {
    const { trace } = this.app;
    const row = [...this.weights.row(token)];
    const scale = sequential(0, Math.max(...row));
    const words = this.words.map(({ text }, index) => {
      const color = scale.color(row[index]);
      const onclick = () => this.app.go({ word: index, step: token });
      return h("li", { style: { background: css(color), color: ink(color) } }, h("button", { type: "button", class: "bare", "aria-pressed": String(index === this.word), onclick }, h("strong", {}, text), h("span", { "data-word": index }, number(row[index]))));
    });
    const { chosen } = trace.predictions[token];
    fill(
      this.side,
      h("h3", {}, t("painting.token", { place: this.placeOf(token), token: chosen.text })),
      h(
        "dl",
        { class: "facts inline" },
        [["probability", chosen.probability], ["gain", this.gain.data[token]]].map(([key, value]) => h("div", {}, h("dt", {}, t(`painting.${key}`)), h("dd", { "data-token": key }, number(value)))),
      ),
      h("p", { class: "quiet" }, t("painting.words.note")),
      h("ol", { class: "tokens coloured" }, words),
      figure({
        title: t("painting.words"),
        caption: this.attention.names.length > 1 ? "decoder.*.cross.weights" : this.attention.names[0],
        picture: barChart({ rows: this.words.map(({ text }, index) => ({ name: text, values: [row[index]] })), series: [t("painting.words")], label: t("painting.words"), width: 520 }),
        name: "words",
        python: `${this.attention.python()}words = ${slices(this.words)}  # tokens of each word\nvalues = [weights[${token}, word].sum() for word in words]\n`,
      }),
    );
  }

  /** Where a word acts: how much each token attends to it. */
  acts() {
    const { first, end, text } = this.words[this.word];
    const value = (token) => this.weights.at(token, this.word);
    const scale = sequential(0, Math.max(...Array.from({ length: this.count }, (_, token) => value(token))));
    return figure({
      title: t("painting.acts", { word: text }),
      caption: t("painting.acts.note"),
      picture: new PictureGrid({ ...this.common(), value, scale, describe: (token) => `${this.placeOf(token)}: ${number(value(token))}`, label: t("painting.acts", { word: text }) }),
      name: "word",
      python: `${this.attention.python()}values = weights[:, ${first}:${end}].sum(1).reshape(${this.grid.join(", ")})\n`,
      extra: legend(scale, {}),
    });
  }

  /** Where the caption decided: how much more probable each token is with it. */
  decided() {
    const value = (token) => this.gain.data[token];
    const scale = diverging(Math.min(...this.gain.data), Math.max(...this.gain.data));
    return figure({
      title: t("painting.decided"),
      caption: t("painting.decided.note"),
      picture: new PictureGrid({ ...this.common(), value, scale, describe: (token) => `${this.placeOf(token)}: ${number(value(token))}`, label: t("painting.decided") }),
      name: "caption-gain",
      python: `${traced(this.app)}values = found["caption_gain"].values.reshape(${this.grid.join(", ")})\n`,
      extra: legend(scale, {}),
    });
  }
}

/** Weights [token × word]: a word is attended to with the sum of its subwords. */
function toWords(weights, words) {
  const data = new Float64Array(weights.rows * words.length);
  words.forEach(({ first, end }, word) => {
    for (let row = 0; row < weights.rows; row += 1) for (let key = first; key < end; key += 1) data[row * words.length + word] += weights.at(row, key);
  });
  return new Matrix(weights.rows, words.length, data);
}

function slices(words) {
  return list(words.map(({ first, end }) => `slice(${first}, ${end})`));
}
