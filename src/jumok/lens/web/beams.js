// Decoding and beams: the tree of the search. Branches that went on are solid, pruned ones grey with the reason.

import { cut, fill, h, number, segments } from "jumok/dom.js";
import { standalone, table } from "jumok/chart.js";
import { figure } from "jumok/figure.js";
import { list, loading, tracing } from "jumok/python.js";
import { pictured } from "jumok/tables.js";
import { alone, shown } from "jumok/tensor.js";
import { t } from "jumok/texts.js";

const [WIDTH, HEIGHT, LETTERS] = [132, 30, 8]; // letters of a token that fit; a Korean one counts twice
const NODE = ["parent", "step", "text", "log_prob", "total", "score", "fate", "reason"];

export const id = "beams";
export const tasks = ["translator"];

export async function show(root, app) {
  if (!app.trace.search) {
    fill(root, h("p", { class: "lead" }, t("beams.none")));
    return;
  }
  const beam = app.place.beam ?? app.trace.search.beam;
  const forced = app.place.force ? app.place.force.split(",").map(Number) : null;
  const request = app.request({ beam, force: forced ?? undefined });
  const trace = beam === app.trace.search.beam && !forced ? app.trace : await app.source.trace(request);
  const greedy = (await app.source.has(app.request({ beam: 1 }))) ? await app.source.trace(app.request({ beam: 1 })) : null;
  const search = trace.search;
  const sizes = app.source.live ? [1, 2, 3, 5, 8] : [...(greedy ? [1] : []), app.trace.search.beam]; // a saved page has no others
  const chosen = Math.min(app.place.node ?? search.best, search.nodes.length - 1);
  fill(
    root,
    h("p", { class: "lead" }, t("beams.lead")),
    h(
      "div",
      { class: "controls" },
      segments(t("beams.beam"), sizes.map((size) => [size, t("beams.size", { size })]), beam, (size) => app.go({ beam: size, node: null })),
      forced && h("button", { type: "button", onclick: () => app.go({ force: null, node: null }) }, t("beams.unforce")),
    ),
    compared(app, trace, greedy, beam, forced),
    figure({ title: t("beams.tree"), caption: t("beams.legend"), picture: tree(app, search, chosen), name: "beams", python: `${searched(app, beam, forced)}values = [(${NODE.map((name) => `node.${name}`).join(", ")}) for node in search.nodes]\n` }),
    h("div", { class: "beam-detail" }, details(app, search, chosen, searched(app, beam, forced))),
  );
  if (app.place.node !== undefined) queueMicrotask(() => root.querySelector('.node[aria-selected="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" })); // when the view is in the page
}

/** The output of this search beside that of greedy search. */
function compared(app, trace, greedy, beam, forced) {
  const row = (name, one) => [name, one.output, one.search.nodes[one.search.best].score];
  const rows = [row(t("beams.size", { size: beam }), trace), ...(greedy ? [row(t("beams.greedy"), greedy)] : [])];
  const element = h(
    "table",
    { class: "plain" },
    h("thead", {}, h("tr", {}, h("th", {}), h("th", {}, t("column.output")), h("th", {}, t("column.score")))),
    h("tbody", {}, rows.map(([name, output, score]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, output), h("td", { class: "number" }, number(score))))),
  );
  const searches = [tracing(app, app.trace, options(app, beam, forced)), ...(greedy ? [tracing(app, app.trace, ["beam=1"])] : [])];
  const python = `${loading(app)}from jumok.lens import trace\n\nfound = ${list(searches)}\nvalues = [(one.output, one.search.nodes[one.search.best].score) for one in found]\n`;
  return figure({ title: t("beams.outputs"), picture: pictured(element, ["search", "output", "score"], rows), name: "outputs", python });
}

/** The options of this search that are not those of the page's trace. */
function options(app, beam, forced) {
  return [beam !== app.trace.search.beam && `beam=${beam}`, forced && `force=${list(forced)}`].filter(Boolean);
}

/** Lines that leave this search in `search`. */
function searched(app, beam, forced) {
  return `${loading(app)}from jumok.lens import trace\n\nsearch = ${tracing(app, app.trace, options(app, beam, forced))}.search\n`;
}

/** Where every node stands: a column a step, the best on top. */
function places(search) {
  const columns = new Map();
  search.nodes.forEach((node, index) => {
    if (!columns.has(node.step)) columns.set(node.step, []);
    columns.get(node.step).push(index);
  });
  const found = new Map();
  for (const [step, nodes] of columns) {
    const rank = { kept: 0, finished: 0, stopped: 0, pruned: 1 };
    nodes.sort((a, b) => rank[search.nodes[a].fate] - rank[search.nodes[b].fate] || search.nodes[b].total - search.nodes[a].total);
    nodes.forEach((index, row) => found.set(index, [(step + 1) * WIDTH + 8, row * HEIGHT + 26]));
  }
  return found;
}

function tree(app, search, chosen) {
  const at = places(search);
  const width = Math.max(...[...at.values()].map(([x]) => x)) + WIDTH;
  const height = Math.max(...[...at.values()].map(([, y]) => y)) + HEIGHT;
  const path = new Set();
  for (let node = chosen; node >= 0; node = search.nodes[node].parent) path.add(node);
  const svg = h("svg:svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "tree", "aria-label": t("beams.tree"), class: "tree" });
  search.nodes.forEach((node, index) => {
    if (node.parent < 0) return;
    const [[x1, y1], [x2, y2]] = [at.get(node.parent), at.get(index)];
    const line = path.has(index) ? "edge chosen" : `edge ${node.fate}`;
    svg.append(h("svg:path", { class: line, d: `M${x1 + WIDTH - 24},${y1} C${x1 + WIDTH},${y1} ${x2 - 20},${y2} ${x2 - 4},${y2}`, fill: "none" }));
  });
  search.nodes.forEach((node, index) => {
    const [x, y] = at.get(index);
    const words = t("beams.node", { token: alone(node.text), score: number(node.score), fate: t(`fate.${node.fate}`), reason: reason(node.reason) });
    const group = h(
      "svg:g",
      {
        class: `node ${node.fate}${path.has(index) ? " chosen" : ""}${index === search.best ? " best" : ""}`,
        transform: `translate(${x} ${y})`,
        role: "treeitem",
        tabindex: index === chosen ? "0" : "-1",
        "aria-selected": String(index === chosen),
        "aria-label": words,
        onclick: () => app.go({ node: index }),
        onkeydown: (event) => walk(event, app, search, index, at),
      },
      h("svg:rect", { x: -4, y: -11, width: WIDTH - 20, height: 22, rx: 5 }),
      h("svg:text", { x: 2, y: 4 }, `${index === search.best ? "★ " : node.fate === "finished" ? "⚑ " : ""}${shortened(alone(node.text))}`),
      h("svg:text", { x: WIDTH - 30, y: 4, class: "score", "text-anchor": "end" }, number(node.score, 2)),
      h("svg:title", {}, words),
    );
    svg.append(group);
  });
  return { element: h("div", { class: "map-scroller" }, svg), svg: () => standalone(svg), csv: () => nodes(search) };
}

function shortened(text) {
  const width = (letters) => [...letters].reduce((sum, letter) => sum + (letter > "\u1100" ? 2 : 1), 0);
  if (width(text) <= LETTERS) return text;
  let end = text.length;
  while (end > 1 && width(cut(text, end)) >= LETTERS) end -= 1;
  return `${cut(text, end)}…`;
}

function walk(event, app, search, focused, at) {
  const index = search.nodes[app.place.node] ? app.place.node : focused; // keys may come faster than the tree is drawn
  const node = search.nodes[index];
  const same = search.nodes.map((_, other) => other).filter((other) => search.nodes[other].step === node.step);
  same.sort((a, b) => at.get(a)[1] - at.get(b)[1]);
  const next = {
    ArrowUp: same[same.indexOf(index) - 1],
    ArrowDown: same[same.indexOf(index) + 1],
    ArrowLeft: node.parent,
    ArrowRight: search.nodes.findIndex((other) => other.parent === index),
  }[event.key];
  if (next === undefined || next < 0) return;
  event.preventDefault();
  app.go({ node: next });
}

/** The node that was chosen: its scores, the most probable next tokens, and going on from there. */
function details(app, search, index, python) {
  const node = search.nodes[index];
  const ids = pathOf(search, index);
  const length = node.step + 1;
  return [
    h("h2", {}, t("beams.hypothesis")),
    h("p", { class: "hypothesis" }, pathTexts(search, index).join(" ")),
    h(
      "dl",
      { class: "facts" },
      h("dt", {}, t("beams.fate")),
      h("dd", {}, [t(`fate.${node.fate}`), node.reason && `: ${reason(node.reason)}`]),
      node.step >= 0 && [
        h("dt", {}, "log P"),
        h("dd", {}, number(node.log_prob, 4)),
        h("dt", {}, t("beams.total")),
        h("dd", {}, number(node.total, 4)),
        h("dt", {}, t("beams.score")),
        h("dd", { class: "formula" }, `${number(node.total, 4)} / ${length}^${search.length_penalty} = ${number(node.score, 4)}`),
      ],
    ),
    node.fate === "finished" && h("p", { class: "quiet" }, t("beams.ended")),
    node.top.length > 0 && following(app, node, ids, `${python}values = search.nodes[${index}].top\n`),
    app.source.live && ids.length > 0 && h("button", { type: "button", onclick: () => app.go({ view: "atlas", kind: "cross", target: ids.filter((one) => one > 3).join(",") }) }, t("beams.attention")),
  ];
}

/** The most probable next tokens of a hypothesis; each can be forced. */
function following(app, { top }, ids, python) {
  const element = h(
    "ol",
    { class: "bars" },
    top.map(([token, text, logProb]) =>
      h(
        "li",
        {},
        h("span", { class: "bar-name" }, alone(text)),
        h("span", { class: "bar" }, h("i", { style: { width: `${100 * Math.exp(logProb)}%`, background: "var(--accent)" } })),
        h("span", { class: "bar-value" }, number(logProb)),
        app.source.live && token > 3 && h("button", { type: "button", class: "small", onclick: () => app.go({ force: [...ids, token].join(","), node: null }) }, t("beams.force")),
      ),
    ),
  );
  return figure({ title: t("beams.next"), caption: t("beams.next.note"), picture: pictured(element, ["token", "id", "log P"], top.map(([token, text, logProb]) => [text, token, logProb])), name: "next-tokens", python });
}

/** Reasons come from the model's side in English; the page says them in its own words where it has them. */
function reason(text) {
  const known = [
    [/^it is not among the (\d+) best/, "reason.beam"],
    [/^it ends, but is not among the (\d+) best/, "reason.ends"],
    [/^its score is not above ([-\d.]+)/, "reason.score"],
    [/finished score ([-\d.]+)/, "reason.stopped"],
    [/^forced$/, "reason.forced"],
  ];
  for (const [pattern, key] of known) {
    const found = pattern.exec(text);
    if (found) return t(key, { value: found[1] });
  }
  return text;
}

function pathOf(search, index) {
  const ids = [];
  for (let node = index; search.nodes[node].parent >= 0; node = search.nodes[node].parent) ids.unshift(search.nodes[node].token);
  return ids;
}

function pathTexts(search, index) {
  const texts = [];
  for (let node = index; node >= 0; node = search.nodes[node].parent) texts.unshift(search.nodes[node].text);
  return texts.map((text, place) => shown(text, place, texts));
}

/** Every node with its scores and its fate. */
function nodes(search) {
  return table([["node", ...NODE], ...search.nodes.map((node, index) => [index, ...NODE.map((name) => node[name])])]);
}
