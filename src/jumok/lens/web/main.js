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
import * as painting from "jumok/painting.js";
import * as patches from "jumok/patches.js";
import * as positions from "jumok/positions.js";
import * as softhard from "jumok/softhard.js";
import * as surprise from "jumok/surprise.js";
import { forTask, speak, t } from "jumok/texts.js";
import * as training from "jumok/training.js";

const VIEWS = [home, decision, surprise, patches, painting, journey, atlas, knockout, beams, positions, softhard, training, compare];
const NUMBERS = new Set(["layer", "head", "query", "model", "step", "node", "beam", "window", "sentence", "seed", "guidance", "word"]);

const FORGOTTEN = { sentence: null, target: null, force: null, node: null, off: null, step: null, word: null, query: null }; // with another sentence

const TYPING = 2000; // milliseconds: letters typed with shorter pauses are one change of the sentence

class App {
  constructor(start) {
    this.source = new Source(start);
    this.start = start;
    this.trace = null;
    this.opened = new Map(); // pictures that the page was given, by name: files as base64
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
      if (!NUMBERS.has(key)) place[key] = value;
      else if (Number(value) >= 0) place[key] = key === "guidance" ? Number(value) : Math.floor(Number(value)); // what is no number is left out
    }
    return place;
  }

  /** Change the place; the view is shown anew. `replace`: the place of before is not one to go back to. */
  go(changes, replace = false) {
    const place = { ...this.place, ...changes };
    for (const key of Object.keys(place)) if (place[key] === undefined || place[key] === null) delete place[key];
    const hash = String(new URLSearchParams(place));
    if (location.href === "about:srcdoc") this.hash = hash; // in a notebook's frame, which has no address of its own
    else history[replace ? "replaceState" : "pushState"](null, "", `#${hash}`);
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
    if (["text", "model", "target", "sentence", "seed", "guidance"].some((key) => before[key] !== this.place[key])) await this.ask();
    else await this.render();
  }

  /** A letter was typed. Back goes to the sentence before the typing, not to each of its letters. */
  type(text) {
    const { time = 0, place } = this.typed ?? {};
    const now = performance.now();
    this.go({ text, ...FORGOTTEN }, place === this.place && now - time < TYPING);
    this.typed = { time: now, place: this.place };
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
    const { model = 0, sentence, seed, guidance } = this.place;
    const own = this.model.task === "painter" ? { seed, guidance } : { picture: this.opened.get(this.text) };
    return { model, text: this.text, sentence, ...own, ...target, ...changes };
  }

  /** What was traced, as Python code names it: a text, or the path of a picture. */
  inputOf(trace) {
    return this.start.files?.[trace.text] ?? trace.text;
  }

  /** Trace the sentence of now and show the view. A search with beams takes long: the greedy output is shown before it. */
  async ask() {
    this.asking?.abort(); // nobody waits for the sentence of before
    const asking = (this.asking = new AbortController());
    this.status.textContent = t("status.thinking");
    const searched = this.source.live && this.model.task === "translator" && !this.place.target;
    for (const greedy of searched && this.view.beforeSearch ? [true, false] : [false]) {
      let trace = null;
      try {
        if (this.text.trim()) trace = await this.source.trace(this.request(greedy ? { beam: 1 } : {}), asking.signal);
      } catch (error) {
        if (asking === this.asking) await this.answer(null, false, error instanceof NeedsServer ? t("status.saved") : error.message);
        return;
      }
      if (asking !== this.asking) return;
      await this.answer(trace, greedy && trace !== null);
      if (asking !== this.asking || !trace) return;
    }
  }

  /** Show a trace, or why there is none. `greedy`: it is not the last one, and the page says so. */
  async answer(trace, greedy, problem = "") {
    const same = this.greedy && trace && String(trace.facts.chosen) === String(this.trace.facts.chosen);
    [this.trace, this.greedy] = [trace, greedy];
    this.status.textContent = problem || (greedy ? t("status.greedy") : this.warning(trace));
    this.output.textContent = trace?.output ?? "";
    this.output.classList.toggle("greedy", greedy);
    this.showSentences();
    if (same && this.drawn === this.place) this.markShown(); // the same tokens have the same values
    else await this.render();
  }

  /** A text of several sentences is translated one by one: which of them is shown. */
  showSentences() {
    const sentences = this.trace?.facts.sentences ?? [];
    const options = sentences.map((text, index) => [String(index), `${index + 1}. ${text}`]);
    const pick = (index) => this.go({ ...FORGOTTEN, sentence: Number(index) });
    fill(this.picker, this.source.live && sentences.length > 1 && choice(t("sentence.which"), options, String(this.place.sentence ?? 0), pick));
  }

  /** What makes an answer mean less than it seems to. */
  warning(trace) {
    const words = trace?.facts.unknown_words ?? [];
    if (words.length) return t("status.unknown_words", { words: words.join(", ") });
    return trace?.unknown ? t("status.unknown") : "";
  }

  titleOf(view) {
    return forTask(`view.${view.id}`, this.models[0].task);
  }

  get view() {
    return this.views.find((one) => one.id === this.place.view) ?? home;
  }

  /** For those who wait: which view is shown, of which trace. */
  markShown() {
    document.body.dataset.shown = `${this.greedy ? "greedy " : ""}${this.view.id} ${this.trace?.id ?? ""}`;
  }

  async render() {
    const { view } = this;
    document.title = `${this.titleOf(view)} · Jumok`;
    for (const link of this.navigation.querySelectorAll("a")) {
      if (link.dataset.view === view.id) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (!this.trace && view !== home) {
      fill(this.main, h("p", { class: "lead" }, this.status.textContent || t("status.no_sentence")));
      return;
    }
    if (this.greedy && !view.beforeSearch) return; // it is drawn when the search is over
    const { place } = this;
    if (!(await this.draw(view))) return;
    this.drawn = place;
    this.markShown();
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
      fill(root, h("p", { class: "lead" }, error instanceof NeedsServer ? t("status.left_out") : error.message));
      attach();
      if (!(error instanceof NeedsServer)) throw error;
    }
    observer.disconnect();
    attach();
    return place === this.place;
  }

  frame() {
    const app = document.getElementById("app");
    const focus = focused(app);
    const pictures = this.model.task === "image_classifier";
    this.input = pictures ? this.pictureChoice() : this.textBox();
    this.input.value = this.text;
    this.input.disabled = !this.source.live && new Set(this.start.traces.map(({ request }) => request.text)).size < 2;
    this.output = h("output", { for: "sentence", class: this.greedy ? "answer greedy" : "answer", lang: this.model?.card?.languages?.[1] });
    this.output.textContent = this.trace?.output ?? "";
    this.picker = h("div", { class: "picker" });
    this.showSentences();
    this.navigation = h(
      "nav",
      { "aria-label": t("navigation") },
      this.views.map((view) => h("a", { href: "#", "data-view": view.id, onclick: (event) => (event.preventDefault(), this.go({ view: view.id })) }, this.titleOf(view))),
    );
    fill(
      app,
      h("a", { class: "skip", href: "#view", onclick: (event) => (event.preventDefault(), this.main.focus()) }, t("skip")),
      h(
        "header",
        {},
        h("div", { class: "brand" }, h("strong", {}, "Jumok"), h("span", { lang: "ko" }, "주목")),
        h("div", { class: "question" }, h("label", { for: "sentence" }, t(this.inputName)), pictures && this.source.live ? h("div", { class: "chooser" }, this.input, this.fileButton()) : this.input, this.output, this.picker),
        h("div", { class: "settings" }, this.settings()),
      ),
      this.status,
      h("div", { class: "columns" }, this.navigation, this.main),
    );
    refocus(app, focus);
  }

  /** Which words of the page say what goes into the model. */
  get inputName() {
    return { image_classifier: "input.picture", painter: "input.caption" }[this.model.task] ?? "sentence";
  }

  textBox() {
    const { languages } = this.model.card ?? {};
    return h("textarea", { id: "sentence", rows: "1", spellcheck: "false", lang: languages?.[0], placeholder: t("sentence.placeholder"), ...writing((text) => this.type(text)) });
  }

  pictureChoice() {
    const names = new Set([...this.opened.keys(), ...(this.start.samples ?? []), this.text]);
    return h("select", { id: "sentence", onchange: (event) => this.go({ text: event.target.value, ...FORGOTTEN }) }, [...names].map((name) => h("option", { value: name }, name)));
  }

  /** A button that opens a picture of this computer. */
  fileButton() {
    const file = h("input", { type: "file", accept: "image/*", hidden: true, onchange: () => file.files[0] && this.open(file.files[0]) });
    return [h("button", { type: "button", onclick: () => file.click() }, t("input.open")), file];
  }

  async open(file) {
    const address = await new Promise((resolve) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.readAsDataURL(file);
    });
    this.opened.set(file.name, address.slice(address.indexOf(",") + 1));
    const again = this.text === file.name; // another file of this name
    this.go({ text: file.name, ...FORGOTTEN });
    this.frame();
    if (again) await this.ask();
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
