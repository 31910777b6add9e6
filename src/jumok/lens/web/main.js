// Starts the page: reads what it was given, keeps the place in the URL's hash, and shows one view at a time.

import { NeedsServer, Source } from "jumok/api.js";
import * as atlas from "jumok/atlas.js";
import * as beams from "jumok/beams.js";
import * as compare from "jumok/compare.js";
import * as decision from "jumok/decision.js";
import { choice, fill, focused, h, refocus, segments, writing } from "jumok/dom.js";
import * as home from "jumok/home.js";
import * as journey from "jumok/journey.js";
import * as knockout from "jumok/knockout.js";
import * as positions from "jumok/positions.js";
import * as softhard from "jumok/softhard.js";
import * as surprise from "jumok/surprise.js";
import { speak, t } from "jumok/texts.js";
import * as training from "jumok/training.js";

const VIEWS = [home, decision, surprise, journey, atlas, knockout, beams, positions, softhard, training, compare];
const NUMBERS = new Set(["layer", "head", "query", "model", "step", "node", "beam", "window", "sentence"]);

const FORGOTTEN = { sentence: null, target: null, force: null, node: null, off: null }; // with another sentence

const PAUSE = 50; // milliseconds without a letter, before a sentence is taken as complete

class App {
  constructor(start) {
    this.source = new Source(start);
    this.start = start;
    this.trace = null;
    this.main = h("main", { id: "view", tabindex: "-1" });
    this.status = h("p", { class: "status", role: "status" });
    this.place = this.readPlace();
  }

  async begin() {
    this.language = this.place.language ?? (navigator.language?.startsWith("ko") ? "ko" : "en");
    this.setTheme(this.place.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
    await speak(this.language, (name) => this.source.texts(name));
    this.models = await this.source.models();
    window.addEventListener("popstate", () => {
      this.arrive();
      this.input.value = this.text; // back to another sentence
    });
    this.frame();
    await this.ask();
  }

  /** The sentence of now. */
  get text() {
    return this.place.text ?? this.start.text ?? "";
  }

  /** The place in the page: view, text, and what is selected. */
  readPlace() {
    const place = {};
    for (const [key, value] of new URLSearchParams(this.hash ?? location.hash.slice(1))) {
      place[key] = NUMBERS.has(key) ? Number(value) : value;
    }
    return place;
  }

  /** Change the place; the view is shown anew. */
  go(changes) {
    const place = { ...this.place, ...changes };
    for (const key of Object.keys(place)) if (place[key] === undefined || place[key] === null) delete place[key];
    const hash = String(new URLSearchParams(place));
    if (location.href === "about:srcdoc") this.hash = hash; // in a notebook's frame, which has no address of its own
    else history.pushState(null, "", `#${hash}`);
    this.arrive();
  }

  async arrive() {
    const before = this.place;
    this.place = this.readPlace();
    if ((this.place.language ?? this.language) !== this.language || (this.place.theme ?? this.theme) !== this.theme) {
      this.language = this.place.language ?? this.language;
      this.setTheme(this.place.theme ?? this.theme);
      await speak(this.language, (name) => this.source.texts(name));
      this.frame();
    }
    if (["text", "model", "target", "sentence"].some((key) => before[key] !== this.place[key])) await this.ask();
    else await this.render();
  }

  /** Another sentence, as if it had been typed. */
  choose(text) {
    this.input.value = text;
    this.go({ text, ...FORGOTTEN });
  }

  setTheme(theme) {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
  }

  get model() {
    return this.models[this.place.model ?? 0] ?? this.models[0];
  }

  /** The views that apply to this model: some are for one task only, and not every model has its training run. */
  get views() {
    const { task } = this.models[0];
    return VIEWS.filter((view) => (!view.tasks || view.tasks.includes(task)) && (view !== training || this.start.training));
  }

  /** The request for the sentence of now. */
  request(changes = {}) {
    const target = this.place.target ? { target_ids: this.place.target.split(",").map(Number) } : {};
    const { model = 0, sentence } = this.place;
    return { model, text: this.text, sentence, ...target, ...changes };
  }

  /** Trace the sentence of now and show the view. The model runs one sentence at a time: while it does, only the newest waits. */
  async ask() {
    this.waiting = true;
    if (this.running) return;
    this.running = true;
    while (this.waiting) {
      this.waiting = false;
      await this.answer();
    }
    this.running = false;
  }

  async answer() {
    this.status.textContent = t("status.thinking");
    let message = "";
    try {
      const trace = this.text.trim() ? await this.source.trace(this.request()) : null;
      if (this.waiting) return; // for another sentence
      this.trace = trace;
    } catch (error) {
      message = error instanceof NeedsServer ? t("status.saved") : error.message;
    }
    this.status.textContent = message || (this.trace?.unknown ? t("status.unknown") : "");
    if (message) return;
    this.output.textContent = this.trace?.output ?? "";
    this.showSentences();
    await this.render();
  }

  /** A text of several sentences is translated one by one: which of them is shown. */
  showSentences() {
    const sentences = this.trace?.facts.sentences ?? [];
    const options = sentences.map((text, index) => [String(index), `${index + 1}. ${text}`]);
    const pick = (index) => this.go({ ...FORGOTTEN, sentence: Number(index) });
    fill(this.picker, this.source.live && sentences.length > 1 && choice(t("sentence.which"), options, String(this.place.sentence ?? 0), pick));
  }

  async render() {
    const view = this.views.find((one) => one.id === this.place.view) ?? home;
    document.title = `${t(`view.${view.id}`)} · Jumok`;
    for (const link of this.navigation.querySelectorAll("a")) {
      if (link.dataset.view === view.id) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (!this.trace && view !== home) {
      fill(this.main, h("p", { class: "lead" }, t("status.no_sentence")));
      return;
    }
    if (await this.draw(view)) document.body.dataset.shown = `${view.id} ${this.trace?.id ?? ""}`;
  }

  /** Draw a view, and put it into the page as soon as there is something of it; false if the place is another by then. */
  async draw(view) {
    const { place } = this;
    const root = h("div", { class: "view" });
    const attach = () => {
      if (place !== this.place || root.parentNode || !root.firstChild) return;
      const focus = focused(this.main);
      fill(this.main, root);
      refocus(this.main, focus);
    };
    const observer = new MutationObserver(attach);
    observer.observe(root, { childList: true });
    try {
      await view.show(root, this);
    } catch (error) {
      if (!(error instanceof NeedsServer)) throw error;
      fill(root, h("p", { class: "lead" }, t("status.left_out")));
    }
    observer.disconnect();
    attach();
    return place === this.place;
  }

  frame() {
    const app = document.getElementById("app");
    const focus = focused(app);
    this.input = h("textarea", {
      id: "sentence",
      rows: "1",
      spellcheck: "false",
      lang: this.model?.card?.languages?.[0],
      placeholder: t("sentence.placeholder"),
      ...writing((text) => this.go({ text, ...FORGOTTEN }), PAUSE),
    });
    this.input.value = this.text;
    this.input.disabled = !this.source.live && (this.start.traces?.length ?? 0) < 2;
    this.output = h("output", { for: "sentence", class: "answer", lang: this.model?.card?.languages?.[1] });
    this.output.textContent = this.trace?.output ?? "";
    this.picker = h("div", { class: "picker" });
    this.showSentences();
    this.navigation = h(
      "nav",
      { "aria-label": t("navigation") },
      this.views.map((view) => h("a", { href: "#", "data-view": view.id, onclick: (event) => (event.preventDefault(), this.go({ view: view.id })) }, t(`view.${view.id}`))),
    );
    fill(
      app,
      h("a", { class: "skip", href: "#view", onclick: (event) => (event.preventDefault(), this.main.focus()) }, t("skip")),
      h(
        "header",
        {},
        h("div", { class: "brand" }, h("strong", {}, "Jumok"), h("span", { lang: "ko" }, "주목")),
        h("div", { class: "question" }, h("label", { for: "sentence" }, t("sentence")), this.input, this.output, this.picker),
        h("div", { class: "settings" }, this.settings()),
      ),
      this.status,
      h("div", { class: "columns" }, this.navigation, this.main),
    );
    refocus(app, focus);
  }

  settings() {
    const models = this.models.map((model) => [String(model.id), model.title]);
    return [
      models.length > 1 && choice(t("model"), models, String(this.place.model ?? 0), (id) => this.go({ model: Number(id) })),
      segments(t("language"), [["en", "English"], ["ko", "한국어"]], this.language, (language) => this.go({ language })),
      segments(t("theme"), [["light", t("theme.light")], ["dark", t("theme.dark")]], this.theme, (theme) => this.go({ theme })),
    ];
  }
}

const app = new App(JSON.parse(document.getElementById("start").textContent));
app.begin();
