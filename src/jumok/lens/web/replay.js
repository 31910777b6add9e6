// Attention replayed over the course of the training: the same sentence at every validation.

import { isCausal, maskedWords } from "jumok/attentions.js";
import { sequential } from "jumok/colors.js";
import { choice, fill, h, number } from "jumok/dom.js";
import { figure } from "jumok/figure.js";
import { Heatmap, legend } from "jumok/heatmap.js";
import { path } from "jumok/python.js";
import { Tensor, decodeHalf, shown } from "jumok/tensor.js";
import { t } from "jumok/texts.js";

const PAUSE = 700; // milliseconds between two validations

export async function showReplay(root, app) {
  const steps = await app.source.replay();
  if (!steps.length) return;
  const [kept, all] = app.start.left_out?.validations ?? [0, 0];
  const state = { at: steps.length - 1, sentence: 0, name: null, head: 0, timer: 0 };
  const picture = h("div", {});
  const controls = h("div", { class: "controls" });
  const label = h("output", { "data-replay": "step" });
  const slider = h("input", { type: "range", min: 0, max: steps.length - 1, value: state.at, class: "wide", "aria-label": t("training.replay"), oninput: (event) => move(Number(event.target.value)) });
  const play = h("button", { type: "button", onclick: () => (state.timer ? stop() : start()) }, t("training.replay.play"));
  const stop = () => ((state.timer = clearInterval(state.timer)), (play.textContent = t("training.replay.play")));
  const start = () => {
    play.textContent = t("training.replay.stop");
    if (state.at === steps.length - 1) move(0);
    state.timer = setInterval(() => (root.isConnected && state.at < steps.length - 1 ? move(state.at + 1) : stop()), PAUSE);
  };
  const move = (at) => ((state.at = at), (slider.value = at), draw());
  const draw = async () => {
    const step = steps[state.at];
    const sentences = await app.source.replay(step);
    if (step !== steps[state.at]) return; // moved on in the meantime
    label.textContent = t("training.replay.step", { step: step.toLocaleString() });
    const one = sentences[Math.min(state.sentence, sentences.length - 1)];
    const names = Object.keys(one.arrays);
    state.name = names.includes(state.name) ? state.name : (names.filter((name) => name.endsWith(".cross")).pop() ?? names[0]);
    const heads = one.arrays[state.name].shape[0];
    const set = (key, convert = Number) => (value) => ((state[key] = convert(value)), draw());
    fill(
      controls,
      choice(t("training.replay.sentence"), sentences.map((each, index) => [String(index), text(each.source)]), String(state.sentence), set("sentence")),
      choice(t("softhard.attention"), names.map((name) => [name, name]), state.name, set("name", String)),
      choice(t("axis.head"), Array.from({ length: heads }, (_, head) => [String(head), String(head)]), String(state.head), set("head")),
    );
    fill(picture, map(app, one, state, step));
  };
  fill(root, h("h2", {}, t("training.replay")), h("p", { class: "quiet" }, t("training.replay.note"), kept < all && ` ${t("saved.validations", { kept, all })}`), controls, h("div", { class: "beta" }, play, slider, label), picture);
  await draw();
}

function text(tokens) {
  return tokens.slice(0, -1).join("").replaceAll("▁", " ").trim();
}

function map(app, one, state, step) {
  const { shape, data } = one.arrays[state.name];
  const head = Math.min(state.head, shape[0] - 1);
  const weights = new Tensor(state.name, ["head", "query", "key"], shape, decodeHalf(data)).matrix(head);
  const python = `from pathlib import Path\n\nfrom safetensors.numpy import load_file\n\nfile = Path(${path(app)}, "attention", "step-${String(step).padStart(8, "0")}.safetensors")\nvalues = load_file(file)["${one.number}/${state.name}"][${head}]  # query × key\n`;
  const side = (tokens) => tokens.map((token, index) => shown(token, index, tokens));
  const rows = side(state.name.startsWith("encoder") ? one.source : one.target);
  const causal = isCausal(state.name);
  const columns = side(causal ? one.target : one.source);
  const hidden = (r, c) => (causal && c > r ? "future" : "");
  const scale = sequential(0, 1); // the same for every step, so that they can be compared
  const describe = (r, c) => (hidden(r, c) ? t("atlas.masked", { query: rows[r], key: columns[c] }) : t("atlas.cell", { query: rows[r], key: columns[c], value: number(weights.at(r, c)) }));
  const picture = new Heatmap({ rows, columns, value: (r, c) => weights.at(r, c), hidden, scale, describe, rowTitle: t("axis.query"), columnTitle: t("axis.key"), label: t("training.replay"), numbers: columns.length <= 24 });
  return figure({ title: `${state.name} · ${t("axis.head.n", { head })}`, caption: t("training.replay.step", { step: step.toLocaleString() }), picture, name: `replay-${step}`, python, extra: legend(scale, maskedWords(hidden, rows.length, columns.length)) });
}
