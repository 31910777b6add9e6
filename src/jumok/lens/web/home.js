// The first page: what the model is, sentences to try, and where to go.

import { fill, h, number } from "jumok/dom.js";
import { smallPicture } from "jumok/picture.js";
import { forTask, metric, t } from "jumok/texts.js";

const OWN_VIEW = { image_classifier: "patches", painter: "painting" };

export const id = "home";
export const beforeSearch = true; // it shows nothing of the search

export async function show(root, app) {
  const { card = {}, config = {}, task } = app.model;
  const languages = (card.languages ?? []).join(" → ");
  const picture = app.trace && (await app.source.array(app.trace, "picture"));
  fill(
    root,
    h("section", { class: "hero" }, h("h1", {}, t("home.title")), h("p", { class: "lead" }, t("home.lead"))),
    app.trace && h("blockquote", { class: "pair" }, h("p", {}, app.trace.text), picture && smallPicture(picture, 160, app.trace.text), h("p", {}, app.trace.output)),
    h(
      "p",
      { class: "doors" },
      OWN_VIEW[task] && h("button", { type: "button", class: "primary", onclick: () => app.go({ view: OWN_VIEW[task] }) }, t(`view.${OWN_VIEW[task]}`)),
      h("button", { type: "button", class: OWN_VIEW[task] ? "" : "primary", onclick: () => app.go({ view: "journey" }) }, t("home.journey")),
      h("button", { type: "button", onclick: () => app.go({ view: "atlas" }) }, t("home.atlas")),
    ),
    samples(app),
    leftOut(app),
    h("h2", {}, t("home.card")),
    h(
      "dl",
      { class: "facts" },
      fact(t("card.task"), t(`task.${task}`)),
      languages && fact(t("card.languages"), languages),
      ...["encoder_layers", "decoder_layers", "heads", "d_model", "d_ff", "vocabulary", "patch", "codes"]
        .filter((name) => config[name] !== undefined && !(task === "image_classifier" && ["vocabulary", "decoder_layers"].includes(name)))
        .map((name) => fact(t(`card.${name}`), Number(config[name]).toLocaleString())),
      fact(t("card.norm"), t(`card.norm.${config.norm}`)),
      ...Object.entries(card.metrics ?? {})
        .filter(([, value]) => typeof value === "number")
        .map(([name, value]) => fact(capital(metric(name)), number(value, 2))),
    ),
  );
}

function samples(app) {
  const sentences = app.start.samples ?? [];
  if (!sentences.length) return null;
  const list = sentences.map((text) => h("li", {}, h("button", { type: "button", class: "sample", onclick: () => app.choose(text) }, text)));
  return [h("h2", {}, forTask("home.samples", app.model.task)), h("ul", { class: "samples" }, list)];
}

/** A saved page does not hold everything: it says what is missing, and why. */
function leftOut(app) {
  if (app.source.live) return null;
  const arrays = app.trace?.left_out ?? [];
  const { models = [], parts = 0, validations: [kept, all] = [0, 0], sentences: [some, recorded] = [0, 0] } = app.start.left_out ?? {};
  const run = app.start.path ? `jumok look -m ${app.start.path}` : "jumok look";
  const items = [
    ["arrays", arrays.length, { count: arrays.length, names: arrays.slice(0, 3).join(", ") }, arrays.length > 3 && h("details", {}, h("summary", {}, t("saved.names")), h("p", { class: "quiet" }, arrays.join(", ")))],
    ["parts", parts, { count: parts }],
    ["models", models.length, { names: models.join(", ") }],
    ["validations", kept < all, { kept, all }],
    ["sentences", some < recorded, { kept: some, all: recorded }],
    ["model", true, {}, h("code", {}, run)],
  ];
  const list = items.filter(([, there]) => there).map(([key, , values, more]) => h("li", { "data-left-out": key }, t(`saved.${key}`, values), " ", more));
  return [h("h2", {}, t("saved.title")), h("ul", {}, list)];
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function fact(name, value) {
  return [h("dt", {}, name), h("dd", {}, value)];
}
