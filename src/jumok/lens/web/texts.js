// The words of the page in English and Korean: en.json and ko.json have the same keys.

let words = {};
let fallback = {};

/** Choose the language; `load(name)` gives the object of en.json or ko.json. */
export async function speak(language, load) {
  fallback = await load("en");
  words = language === "en" ? fallback : await load(language);
  document.documentElement.lang = language;
}

/** How a metric of a log or a card is called. */
export function metric(name) {
  return words[`metric.${name}`] ?? name;
}

/** The text of a key for a task, if there is one of its own: a picture is no sentence. */
export function forTask(key, task, values) {
  return t(`${key}.${task}` in words ? `${key}.${task}` : key, values);
}

/** The text of a key. `{name}` in it is replaced by the value of that name. */
export function t(key, values = {}) {
  const text = words[key] ?? fallback[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
