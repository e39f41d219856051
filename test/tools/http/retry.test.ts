import { expect, it } from 'vitest';
import { defaultRetryPolicy, isPassing, retryDelayMs } from '../../../src/tools/http/retry.js';

const now = Date.parse('2026-01-01T00:00:00Z');
const delay = (retry: number, retryAfter?: string, random = 0.5) =>
  retryDelayMs(retry, retryAfter, defaultRetryPolicy, now, () => random);

it('reads Retry-After in seconds and as a date, and gives up on longer waits', () => {
  expect(delay(0, '3')).toBe(3_000);
  expect(delay(0, 'Thu, 01 Jan 2026 00:00:20 GMT')).toBe(20_000);
  expect(delay(0, 'Wed, 31 Dec 2025 00:00:00 GMT')).toBe(0);
  expect(delay(0, '61')).toBeNull();
  expect(delay(0, 'soon')).toBe(375);
});

it('jitters between half and the whole of a delay that doubles up to its cap', () => {
  expect([delay(0, undefined, 0), delay(0, undefined, 1)]).toEqual([250, 500]);
  expect([delay(3, undefined, 0), delay(3, undefined, 1)]).toEqual([2_000, 4_000]);
  expect([delay(50, undefined, 0), delay(50, undefined, 1)]).toEqual([4_000, 8_000]);
});

it('retries what passes, not what is wrong', () => {
  expect([429, 500, 502, 503, 504, 408].every(isPassing)).toBe(true);
  expect([200, 301, 400, 401, 403, 404, 422].some(isPassing)).toBe(false);
});
