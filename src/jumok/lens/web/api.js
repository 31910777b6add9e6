// Where the page gets its data: from the server of `jumok look`, or from what was saved into the file.

import { Tensor, decode } from "jumok/tensor.js";

export class NeedsServer extends Error {}

export class Source {
  constructor(start) {
    this.start = start;
    this.live = Boolean(start.server);
    this.arrays = new WeakMap(); // trace → the values of its arrays by name
  }

  async texts(language) {
    if (!this.live) return JSON.parse(this.start.texts[language]);
    return (await fetch(`/web/${language}.json`)).json();
  }

  async models() {
    return this.live ? this.get("/api/models") : this.start.models;
  }

  /** The trace of a request {model, text, …}; in a saved page only what was saved. */
  async trace(request, signal) {
    if (this.live) return { ...(await this.post("/api/trace", request, signal)), request };
    const key = JSON.stringify(canonical(request));
    const found = this.start.traces.find((saved) => JSON.stringify(canonical(saved.request)) === key);
    if (!found) throw new NeedsServer();
    return found.trace;
  }

  /** Whether this trace can be made here. */
  async has(request) {
    try {
      if (!this.live) await this.trace(request);
      return true;
    } catch {
      return false;
    }
  }

  /** An array of a trace. Each is fetched once. */
  async array(trace, name) {
    const described = trace.arrays[name];
    if (!described) return null;
    if (!this.arrays.has(trace)) this.arrays.set(trace, new Map());
    const known = this.arrays.get(trace);
    if (!known.has(name)) known.set(name, this.values(trace, name, described));
    return new Tensor(name, described.axes, described.shape, await known.get(name));
  }

  async values(trace, name, described) {
    if (described.data !== undefined) return decode(described.data);
    if (!this.live) throw new NeedsServer();
    const fetched = () => fetch(`/api/array?${new URLSearchParams({ trace: trace.id, name })}`);
    let answer = await fetched();
    if (answer.status === 422) {
      trace.id = (await this.post("/api/trace", trace.request)).id; // the server keeps only the last traces; its values are the same
      answer = await fetched();
    }
    if (!answer.ok) throw new Error((await answer.json()).error);
    return new Float32Array(await answer.arrayBuffer());
  }

  /** Calls `onHead` for every head as it is measured. */
  async rank(request, onHead, signal) {
    if (!this.live) {
      const found = this.start.ranks?.find((saved) => saved.request.text === request.text && saved.request.way === request.way);
      if (!found) throw new NeedsServer();
      found.heads.forEach(onHead);
      return;
    }
    const answer = await this.send("/api/rank", request, signal);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      lines.filter(Boolean).forEach((line) => onHead(JSON.parse(line)));
    }
  }

  /** What each token adds to the decision of a classifier: for {model, text, label, other}. */
  async attribution(request) {
    if (this.live) return this.post("/api/attribution", request);
    const key = JSON.stringify(canonical(request));
    const found = this.start.attributions?.find((saved) => JSON.stringify(canonical(saved.request)) === key);
    if (!found) throw new NeedsServer();
    return found.attribution;
  }

  /** The validations whose attention was recorded, or, with a step, what was recorded then. */
  async replay(step) {
    if (!this.live) return step === undefined ? Object.keys(this.start.replay ?? {}).map(Number) : this.start.replay[step];
    return this.get(step === undefined ? "/api/replay" : `/api/replay?step=${step}`);
  }

  async log() {
    return this.live ? this.get("/api/log") : (this.start.log ?? []);
  }

  async get(path) {
    const answer = await fetch(path);
    if (!answer.ok) throw new Error((await answer.json()).error);
    return answer.json();
  }

  async post(path, body, signal) {
    return (await this.send(path, body, signal)).json();
  }

  async send(path, body, signal) {
    const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal };
    const answer = await fetch(path, options);
    if (!answer.ok) throw new Error((await answer.json()).error);
    return answer;
  }
}

/** A request without what is empty, its keys in order: equal requests have equal text. */
function canonical(value) {
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.keys(value)
    .sort()
    .map((key) => [key, canonical(value[key])])
    .filter(([, inner]) => inner !== undefined && inner !== null && inner !== false && !isEmpty(inner));
  return Object.fromEntries(kept);
}

function isEmpty(value) {
  return typeof value === "object" && Object.keys(value).length === 0;
}
