// A frame around a picture: its title, and buttons that save it as PNG, SVG or CSV and copy the Python that gets it.

import { h } from "jumok/dom.js";
import { t } from "jumok/texts.js";

/** `picture` has an element, csv(), and svg() or a canvas if it is more than a table; `python` gets the numbers of its csv(). */
export function figure({ title, caption, picture, python, name, extra }) {
  const buttons = h("div", { class: "figure-buttons", role: "toolbar", "aria-label": t("figure.save") });
  const save = (label, run) => buttons.append(h("button", { type: "button", class: "small", onclick: run }, label));
  if (picture.canvas) save("PNG", () => picture.canvas.toBlob((blob) => download(blob, `${name}.png`)));
  else if (picture.svg) save("PNG", async () => download(await drawn(picture.svg()), `${name}.png`));
  if (picture.svg) save("SVG", () => download(new Blob([picture.svg()], { type: "image/svg+xml" }), `${name}.svg`));
  if (picture.csv) save("CSV", () => download(new Blob(["\ufeff", picture.csv()], { type: "text/csv" }), `${name}.csv`));
  save(t("figure.python"), async (event) => {
    await copy(python);
    event.target.textContent = t("figure.copied");
    setTimeout(() => (event.target.textContent = t("figure.python")), 1500);
  });
  return h(
    "figure",
    {},
    h("div", { class: "figure-head" }, h("figcaption", {}, h("strong", {}, title), caption && h("span", {}, caption)), buttons),
    extra,
    picture.element,
  );
}

/** SVG text as a PNG of twice its size. */
async function drawn(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = h("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

function download(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // a busy computer may begin to save late
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
