// The Python that gets what a figure shows: it runs as it is, in a notebook or a script, and leaves it in `values`.

/** Lines that load the model of the page (or another of the picker) as `model`. */
export function loading(app, number = app.place.model ?? 0) {
  const code = app.models[number]?.code;
  return code ? `${code}\n` : `import jumok\n\nmodel = jumok.load(${path(app)}, "torch")\n`;
}

/** The model or run of the page, as Python writes it. */
export function path(app) {
  return JSON.stringify(app.start.path ?? "run");
}

/** An expression for the trace of a text with the options of the page; `more` are further arguments. */
export function tracing(app, trace = app.trace, more = []) {
  const several = (trace.facts.sentences?.length ?? 1) > 1;
  const [own, request] = [trace === app.trace, app.request()];
  const parts = ["model", JSON.stringify(several && own ? request.text : app.inputOf(trace))];
  for (const name of ["seed", "guidance"]) if (trace.task === "painter" && app.place[name] !== undefined) parts.push(`${name}=${app.place[name]}`);
  if (several && own) parts.push(`sentence=${app.place.sentence ?? 0}`);
  if (app.place.target && own && !more.length) parts.push(`target_ids=${list(request.target_ids)}`);
  return `trace(${[...parts, ...more].join(", ")})`;
}

/** Lines that load the model and leave the trace of the page in `found`; `more` are further arguments. */
export function traced(app, more = []) {
  return `${loading(app)}from jumok.lens import trace\n\nfound = ${tracing(app, app.trace, more)}\n`;
}

/** The code that gets an array of the trace, or its part at the given indices; `rows` if not all of them are shown. */
export function python(app, name, indices = [], rows = null) {
  const index = indices.map((one) => `[${one}]`).join("");
  const axes = app.trace.arrays[name].axes.slice(indices.length).join(" × ");
  return `${traced(app)}values = found[${JSON.stringify(name)}].values${index}${rows === null ? "" : `[:${rows}]`}  # ${axes}\n`;
}

export function list(values) {
  return `[${values.join(", ")}]`;
}
