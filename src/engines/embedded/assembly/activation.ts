// Activations, and the normaliser of a softmax over the vocabulary.
import { erf, exp4 } from './math';

/** y = silu(gate) · up, where a row of `gateUp` holds the gate's `width` floats and then up's. */
export function swiglu(gateUp: usize, y: usize, rows: usize, width: usize): void {
  const bytes = width << 2;
  const one = f32x4.splat(1);
  for (let row: usize = 0; row < rows; row++) {
    for (let i: usize = 0; i < bytes; i += 16) {
      const gate = v128.load(gateUp + i);
      const silu = f32x4.div(gate, f32x4.add(one, exp4(f32x4.neg(gate))));
      v128.store(y + i, f32x4.mul(silu, v128.load(gateUp + bytes + i)));
    }
    gateUp += bytes << 1;
    y += bytes;
  }
}

/** In place: x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), written as x · (1 - 1 / (e^(2u) + 1)). */
export function geluTanh(x: usize, count: usize): void {
  const one = f32x4.splat(1);
  const cubic = f32x4.splat(0.044715);
  const twoRootTwoOverPi = f32x4.splat(1.5957691216057308);
  const end = x + (count << 2);
  for (; x < end; x += 16) {
    const v = v128.load(x);
    const inner = f32x4.add(v, f32x4.mul(cubic, f32x4.mul(v, f32x4.mul(v, v))));
    const grown = exp4(f32x4.mul(twoRootTwoOverPi, inner));
    v128.store(x, f32x4.mul(v, f32x4.sub(one, f32x4.div(one, f32x4.add(grown, one)))));
  }
}

/** In place: x/2 · (1 + erf(x/√2)), the exact form that the patch mergers use. */
export function geluErf(x: usize, count: usize): void {
  const end = x + (count << 2);
  for (; x < end; x += 4) {
    const v = <f64>load<f32>(x);
    store<f32>(x, <f32>(0.5 * v * (1 + erf(v * Math.SQRT1_2))));
  }
}

/** The largest of `count` floats, at least one. */
export function maximum(x: usize, count: usize): f32 {
  let best = load<f32>(x);
  let i: usize = 0;
  if (count >= 4) {
    let four = v128.load(x);
    for (i = 4; i + 4 <= count; i += 4) four = f32x4.max(four, v128.load(x + (i << 2)));
    best = max<f32>(
      max<f32>(f32x4.extract_lane(four, 0), f32x4.extract_lane(four, 1)),
      max<f32>(f32x4.extract_lane(four, 2), f32x4.extract_lane(four, 3)),
    );
  }
  for (; i < count; i++) best = max<f32>(best, load<f32>(x + (i << 2)));
  return best;
}

/** Σ exp((x - shift) · scale) over `count` floats, summed in double precision. */
export function sumExp(x: usize, count: usize, shift: f32, scale: f32): f64 {
  const shift4 = f32x4.splat(shift);
  const scale4 = f32x4.splat(scale);
  let low = f64x2.splat(0);
  let high = f64x2.splat(0);
  let i: usize = 0;
  for (; i + 4 <= count; i += 4) {
    const e = exp4(f32x4.mul(f32x4.sub(v128.load(x + (i << 2)), shift4), scale4));
    low = f64x2.add(low, f64x2.promote_low_f32x4(e));
    high = f64x2.add(high, f64x2.promote_low_f32x4(v128.shuffle<f32>(e, e, 2, 3, 0, 1)));
  }
  const four = f64x2.add(low, high);
  let sum = f64x2.extract_lane(four, 0) + f64x2.extract_lane(four, 1);
  for (; i < count; i++) {
    const e = exp4(f32x4.mul(f32x4.sub(f32x4.splat(load<f32>(x + (i << 2))), shift4), scale4));
    sum += <f64>f32x4.extract_lane(e, 0);
  }
  return sum;
}
