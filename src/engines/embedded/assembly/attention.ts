// Grouped-query attention of a block of rows over two stretches of keys: a shared prefix and the rows' own branch.
// A row's keys are visited in logical order (prefix, then branch), so packing, chunking and caching leave its result unchanged.
// Queries go in pairs that see the same keys (two heads of a group, or two rows without a mask), so that a key is loaded once for both.
import { exp4 } from './math';

/**
 * Row i attends to `prefixLength` keys at `prefixKeys` and to keys 0..firstRow + i (causal) or 0..rows - 1 of its branch.
 * Strides are in floats between positions. `scores` has room for twice prefixLength + firstRow + rows + 8 floats.
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
  const stride = keyStride << 2;
  const queryBytes = queryStride << 2;
  const outBytes = outStride << 2;
  const pairRows = !causal && group === 1;
  const rowStep: usize = pairRows ? 2 : 1;
  const headStep: usize = pairRows ? 1 : 2;
  for (let first: usize = 0; first < heads; first += group) {
    const key = (first / group) * headBytes;
    for (let row: usize = 0; row < rows; row += rowStep) {
      const own = causal ? firstRow + row + 1 : rows;
      const length = prefixLength + own;
      const other = scores + ((length + 8) << 2);
      for (let h = first; h < first + group; h += headStep) {
        // An odd one out is its own partner.
        const row2 = pairRows ? min<usize>(row + 1, rows - 1) : row;
        const h2 = pairRows ? h : min<usize>(h + 1, first + group - 1);
        const query = queries + row * queryBytes + h * headBytes;
        const query2 = queries + row2 * queryBytes + h2 * headBytes;
        dots(query, query2, prefixKeys + key, stride, prefixLength, headBytes, scale, scores, other);
        const ownScores = prefixLength << 2;
        dots(query, query2, branchKeys + key, stride, own, headBytes, scale, scores + ownScores, other + ownScores);
        const share = <f32>1 / softmax(scores, length);
        const share2 = <f32>1 / softmax(other, length);
        const target = out + row * outBytes + h * headBytes;
        const target2 = out + row2 * outBytes + h2 * headBytes;
        let column: usize = 0;
        for (; column + 64 <= headBytes; column += 64) {
          const values = prefixValues + key + column;
          const branch = branchValues + key + column;
          mixWide(scores, other, values, prefixLength, branch, own, stride, target + column, target2 + column, share, share2);
        }
        for (; column < headBytes; column += 16) {
          const values = prefixValues + key + column;
          const branch = branchValues + key + column;
          mixNarrow(scores, other, values, prefixLength, branch, own, stride, target + column, target2 + column, share, share2);
        }
      }
    }
  }
}

/**
 * scores[j] = scale · query · keys[j], for two queries. Four keys at once; a short last group repeats its last key, so the order of
 * a sum never depends on its neighbours.
 */
function dots(
  query: usize,
  query2: usize,
  keys: usize,
  stride: usize,
  count: usize,
  headBytes: usize,
  scale: f32,
  scores: usize,
  scores2: usize,
): void {
  if (count === 0) return;
  const last = keys + (count - 1) * stride;
  const scale4 = f32x4.splat(scale);
  for (let j: usize = 0; j < count; j += 4) {
    const k0 = keys + j * stride;
    const k1 = min<usize>(k0 + stride, last);
    const k2 = min<usize>(k0 + 2 * stride, last);
    const k3 = min<usize>(k0 + 3 * stride, last);
    let a0 = f32x4.splat(0);
    let a1 = a0;
    let a2 = a0;
    let a3 = a0;
    let b0 = a0;
    let b1 = a0;
    let b2 = a0;
    let b3 = a0;
    for (let i: usize = 0; i < headBytes; i += 16) {
      const q = v128.load(query + i);
      const q2 = v128.load(query2 + i);
      let key = v128.load(k0 + i);
      a0 = f32x4.add(a0, f32x4.mul(q, key));
      b0 = f32x4.add(b0, f32x4.mul(q2, key));
      key = v128.load(k1 + i);
      a1 = f32x4.add(a1, f32x4.mul(q, key));
      b1 = f32x4.add(b1, f32x4.mul(q2, key));
      key = v128.load(k2 + i);
      a2 = f32x4.add(a2, f32x4.mul(q, key));
      b2 = f32x4.add(b2, f32x4.mul(q2, key));
      key = v128.load(k3 + i);
      a3 = f32x4.add(a3, f32x4.mul(q, key));
      b3 = f32x4.add(b3, f32x4.mul(q2, key));
    }
    v128.store(scores + (j << 2), f32x4.mul(sumEach(a0, a1, a2, a3), scale4));
    v128.store(scores2 + (j << 2), f32x4.mul(sumEach(b0, b1, b2, b3), scale4));
  }
}

/** Lane j of the result is the sum of the lanes of the j-th argument. */
function sumEach(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.add(v128.shuffle<f32>(a, b, 0, 4, 1, 5), v128.shuffle<f32>(a, b, 2, 6, 3, 7));
  const cd = f32x4.add(v128.shuffle<f32>(c, d, 0, 4, 1, 5), v128.shuffle<f32>(c, d, 2, 6, 3, 7));
  return f32x4.add(v128.shuffle<f32>(ab, cd, 0, 1, 4, 5), v128.shuffle<f32>(ab, cd, 2, 3, 6, 7));
}

/** Replaces scores by exp(score - max) and returns their sum; lanes past `count` become zero. */
function softmax(scores: usize, count: usize): f32 {
  const end = scores + (count << 2);
  const lowest = f32x4.splat(-Infinity);
  let peak = lowest;
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

/** out = share · Σ_j weight_j · value_j over the prefix and then the branch: sixteen columns for two queries. */
function mixWide(
  weights: usize,
  weights2: usize,
  prefixValues: usize,
  prefixLength: usize,
  branchValues: usize,
  own: usize,
  stride: usize,
  out: usize,
  out2: usize,
  share: f32,
  share2: f32,
): void {
  let a0 = f32x4.splat(0);
  let a1 = a0;
  let a2 = a0;
  let a3 = a0;
  let b0 = a0;
  let b1 = a0;
  let b2 = a0;
  let b3 = a0;
  const apart = weights2 - weights;
  let value = prefixValues;
  let end = weights + (prefixLength << 2);
  for (let part = 0; part < 2; part++) {
    for (; weights < end; weights += 4) {
      const p = v128.load32_splat(weights);
      const p2 = v128.load32_splat(weights + apart);
      let v = v128.load(value);
      a0 = f32x4.add(a0, f32x4.mul(p, v));
      b0 = f32x4.add(b0, f32x4.mul(p2, v));
      v = v128.load(value, 16);
      a1 = f32x4.add(a1, f32x4.mul(p, v));
      b1 = f32x4.add(b1, f32x4.mul(p2, v));
      v = v128.load(value, 32);
      a2 = f32x4.add(a2, f32x4.mul(p, v));
      b2 = f32x4.add(b2, f32x4.mul(p2, v));
      v = v128.load(value, 48);
      a3 = f32x4.add(a3, f32x4.mul(p, v));
      b3 = f32x4.add(b3, f32x4.mul(p2, v));
      value += stride;
    }
    value = branchValues;
    end += own << 2;
  }
  const s = f32x4.splat(share);
  v128.store(out, f32x4.mul(a0, s));
  v128.store(out, f32x4.mul(a1, s), 16);
  v128.store(out, f32x4.mul(a2, s), 32);
  v128.store(out, f32x4.mul(a3, s), 48);
  const s2 = f32x4.splat(share2);
  v128.store(out2, f32x4.mul(b0, s2));
  v128.store(out2, f32x4.mul(b1, s2), 16);
  v128.store(out2, f32x4.mul(b2, s2), 32);
  v128.store(out2, f32x4.mul(b3, s2), 48);
}

/** The same for the four columns at a time that are left of a head whose width is no multiple of sixteen. */
function mixNarrow(
  weights: usize,
  weights2: usize,
  prefixValues: usize,
  prefixLength: usize,
  branchValues: usize,
  own: usize,
  stride: usize,
  out: usize,
  out2: usize,
  share: f32,
  share2: f32,
): void {
  let a = f32x4.splat(0);
  let b = a;
  const apart = weights2 - weights;
  let value = prefixValues;
  let end = weights + (prefixLength << 2);
  for (let part = 0; part < 2; part++) {
    for (; weights < end; weights += 4) {
      const v = v128.load(value);
      a = f32x4.add(a, f32x4.mul(v128.load32_splat(weights), v));
      b = f32x4.add(b, f32x4.mul(v128.load32_splat(weights + apart), v));
      value += stride;
    }
    value = branchValues;
    end += own << 2;
  }
  v128.store(out, f32x4.mul(a, f32x4.splat(share)));
  v128.store(out2, f32x4.mul(b, f32x4.splat(share2)));
}
