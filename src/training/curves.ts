// Two curves as one SVG: success on the held-out questions with its intervals, and the mean reward of the rollouts.
import { wilsonInterval } from '../evaluation/statistics.js';

interface Frame {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly lastStep: number;
  readonly highest: number;
}

const PANEL = { width: 520, height: 160 };

export function curvesSvg(
  evaluations: readonly { readonly step: number; readonly successes: number; readonly n: number }[],
  rewards: readonly { readonly step: number; readonly reward: number }[],
): string {
  const lastStep = Math.max(1, ...evaluations.map(({ step }) => step), ...rewards.map(({ step }) => step));
  const success = { left: 60, top: 30, ...PANEL, lastStep, highest: 1 };
  const highest = Math.max(1, ...rewards.map(({ reward }) => reward));
  const reward = { left: 60, top: 240, ...PANEL, lastStep, highest };
  const bars = evaluations.map(({ step, successes, n }) => {
    const { low, high } = wilsonInterval(successes, n);
    const [x, y1, y2] = [xOf(step, success), yOf(low, success), yOf(high, success)];
    return `<line x1="${x}" y1="${y1}" x2="${x}" y2="${y2}" stroke="#888"/>`;
  });
  const rates = evaluations.map(({ step, successes, n }) => ({ step, value: successes / n }));
  return [
    '<svg xmlns="http://www.w3.org/2000/svg" width="620" height="450" font-family="sans-serif" font-size="12">',
    '<rect width="100%" height="100%" fill="white"/>',
    ...axes('success on held-out questions, 95% intervals', success),
    ...bars,
    line(rates, success),
    ...axes('mean reward of the rollouts', reward),
    line(
      rewards.map(({ step, reward: value }) => ({ step, value })),
      reward,
    ),
    '</svg>\n',
  ].join('\n');
}

function axes(title: string, frame: Frame): string[] {
  const { left, top, width, height, lastStep, highest } = frame;
  return [
    `<text x="${left}" y="${top - 8}" font-weight="bold">${title}</text>`,
    `<rect x="${left}" y="${top}" width="${width}" height="${height}" fill="none" stroke="#bbb"/>`,
    `<text x="${left - 6}" y="${top + 10}" text-anchor="end">${highest.toFixed(2)}</text>`,
    `<text x="${left - 6}" y="${top + height}" text-anchor="end">0</text>`,
    `<text x="${left + width}" y="${top + height + 16}" text-anchor="end">step ${lastStep}</text>`,
  ];
}

function line(points: readonly { step: number; value: number }[], frame: Frame): string {
  const path = points.map(({ step, value }) => `${xOf(step, frame)},${yOf(value, frame)}`);
  return `<polyline points="${path.join(' ')}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>`;
}

function xOf(step: number, { left, width, lastStep }: Frame): string {
  return (left + (width * step) / lastStep).toFixed(1);
}

function yOf(value: number, { top, height, highest }: Frame): string {
  return (top + height * (1 - value / highest)).toFixed(1);
}
