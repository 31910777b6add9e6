// Arrays of a trace, and what is computed from them for display only.

/** Values with named axes, row by row. */
export class Tensor {
  constructor(name, axes, shape, data) {
    Object.assign(this, { name, axes, shape, data });
  }

  /** The matrix of the last two axes at the given leading indices. */
  matrix(...leading) {
    const [rows, columns] = this.shape.slice(-2);
    let start = 0;
    leading.forEach((index, axis) => (start = start * this.shape[axis] + index));
    const size = rows * columns;
    return new Matrix(rows, columns, this.data.subarray(start * size, (start + 1) * size));
  }
}

/** Rows and columns of numbers. */
export class Matrix {
  constructor(rows, columns, data) {
    Object.assign(this, { rows, columns, data });
  }

  at(row, column) {
    return this.data[row * this.columns + column];
  }

  row(index) {
    return this.data.subarray(index * this.columns, (index + 1) * this.columns);
  }

  /** The smallest and largest finite value. (`Math.max(...data)` fails with more values than fit on the stack.) */
  range() {
    const { min, max } = statistics(this.data);
    return min <= max ? [min, max] : [0, 1];
  }
}

/** Float32 values from base64. */
export function decode(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** Float16 values from base64, all of them finite. */
export function decodeHalf(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return Float32Array.from(new Uint16Array(bytes.buffer), (bits) => {
    const [exponent, fraction] = [(bits >> 10) & 31, (bits & 1023) / 1024];
    const size = exponent ? (1 + fraction) * 2 ** (exponent - 15) : fraction * 2 ** -14;
    return bits & 0x8000 ? -size : size;
  });
}

/** Smallest, mean and largest finite value, and the Euclidean norm. */
export function statistics(values) {
  let [low, high, sum, squares, count] = [Infinity, -Infinity, 0, 0, 0];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
    sum += value;
    squares += value * value;
    count += 1;
  }
  return { min: low, mean: sum / count, max: high, norm: Math.sqrt(squares) };
}

/** Mean entropy of the rows, in bits: 0 where each query looks at one key. */
export function entropy(weights) {
  let total = 0;
  for (const weight of weights.data) if (weight > 0) total -= weight * Math.log2(weight);
  return total / weights.rows;
}

/** The mean weight at `column = row + offset`: 0 is the diagonal, −1 the token before. */
export function share(weights, offset) {
  let [total, count] = [0, 0];
  for (let row = 0; row < weights.rows; row += 1) {
    const column = row + offset;
    if (column < 0 || column >= weights.columns) continue;
    total += weights.at(row, column);
    count += 1;
  }
  return count ? total / count : 0;
}

const SPACE = "▁";

/** A token as it is shown: without the mark of a word's start; inside a word with a dot in front. */
export function shown(token, index, tokens) {
  if (/^<.*>$/.test(token)) return token;
  if (token.startsWith(SPACE)) return token.slice(1) || "␣";
  return index > 0 && !/^<.*>$/.test(tokens[index - 1] ?? "") ? `·${token}` : token;
}

/** A token that stands in a list, not in its sentence. */
export function alone(token) {
  return shown(token, 1, ["", token]);
}

/** Groups of subwords that are one word: [[first, end], …] and their texts. Special tokens stand alone. */
export function wordsOf(tokens) {
  const groups = [];
  tokens.forEach((token, index) => {
    const special = /^<.*>$/.test(token);
    const before = tokens[index - 1];
    const starts = index === 0 || special || token.startsWith(SPACE) || /^<.*>$/.test(before);
    if (starts) groups.push([index, index + 1]);
    else groups[groups.length - 1][1] = index + 1;
  });
  return groups.map(([first, end]) => ({
    first,
    end,
    text: tokens.slice(first, end).join("").replaceAll(SPACE, "") || "␣",
  }));
}

/** Weights between words: a word attends with the mean of its subwords, and is attended to with their sum. */
export function byWords(weights, queries, keys) {
  const result = new Matrix(queries.length, keys.length, new Float32Array(queries.length * keys.length));
  queries.forEach((query, row) => {
    keys.forEach((key, column) => {
      let total = 0;
      for (let q = query.first; q < query.end; q += 1) {
        for (let k = key.first; k < key.end; k += 1) total += weights.at(q, k);
      }
      result.data[row * keys.length + column] = total / (query.end - query.first);
    });
  });
  return result;
}
