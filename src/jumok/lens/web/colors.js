// Colours that grow evenly for the eye: interpolated in OKLab between a few anchors, one table a theme.

const SEQUENTIAL = {
  light: [[0.985, 0.0, 0.0], [0.86, -0.045, -0.05], [0.66, -0.02, -0.13], [0.45, 0.03, -0.17], [0.26, 0.05, -0.12]],
  dark: [[0.22, 0.0, -0.01], [0.36, 0.03, -0.11], [0.55, -0.01, -0.14], [0.75, -0.08, -0.03], [0.95, -0.06, 0.09]],
};
const DIVERGING = {
  light: [[0.42, -0.02, -0.16], [0.72, -0.04, -0.09], [0.98, 0.0, 0.0], [0.74, 0.09, 0.07], [0.46, 0.15, 0.08]],
  dark: [[0.8, -0.05, -0.11], [0.5, -0.03, -0.12], [0.24, 0.0, 0.0], [0.5, 0.12, 0.07], [0.8, 0.1, 0.09]],
};
const STEPS = 256;
const tables = new Map();

export function theme() {
  return document.documentElement.dataset.theme;
}

/** A scale: from a number to a colour [r, g, b], and the two ends for its legend. */
export function sequential(low, high) {
  return scale(table(SEQUENTIAL, theme(), "s"), low, high);
}

/** The same around zero: as far above it as below. */
export function diverging(low, high) {
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return scale(table(DIVERGING, theme(), "d"), -most, most);
}

export function css([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

/** Black or white, whichever can be read on the colour. */
export function ink([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#111" : "#fff";
}

function scale(colors, low, high) {
  const span = high - low || 1;
  const color = (value) => {
    const index = Math.round(((value - low) / span) * (STEPS - 1));
    return colors[Math.max(0, Math.min(STEPS - 1, index))];
  };
  return { color, low, high };
}

function table(anchors, name, kind) {
  const key = kind + name;
  if (!tables.has(key)) {
    const points = anchors[name];
    const colors = [];
    for (let step = 0; step < STEPS; step += 1) {
      const at = (step / (STEPS - 1)) * (points.length - 1);
      const index = Math.min(Math.floor(at), points.length - 2);
      colors.push(rgb(points[index].map((value, axis) => value + (points[index + 1][axis] - value) * (at - index))));
    }
    tables.set(key, colors);
  }
  return tables.get(key);
}

/** OKLab → sRGB, each 0 … 255. */
function rgb([lightness, a, b]) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((value) => {
    const bounded = Math.max(0, Math.min(1, value));
    return Math.round(255 * (bounded <= 0.0031308 ? 12.92 * bounded : 1.055 * bounded ** (1 / 2.4) - 0.055));
  });
}
