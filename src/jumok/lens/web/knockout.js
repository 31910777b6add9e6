// Head knock-out: heads switched off, and what becomes of the translation.

import { css, diverging } from "jumok/colors.js";
import { fill, h, named, number, segments } from "jumok/dom.js";
import { figure } from "jumok/figure.js";
import { legend } from "jumok/heatmap.js";
import { loading, tracing } from "jumok/python.js";
import { pictured } from "jumok/tables.js";
import { shown } from "jumok/tensor.js";
import { t } from "jumok/texts.js";
import { NeedsServer } from "jumok/api.js";

export const id = "knockout";
export const tasks = ["translator", "classifier", "language_model"];

const WAYS = ["zero", "uniform", "mean"];

export async function show(root, app) {
  const off = new Set((app.place.off ?? "").split(",").filter(Boolean));
  const way = WAYS.includes(app.place.way) ? app.place.way : "zero";
  const result = h("section", { "aria-live": "polite" });
  const ranking = h("section", {});
  const toggle = (key) => {
    if (off.has(key)) off.delete(key);
    else off.add(key);
    app.go({ off: [...off].join(",") || null });
  };
  fill(
    root,
    h("p", { class: "lead" }, t("knockout.lead")),
    h(
      "div",
      { class: "controls" },
      named(t("knockout.way"), segments(t("knockout.way"), WAYS.map((one) => [one, t(`knockout.${one}`)]), way, (next) => app.go({ way: next }))),
      h("button", { type: "button", disabled: off.size === 0, onclick: () => app.go({ off: null }) }, t("knockout.all_on")),
    ),
    h("div", { class: "knockout" }, switches(app, off, toggle), h("div", {}, result, ranking)),
  );
  showRanking(ranking, app, way, toggle);
  if (off.size) await showResult(result, app, off, way);
}

function attentionsOf(trace) {
  const names = Object.keys(trace.arrays).filter((name) => name.endsWith(".weights"));
  return names.map((name) => ({ name: name.replace(/\.weights$/, ""), heads: trace.arrays[name].shape.at(-3) }));
}

function switches(app, off, toggle) {
  return h(
    "table",
    { class: "switches" },
    h("caption", {}, t("knockout.switches")),
    h(
      "tbody",
      {},
      attentionsOf(app.trace).map(({ name, heads }) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, name),
          Array.from({ length: heads }, (_, head) => {
            const key = `${name}/${head}`;
            return h("td", {}, h("button", { type: "button", role: "switch", "aria-checked": String(!off.has(key)), "aria-label": `${name} ${t("axis.head.n", { head })}`, onclick: () => toggle(key) }, String(head)));
          }),
        ),
      ),
    ),
  );
}

async function showResult(root, app, off, way) {
  const heads = [...off].map((key) => [key.split("/")[0], Number(key.split("/")[1]), way]);
  let after;
  let forced;
  try {
    after = await app.source.trace(app.request({ changes: { heads } }));
    forced = app.trace.predictions && (await app.source.trace(app.request({ changes: { heads }, target_ids: app.trace.facts.chosen.slice(0, -1) })));
  } catch (error) {
    if (!(error instanceof NeedsServer)) throw error;
    fill(root, h("p", { class: "quiet" }, t("status.needs_model")));
    return;
  }
  fill(
    root,
    h("h2", {}, t("knockout.result")),
    h("table", { class: "plain" }, h("tbody", {}, line(t("knockout.before"), marked(app.trace, after)), line(t("knockout.after"), marked(after, app.trace)))),
    forced && changes(app, forced, heads),
  );
}

function line(label, cells) {
  return h("tr", {}, h("th", { scope: "row" }, label), h("td", {}, cells));
}

/** The tokens of an output; those that the other does not have in the same order are marked. */
function marked(trace, other) {
  const own = trace.sides.chosen?.slice(0, -1);
  if (!own) return trace.output;
  const same = common(own, other.sides.chosen.slice(0, -1));
  return own.map((token, index) => [index > 0 && token.startsWith("▁") ? " " : "", same.has(index) ? token.replace("▁", "") : h("mark", {}, token.replace("▁", ""))]);
}

/** Indices of a longest common subsequence. */
export function common(a, b) {
  const length = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const found = new Set();
  for (let [i, j] = [0, 0]; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      found.add(i);
      i += 1;
      j += 1;
    } else if (length[i + 1][j] >= length[i][j + 1]) i += 1;
    else j += 1;
  }
  return found;
}

/** The change of each token's log-probability, with the output of before forced. */
function changes(app, forced, heads) {
  const before = app.trace;
  const deltas = before.predictions.map((one, step) => Math.log(forced.predictions[step].chosen.probability) - Math.log(one.chosen.probability));
  const scale = diverging(Math.min(...deltas), Math.max(...deltas));
  const total = deltas.reduce((sum, delta) => sum + delta, 0);
  const tokens = before.sides.chosen.map((token, step) => shown(token, step, before.sides.chosen));
  const list = h(
    "ol",
    { class: "tokens" },
    deltas.map((delta, step) => h("li", { style: { borderColor: css(scale.color(delta)) } }, h("strong", {}, tokens[step]), h("span", { "data-delta": step }, number(delta)))),
  );
  return figure({
    title: t("knockout.delta"),
    caption: t("knockout.total", { total: number(total) }),
    extra: legend(scale, {}),
    picture: pictured(list, ["token", "Δ log P"], deltas.map((delta, step) => [tokens[step], delta]), { color: (step, column) => (column ? scale.color(deltas[step]) : null) }),
    name: "knockout",
    python: withoutHeads(app, heads),
  });
}

function withoutHeads(app, heads) {
  const off = heads.map(([attention, head, way]) => `("${attention}", ${head}): "${way}"`).join(", ");
  const again = tracing(app, app.trace, app.trace.task === "translator" ? ["target_ids=chosen[:-1]"] : []);
  const mean = heads[0][2] === "mean";
  return [
    `import numpy as np\n\n${loading(app)}from jumok.lens import changed, ${mean ? "mean_outputs, " : ""}trace\n`,
    `before = ${tracing(app)}`,
    'chosen = before.facts["chosen"]',
    ...(mean ? ["with mean_outputs(model) as means:", `    ${again}`] : []),
    `with changed(model, heads={${off}}${mean ? ", means=means" : ""}):`,
    `    after = ${again}`,
    'shares = [one["probabilities"].values[range(len(chosen)), chosen] for one in (before, after)]',
    "values = np.log(shares[1]) - np.log(shares[0])\n",
  ].join("\n");
}

/** Rank all heads, with progress and a way to cancel. */
export function showRanking(root, app, way, toggle) {
  const list = h("ol", { class: "ranking" });
  const progress = h("progress", { max: attentionsOf(app.trace).reduce((sum, one) => sum + one.heads, 0), value: 0, "aria-label": t("knockout.rank") });
  const found = [];
  const target = app.trace.task === "language_model" ? null : app.trace.output;
  let running = null;
  const start = h("button", { type: "button", onclick: () => (running ? running.abort() : rank()) }, t("knockout.rank"));
  async function rank() {
    running = new AbortController();
    start.textContent = t("knockout.cancel");
    found.length = 0;
    try {
      await app.source.rank({ model: app.place.model ?? 0, text: app.trace.text, target, way }, (head) => {
        if (!root.isConnected) return running?.abort(); // another view is shown
        found.push(head);
        progress.value = found.length;
        found.sort((a, b) => a.log_prob - b.log_prob);
        fill(list, found.slice(0, 12).map((one) => h("li", {}, h("button", { type: "button", onclick: () => toggle(`${one.attention}/${one.head}`) }, `${one.attention} ${t("axis.head.n", { head: one.head })}`), h("span", {}, number(one.log_prob, 4)))));
        return undefined;
      }, running.signal);
    } catch (error) {
      if (error instanceof NeedsServer) list.textContent = t("status.needs_model");
      else if (error.name !== "AbortError") throw error;
    } finally {
      running = null;
      start.textContent = t("knockout.rank");
    }
  }
  const element = h("div", {}, h("div", { class: "controls" }, start, progress), list);
  const picture = { element };
  for (const kind of ["csv", "svg"]) picture[kind] = () => pictured(element, ["attention", "head", "Δ log P"], found.map((one) => [one.attention, one.head, one.log_prob]))[kind](); // of what is known by then
  fill(root, figure({ title: t("knockout.ranking"), caption: t("knockout.ranking.note"), picture, name: "heads", python: ranking(app, target, way) }));
}

function ranking(app, target, way) {
  const example = `(${JSON.stringify(app.trace.text)}, ${JSON.stringify(target ?? "")})`;
  return [
    `${loading(app)}from jumok.lens.importance import measure_for, rank_heads\n`,
    `measure = measure_for(model, [${example}], score=False)`,
    `heads = sorted(rank_heads(model, measure, "${way}"), key=lambda head: head.log_prob)`,
    "values = [(head.attention, head.head, head.log_prob) for head in heads]\n",
  ].join("\n");
}
