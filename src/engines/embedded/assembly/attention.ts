// Grouped-query attention of a block of rows over two stretches of keys: a shared prefix and the rows' own branch.
// A row's keys are visited in logical order (prefix, then branch), so packing, chunking and caching leave its result unchanged.
import { exp4 } from './math';

/**
 * Row i attends to `prefixLength` keys at `prefixKeys` and to keys 0..i (causal) or 0..rows-1 of its branch.
 * Strides are in floats between positions. `scores` has room for prefixLength + rows + 4 floats.
 */
export function attention(
  queries: usize,
  queryStride: usize,
  out: usize,
  outStride: usize,
  rows: usize,
  heads: usize,
  group: usize,
  headWidth: usize,
  scale: f32,
  prefixKeys: usize,
  prefixValues: usize,
  prefixLength: usize,
  branchKeys: usize,
  branchValues: usize,
  keyStride: usize,
  causal: bool,
  firstRow: usize,
  scores: usize,
): void {
  const headBytes = headWidth << 2;
  const strideBytes = keyStride << 2;
  for (let h: usize = 0; h < heads; h++) {
    const shared = (h / group) * headBytes;
    for (let row: usize = 0; row < rows; row++) {
      const own = causal ? firstRow + row + 1 : rows;
      const query = queries + row * (queryStride << 2) + h * headBytes;
      dots(query, prefixKeys + shared, strideBytes, prefixLength, headBytes, scale, scores);
      dots(query, branchKeys + shared, strideBytes, own, headBytes, scale, scores + (prefixLength << 2));
      const total = softmax(scores, prefixLength + own);
      mix(
        scores,
        prefixValues + shared,
        prefixLength,
        branchValues + shared,
        own,
        strideBytes,
        out + row * (outStride << 2) + h * headBytes,
        headBytes,
        <f32>1 / total,
      );
    }
  }
}

/** scores[j] = scale · query · keys[j]. Four keys at once; a short last group repeats its last key, so the sum's order never changes. */
function dots(query: usize, keys: usize, stride: usize, count: usize, headBytes: usize, scale: f32, scores: usize): void {
  if (count === 0) return;
  const last = keys + (count - 1) * stride;
  const scale4 = f32x4.splat(scale);
  for (let j: usize = 0; j < count; j += 4) {
    const k0 = keys + j * stride;
    const k1 = min<usize>(k0 + stride, last);
    const k2 = min<usize>(k0 + 2 * stride, last);
    const k3 = min<usize>(k0 + 3 * stride, last);
    let a = f32x4.splat(0),
      b = a,
      c = a,
      d = a;
    for (let i: usize = 0; i < headBytes; i += 16) {
      const q = v128.load(query + i);
      a = f32x4.add(a, f32x4.mul(q, v128.load(k0 + i)));
      b = f32x4.add(b, f32x4.mul(q, v128.load(k1 + i)));
      c = f32x4.add(c, f32x4.mul(q, v128.load(k2 + i)));
      d = f32x4.add(d, f32x4.mul(q, v128.load(k3 + i)));
    }
    // Transposing sum: lane j of the result is the sum of the lanes of accumulator j.
    const ab = f32x4.add(v128.shuffle<f32>(a, b, 0, 4, 1, 5), v128.shuffle<f32>(a, b, 2, 6, 3, 7));
    const cd = f32x4.add(v128.shuffle<f32>(c, d, 0, 4, 1, 5), v128.shuffle<f32>(c, d, 2, 6, 3, 7));
    const sums = f32x4.add(v128.shuffle<f32>(ab, cd, 0, 1, 4, 5), v128.shuffle<f32>(ab, cd, 2, 3, 6, 7));
    v128.store(scores + (j << 2), f32x4.mul(sums, scale4));
  }
}

/** Replaces scores by exp(score - max) and returns their sum; lanes past `count` are set to zero first. */
function softmax(scores: usize, count: usize): f32 {
  const end = scores + (count << 2);
  let peak = f32x4.splat(-Infinity);
  const lowest = f32x4.splat(-Infinity);
  v128.store(end, lowest);
  for (let at = scores; at < end; at += 16) peak = f32x4.max(peak, v128.load(at));
  const top = max<f32>(
    max<f32>(f32x4.extract_lane(peak, 0), f32x4.extract_lane(peak, 1)),
    max<f32>(f32x4.extract_lane(peak, 2), f32x4.extract_lane(peak, 3)),
  );
  const shift = f32x4.splat(top);
  let sum = f32x4.splat(0);
  for (let at = scores; at < end; at += 16) {
    const x = v128.load(at);
    // exp4 clamps, so padding of minus infinity must be masked to an exact zero.
    const e = v128.and(exp4(f32x4.sub(x, shift)), f32x4.gt(x, lowest));
    v128.store(at, e);
    sum = f32x4.add(sum, e);
  }
  return f32x4.extract_lane(sum, 0) + f32x4.extract_lane(sum, 2) + (f32x4.extract_lane(sum, 1) + f32x4.extract_lane(sum, 3));
}

/** out = scale · Σ_j weight_j · value_j over the prefix and then the branch, sixteen or four columns at a time. */
function mix(
  weights: usize,
  prefixValues: usize,
  prefixLength: usize,
  branchValues: usize,
  own: usize,
  stride: usize,
  out: usize,
  headBytes: usize,
  scale: f32,
): void {
  const scale4 = f32x4.splat(scale);
  const branchWeights = weights + (prefixLength << 2);
  let column: usize = 0;
  for (; column + 64 <= headBytes; column += 64) {
    let a = f32x4.splat(0),
      b = a,
      c = a,
      d = a;
    let value = prefixValues + column;
    for (let w = weights; w < branchWeights; w += 4) {
      const p = v128.load32_splat(w);
      a = f32x4.add(a, f32x4.mul(p, v128.load(value)));
      b = f32x4.add(b, f32x4.mul(p, v128.load(value, 16)));
      c = f32x4.add(c, f32x4.mul(p, v128.load(value, 32)));
      d = f32x4.add(d, f32x4.mul(p, v128.load(value, 48)));
      value += stride;
    }
    value = branchValues + column;
    const end = branchWeights + (own << 2);
    for (let w = branchWeights; w < end; w += 4) {
      const p = v128.load32_splat(w);
      a = f32x4.add(a, f32x4.mul(p, v128.load(value)));
      b = f32x4.add(b, f32x4.mul(p, v128.load(value, 16)));
      c = f32x4.add(c, f32x4.mul(p, v128.load(value, 32)));
      d = f32x4.add(d, f32x4.mul(p, v128.load(value, 48)));
      value += stride;
    }
    v128.store(out + column, f32x4.mul(a, scale4));
    v128.store(out + column, f32x4.mul(b, scale4), 16);
    v128.store(out + column, f32x4.mul(c, scale4), 32);
    v128.store(out + column, f32x4.mul(d, scale4), 48);
  }
  for (; column < headBytes; column += 16) {
    let a = f32x4.splat(0);
    let value = prefixValues + column;
    for (let w = weights; w < branchWeights; w += 4) {
      a = f32x4.add(a, f32x4.mul(v128.load32_splat(w), v128.load(value)));
      value += stride;
    }
    value = branchValues + column;
    const end = branchWeights + (own << 2);
    for (let w = branchWeights; w < end; w += 4) {
      a = f32x4.add(a, f32x4.mul(v128.load32_splat(w), v128.load(value)));
      value += stride;
    }
    v128.store(out + column, f32x4.mul(a, scale4));
  }
}
