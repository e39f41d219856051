// Progress of a run on stderr: a bar with time left on a terminal, a plain line now and then elsewhere.
import { SingleBar } from 'cli-progress';
import { type Episode, isErrorStatus } from '../evaluation/records.js';
import { wilsonInterval } from '../evaluation/statistics.js';

export interface Progress {
  add(episode: Episode): void;
  /** A message between the progress lines. */
  note(text: string): void;
  stop(): void;
}

/** Plain lines come at most this often. */
const PLAIN_INTERVAL_MS = 10_000;

export function createProgress(total: number, stream: NodeJS.WriteStream, clock: () => number): Progress {
  const started = clock();
  const counts = { done: 0, right: 0, scored: 0, errors: 0, turns: 0 };
  const state = (): string => {
    const seconds = Math.max((clock() - started) / 1000, 1e-3);
    const success = counts.scored === 0 ? 'success –' : `success ${successText(counts.right, counts.scored)}`;
    const errors = counts.errors === 0 ? '' : ` · ${counts.errors} errors`;
    return `${success} · ${(counts.turns / seconds).toFixed(1)} turns/s${errors}`;
  };
  const count = (episode: Episode): void => {
    counts.done++;
    counts.turns += episode.turns.length;
    if (isErrorStatus(episode.status) || episode.error) counts.errors++;
    if (episode.correct !== null) counts.scored++;
    if (episode.correct) counts.right++;
  };
  return stream.isTTY ? barProgress(total, stream, count, state) : plainProgress(total, stream, clock, counts, count, state);
}

function barProgress(
  total: number,
  stream: NodeJS.WriteStream,
  count: (episode: Episode) => void,
  state: () => string,
): Progress {
  const bar = new SingleBar({
    stream,
    format: '{bar} {value}/{total} questions · {state} · {eta_formatted} left',
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 24,
    hideCursor: true,
    gracefulExit: false,
  });
  bar.start(total, 0, { state: 'starting' });
  return {
    add(episode) {
      count(episode);
      bar.increment(1, { state: state() });
    },
    note: (text) => void stream.write(`\n${text}\n`),
    stop: () => bar.stop(),
  };
}

function plainProgress(
  total: number,
  stream: NodeJS.WriteStream,
  clock: () => number,
  counts: { done: number },
  count: (episode: Episode) => void,
  state: () => string,
): Progress {
  const started = clock();
  let lastLine = started;
  return {
    add(episode) {
      count(episode);
      if (clock() - lastLine < PLAIN_INTERVAL_MS) return;
      lastLine = clock();
      const left = ((lastLine - started) / counts.done) * (total - counts.done);
      stream.write(`${counts.done}/${total} questions · ${state()} · ${Math.ceil(left / 1000)} s left\n`);
    },
    note: (text) => void stream.write(`${text}\n`),
    stop: () => undefined,
  };
}

function successText(right: number, scored: number): string {
  const { low, high } = wilsonInterval(right, scored);
  const percent = (share: number): string => (100 * share).toFixed(1);
  return `${percent(right / scored)}% [${percent(low)}, ${percent(high)}]`;
}
