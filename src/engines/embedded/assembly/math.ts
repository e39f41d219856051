// Elementary functions on four floats at once, accurate to about two units in the last place.

const LOG2_E: f32 = <f32>Math.LOG2E;
// ln 2 in two parts, so that x - n·ln 2 keeps all its bits.
const LN2_HIGH: f32 = 0.693359375;
const LN2_LOW: f32 = -2.1219444e-4;
const LOWEST: f32 = -87.3;
const HIGHEST: f32 = 88.3;

/** e^x by range reduction to |r| <= ln 2 / 2 and a Taylor polynomial of degree 7; arguments are clamped to where floats exist. */
export function exp4(x: v128): v128 {
  x = f32x4.max(f32x4.min(x, f32x4.splat(HIGHEST)), f32x4.splat(LOWEST));
  const n = f32x4.nearest(f32x4.mul(x, f32x4.splat(LOG2_E)));
  let r = f32x4.sub(x, f32x4.mul(n, f32x4.splat(LN2_HIGH)));
  r = f32x4.sub(r, f32x4.mul(n, f32x4.splat(LN2_LOW)));
  let p = f32x4.splat(1.0 / 5040.0);
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.0 / 720.0));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.0 / 120.0));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.0 / 24.0));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.0 / 6.0));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(0.5));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1));
  const exponent = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
  return f32x4.mul(p, exponent);
}

/** The sum of four lanes in a fixed order. */
export function sumLanes(x: v128): f32 {
  return f32x4.extract_lane(x, 0) + f32x4.extract_lane(x, 2) + (f32x4.extract_lane(x, 1) + f32x4.extract_lane(x, 3));
}

/** erf(x) by the all-positive series 2/√π · e^(-x²) · Σ 2ⁿ x^(2n+1) / (2n+1)!!, in double precision. */
export function erf(x: f64): f64 {
  const magnitude = Math.abs(x);
  if (magnitude > 4.5) return x > 0 ? 1 : -1;
  const square = x * x;
  let term = x;
  let sum = x;
  for (let n: f64 = 3; Math.abs(term) > 1e-12 * Math.abs(sum); n += 2) {
    term *= (2 * square) / n;
    sum += term;
  }
  return 1.1283791670955126 * Math.exp(-square) * sum;
}
