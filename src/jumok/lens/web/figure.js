// A frame around a picture: its title, and buttons that save it as PNG, SVG or CSV and copy the Python that gets it.

import { h } from "jumok/dom.js";
import { t } from "jumok/texts.js";

/** `picture` has an element, and csv(), svg() and a canvas where it can be saved so; `python` is code for a notebook. */
export function figure({ title, caption, picture, python, name, extra }) {
  const buttons = h("div", { class: "figure-buttons", role: "toolbar", "aria-label": t("figure.save") });
  const save = (label, run) => buttons.append(h("button", { type: "button", class: "small", onclick: run }, label));
  if (picture.canvas) save("PNG", () => picture.canvas.toBlob((blob) => download(blob, `${name}.png`)));
  if (picture.svg) save("SVG", () => download(new Blob([picture.svg()], { type: "image/svg+xml" }), `${name}.svg`));
  if (picture.csv) save("CSV", () => download(new Blob(["\ufeff", picture.csv()], { type: "text/csv" }), `${name}.csv`));
  if (python) {
    save(t("figure.python"), async (event) => {
      await copy(python);
      event.target.textContent = t("figure.copied");
      setTimeout(() => (event.target.textContent = t("figure.python")), 1500);
    });
  }
  return h(
    "figure",
    {},
    h("div", { class: "figure-head" }, h("figcaption", {}, h("strong", {}, title), caption && h("span", {}, caption)), buttons),
    extra,
    picture.element,
  );
}

function download(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", {}, text); // a page opened by file:// may not use the clipboard
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
