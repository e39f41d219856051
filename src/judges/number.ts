// Numbers as answers: the same value, however it is written.
import { normaliseText } from './text.js';

/** Rounding of decimal notation, nothing more: a data set that allows more gives a range. */
const relativeTolerance = 1e-9;

const plainNumber = /^[+-]?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:,\d{3})+)?(?:\.\d+)?(?:e[+-]?\d+)?$/;

/** Null for anything but a plain number; units, and zeros in front as in a code, make it a text. */
export function parseNumber(text: string): number | null {
  const normalised = normaliseText(text);
  if (!/\d/.test(normalised) || !plainNumber.test(normalised)) return null;
  const value = Number(normalised.replaceAll(',', ''));
  return Number.isFinite(value) ? value : null;
}

export function sameNumber(answer: string, gold: string): boolean {
  const [a, b] = [parseNumber(answer), parseNumber(gold)];
  if (a === null || b === null) return false;
  return Math.abs(a - b) <= relativeTolerance * Math.max(Math.abs(a), Math.abs(b));
}
