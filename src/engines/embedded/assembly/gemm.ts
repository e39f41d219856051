// Matrix products with weights packed in panels of eight output columns: Y[m, n] = X[m, k] · W[n, k]ᵀ + b[n] (+ Y).
// Every output element is one running sum over k in ascending order, so a row never depends on the other rows of its batch.

/** Output columns per panel; a panel lies in memory as [k][8]. */
const PANEL: usize = 8;
const PANEL_BYTES: usize = PANEL * 4;

/**
 * x: rows of `xStride` floats; weights: packed panels; bias: n floats or 0; y: rows of `yStride` floats, columns rounded up to 8.
 * With `accumulate`, the product (bias included) is added to what y holds: a residual connection.
 */
export function gemm(
  x: usize,
  xStride: usize,
  weights: usize,
  bias: usize,
  y: usize,
  yStride: usize,
  rows: usize,
  depth: usize,
  panels: usize,
  accumulate: bool,
): void {
  const xBytes = xStride << 2;
  const yBytes = yStride << 2;
  const panelBytes = depth * PANEL_BYTES;
  for (let panel: usize = 0; panel < panels; panel++) {
    const w = weights + panel * panelBytes;
    const b: usize = bias === 0 ? <usize>0 : bias + panel * PANEL_BYTES;
    const out = y + panel * PANEL_BYTES;
    let row: usize = 0;
    for (; row + 4 <= rows; row += 4) {
      fourRows(x + row * xBytes, xBytes, w, b, out + row * yBytes, yBytes, depth, accumulate);
    }
    for (; row < rows; row++) {
      oneRow(x + row * xBytes, w, b, out + row * yBytes, depth, accumulate);
    }
  }
}

function fourRows(
  x0: usize,
  xBytes: usize,
  w: usize,
  bias: usize,
  y: usize,
  yBytes: usize,
  depth: usize,
  accumulate: bool,
): void {
  const x1 = x0 + xBytes;
  const x2 = x1 + xBytes;
  const x3 = x2 + xBytes;
  let a0 = f32x4.splat(0),
    b0 = a0,
    a1 = a0,
    b1 = a0,
    a2 = a0,
    b2 = a0,
    a3 = a0,
    b3 = a0;
  const end = depth << 2;
  for (let k: usize = 0; k < end; k += 8) {
    let wa = v128.load(w);
    let wb = v128.load(w, 16);
    let s = v128.load32_splat(x0 + k);
    a0 = f32x4.add(a0, f32x4.mul(s, wa));
    b0 = f32x4.add(b0, f32x4.mul(s, wb));
    s = v128.load32_splat(x1 + k);
    a1 = f32x4.add(a1, f32x4.mul(s, wa));
    b1 = f32x4.add(b1, f32x4.mul(s, wb));
    s = v128.load32_splat(x2 + k);
    a2 = f32x4.add(a2, f32x4.mul(s, wa));
    b2 = f32x4.add(b2, f32x4.mul(s, wb));
    s = v128.load32_splat(x3 + k);
    a3 = f32x4.add(a3, f32x4.mul(s, wa));
    b3 = f32x4.add(b3, f32x4.mul(s, wb));
    wa = v128.load(w, 32);
    wb = v128.load(w, 48);
    s = v128.load32_splat(x0 + k, 4);
    a0 = f32x4.add(a0, f32x4.mul(s, wa));
    b0 = f32x4.add(b0, f32x4.mul(s, wb));
    s = v128.load32_splat(x1 + k, 4);
    a1 = f32x4.add(a1, f32x4.mul(s, wa));
    b1 = f32x4.add(b1, f32x4.mul(s, wb));
    s = v128.load32_splat(x2 + k, 4);
    a2 = f32x4.add(a2, f32x4.mul(s, wa));
    b2 = f32x4.add(b2, f32x4.mul(s, wb));
    s = v128.load32_splat(x3 + k, 4);
    a3 = f32x4.add(a3, f32x4.mul(s, wa));
    b3 = f32x4.add(b3, f32x4.mul(s, wb));
    w += 2 * PANEL_BYTES;
  }
  finish(y, a0, b0, bias, accumulate);
  finish(y + yBytes, a1, b1, bias, accumulate);
  finish(y + 2 * yBytes, a2, b2, bias, accumulate);
  finish(y + 3 * yBytes, a3, b3, bias, accumulate);
}

function oneRow(x: usize, w: usize, bias: usize, y: usize, depth: usize, accumulate: bool): void {
  let a = f32x4.splat(0),
    b = a;
  const end = x + (depth << 2);
  for (; x < end; x += 8) {
    let s = v128.load32_splat(x);
    a = f32x4.add(a, f32x4.mul(s, v128.load(w)));
    b = f32x4.add(b, f32x4.mul(s, v128.load(w, 16)));
    s = v128.load32_splat(x, 4);
    a = f32x4.add(a, f32x4.mul(s, v128.load(w, 32)));
    b = f32x4.add(b, f32x4.mul(s, v128.load(w, 48)));
    w += 2 * PANEL_BYTES;
  }
  finish(y, a, b, bias, accumulate);
}

function finish(y: usize, a: v128, b: v128, bias: usize, accumulate: bool): void {
  if (bias !== 0) {
    a = f32x4.add(a, v128.load(bias));
    b = f32x4.add(b, v128.load(bias, 16));
  }
  if (accumulate) {
    a = f32x4.add(v128.load(y), a);
    b = f32x4.add(v128.load(y, 16), b);
  }
  v128.store(y, a);
  v128.store(y, b, 16);
}

/** Rearranges `rows` output rows of a [rows, depth] matrix into panels; `firstRow` places it after matrices packed before. */
export function packPanels(source: usize, rows: usize, depth: usize, packed: usize, firstRow: usize): void {
  for (let row: usize = 0; row < rows; row++) {
    const target = firstRow + row;
    let out = packed + ((target / PANEL) * depth * PANEL + (target % PANEL)) * 4;
    const line = source + row * depth * 4;
    for (let k: usize = 0; k < depth; k++) {
      store<f32>(out, load<f32>(line + (k << 2)));
      out += PANEL_BYTES;
    }
  }
}

/** Copies one row of a packed matrix to `depth` contiguous floats: the embedding of a token when the table is packed. */
export function unpackRow(packed: usize, row: usize, depth: usize, target: usize): void {
  let from = packed + ((row / PANEL) * depth * PANEL + (row % PANEL)) * 4;
  for (let k: usize = 0; k < depth; k++) {
    store<f32>(target + (k << 2), load<f32>(from));
    from += PANEL_BYTES;
  }
}

/** f32 from bf16 (the upper half of a float), `count` values. */
export function widenBf16(source: usize, target: usize, count: usize): void {
  for (let i: usize = 0; i < count; i++) {
    store<u32>(target + (i << 2), (<u32>load<u16>(source + (i << 1))) << 16);
  }
}

/** y += x over `count` floats, a multiple of four. */
export function addInPlace(y: usize, x: usize, count: usize): void {
  const end = count << 2;
  for (let i: usize = 0; i < end; i += 16) {
    v128.store(y + i, f32x4.add(v128.load(y + i), v128.load(x + i)));
  }
}
