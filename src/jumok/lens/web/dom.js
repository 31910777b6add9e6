// Small helpers around the DOM: elements in one expression, and nothing that needs a framework.

/** An element. `properties` are attributes, `on…` listeners, `class`, `style` and `dataset`; children may be strings. */
export function h(tag, properties = {}, ...children) {
  const svg = tag.startsWith("svg:");
  const element = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style" && typeof value === "object") Object.assign(element.style, value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

/** Append children: elements, strings, or lists of them; nothing for null, undefined and false. */
export function add(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** Replace everything inside an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

/** A select box with labelled options: [[value, label], …]. */
export function choice(label, options, value, onchange) {
  const select = h("select", { onchange: (event) => onchange(event.target.value) });
  for (const [key, text] of options) select.append(h("option", { value: key, selected: key === value }, text));
  return h("label", { class: "field" }, h("span", {}, label), select);
}

/** A row of buttons of which one is pressed. */
export function segments(label, options, value, onchange) {
  const buttons = options.map(([key, text]) =>
    h("button", { type: "button", "aria-pressed": key === value ? "true" : "false", onclick: () => onchange(key) }, text),
  );
  return h("div", { class: "segments", role: "group", "aria-label": label }, buttons);
}

/** A control with its name in front of it. */
export function named(label, control) {
  return h("div", { class: "named" }, h("span", { "aria-hidden": "true" }, label), control);
}

/** A number with as many digits as can be read. */
export function number(value, digits = 3) {
  if (value === -Infinity) return "−∞";
  if (value === Infinity) return "∞";
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const text = size !== 0 && (size >= 1e5 || size < 10 ** -digits) ? value.toExponential(2) : value.toFixed(digits);
  return text.replaceAll("-", "−");
}

/** The first letters of a text; none is cut in two. */
export function cut(text, count) {
  return [...text].slice(0, count).join("");
}

const NOT_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** A text without what a file of XML, such as SVG, cannot hold. */
export function asXml(text) {
  return text.replace(NOT_XML, "\ufffd");
}

/** A text inside of XML. */
export function escape(text) {
  return asXml(text).replace(/[&<>"]/g, (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[character]);
}

/** Listeners for a text field: `run(text)` after a letter or a pause in typing, never with a syllable that is still composed. */
export function writing(run, milliseconds = 0) {
  let [timer, composing] = [0, false];
  const write = (event) => {
    clearTimeout(timer);
    const { value } = event.target;
    if (!composing) timer = setTimeout(() => run(value), milliseconds);
  };
  return { oninput: write, oncompositionstart: () => (composing = true), oncompositionend: (event) => ((composing = false), write(event)) };
}

/** Which control inside an element has the focus, so that it can be found again after everything was drawn anew. */
export function focused(root) {
  const element = document.activeElement;
  if (!element || element === root || !root.contains(element)) return null;
  const { selectionStart, selectionEnd } = element.type === "text" ? element : {};
  return { key: controlName(element), place: alike(root, controlName(element)).indexOf(element), selectionStart, selectionEnd };
}

/** Focus the control that had it; of a tree, the item that is selected now. */
export function refocus(root, focus) {
  if (!focus) return;
  const found = alike(root, focus.key);
  const element = found[focus.place] ?? found[0];
  element?.focus({ preventScroll: true });
  if (focus.selectionStart !== undefined) element?.setSelectionRange(focus.selectionStart, focus.selectionEnd);
}

function alike(root, key) {
  return [...root.querySelectorAll('a, button, input, select, [tabindex="0"]')].filter((element) => controlName(element) === key);
}

function controlName(element) {
  if (element.getAttribute("role") === "treeitem") return "treeitem";
  const field = element.closest("label")?.querySelector("span");
  return `${element.tagName} ${element.getAttribute("aria-label") ?? (field ?? element).textContent}`;
}
