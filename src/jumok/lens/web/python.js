// The Python that gets what a figure shows: it runs as it is, in a notebook or a script.

/** Lines that load the model of the page (or another of the picker) as `model`. */
export function loading(app, number = app.place.model ?? 0) {
  const code = app.models[number]?.code;
  return code ? `${code}\n` : `import jumok\n\nmodel = jumok.load(${JSON.stringify(app.start.path ?? "run")}, "torch")\n`;
}

/** An expression for the trace of a text with the options of the page. */
export function tracing(app, trace = app.trace, variable = "model") {
  const several = (trace.facts.sentences?.length ?? 1) > 1;
  const parts = [variable, JSON.stringify(several ? app.request().text : trace.text)];
  if (several) parts.push(`sentence=${app.place.sentence ?? 0}`);
  if (app.place.target) parts.push(`target_ids=[${app.place.target.split(",").join(", ")}]`);
  return `trace(${parts.join(", ")})`;
}

/** The code that gets an array of the trace; of a head, if one is given. */
export function python(app, name, head) {
  const index = head === undefined ? "" : `[${head}]`;
  const axes = app.trace.arrays[name]?.axes.slice(index ? 1 : 0).join(" × ") ?? "position × token";
  return `${loading(app)}from jumok.lens import trace\n\narray = ${tracing(app)}[${JSON.stringify(name)}]\nvalues = array.values${index}  # ${axes}\n`;
}
