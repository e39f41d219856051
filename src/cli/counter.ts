// A count of things done, on stderr: a bar with time left on a terminal, a plain line now and then elsewhere.
import { SingleBar } from 'cli-progress';

export interface Counter {
  readonly start: (total: number) => void;
  readonly add: () => void;
  readonly stop: () => void;
}

/** Plain lines come at most this often. */
const PLAIN_INTERVAL_MS = 10_000;

export function createCounter(what: string, stream: NodeJS.WriteStream, clock: () => number): Counter {
  if (stream.isTTY) {
    const bar = new SingleBar({
      stream,
      format: `{bar} {value}/{total} ${what} · {eta_formatted} left`,
      barCompleteChar: '█',
      barIncompleteChar: '░',
      barsize: 24,
      hideCursor: true,
      gracefulExit: false,
    });
    return { start: (total) => bar.start(total, 0), add: () => bar.increment(), stop: () => bar.stop() };
  }
  let [done, all, started, lastLine] = [0, 0, clock(), clock()];
  return {
    start(total) {
      all = total;
      started = clock();
      lastLine = started;
    },
    add() {
      done++;
      if (clock() - lastLine < PLAIN_INTERVAL_MS) return;
      lastLine = clock();
      const secondsLeft = (((lastLine - started) / done) * (all - done)) / 1000;
      stream.write(`${done}/${all} ${what} · ${Math.ceil(secondsLeft)} s left\n`);
    },
    stop: () => undefined,
  };
}
