import { describe, expect, it } from 'vitest';
import { createDataProgress, downloadText, durationText, sizeText } from '../../src/cli/data-progress.js';

/** A stream that keeps what is written, and a clock that a test moves. */
function stage(isTTY: boolean) {
  const written: string[] = [];
  const time = { ms: 0 };
  const stream = { isTTY, columns: 60, write: (text: string) => written.push(text) } as unknown as NodeJS.WriteStream;
  return { written, time, progress: createDataProgress('livevqa', stream, () => time.ms) };
}

const rows = (done: number) => ({ kind: 'event', event: { kind: 'rows', done, total: 1000, questions: done } }) as const;
const download = (receivedBytes: number, totalBytes: number) =>
  ({
    kind: 'download',
    progress: { file: 'https://hub/a%20b.parquet', receivedBytes, totalBytes, bytesPerSecond: 2e6, secondsLeft: 75 },
  }) as const;

describe('progress of preparing', () => {
  it('says rate and time left of a download', () => {
    expect(downloadText(download(63.1e6, 277_391_783).progress)).toBe(
      'a b.parquet 63.1 MB of 277.4 MB · 2.0 MB/s · 1 min 15 s left',
    );
    expect(downloadText({ ...download(500, 0).progress, totalBytes: null, secondsLeft: null })).toBe(
      'a b.parquet 500 B · 2.0 MB/s',
    );
    expect([durationText(0.2), durationText(59.5), durationText(7300)]).toEqual(['1 s', '1 min 0 s', '2 h 1 min']);
    expect(sizeText(5e12)).toBe('5000.0 GB');
  });

  it('writes a plain line every ten seconds where there is no terminal', () => {
    const { written, time, progress } = stage(false);
    progress.show(rows(0));
    for (time.ms = 1000; time.ms <= 25_000; time.ms += 1000) progress.show(rows(time.ms / 250));
    progress.stop();
    expect(written).toEqual([
      'livevqa: 40/1000 rows · 40 questions · 4 rows/s · 4 min 0 s left\n',
      'livevqa: 80/1000 rows · 80 questions · 4 rows/s · 3 min 50 s left\n',
    ]);
  });

  it('writes over its line on a terminal, no longer than the terminal is wide, and clears it', () => {
    const { written, time, progress } = stage(true);
    progress.show(download(1e6, 20e6));
    progress.show(rows(32));
    time.ms = 1000;
    progress.show(download(1e3, 2e3));
    progress.show(download(1e6, 20e6));
    progress.stop();
    expect(written[0]).toBe('\r\u001b[2Klivevqa: a b.parquet 1.0 MB of 20.0 MB · 2.0 MB/s · 1 min 1');
    expect(written[1]).toBe('\r\u001b[2Klivevqa: 32/1000 rows · 32 questions');
    expect(written[2]).not.toContain('kB');
    expect(written[3]).toContain(' · a b.parquet');
    for (const text of written) expect(text.replace('\r\u001b[2K', '').length).toBeLessThan(60);
    expect(written.at(-1)).toBe('\r\u001b[2K');
  });

  it('tells what holds it up and what memory it takes', () => {
    const { written, progress } = stage(false);
    progress.show({ kind: 'wait', for: 'data/livevqa' });
    progress.show({ kind: 'event', event: { kind: 'memory', estimatedBytes: 1e6 } });
    progress.show({ kind: 'event', event: { kind: 'memory', estimatedBytes: 5e15 } });
    expect(written[0]).toBe('livevqa: waiting for another process, which holds data/livevqa\n');
    expect(written[1]).toMatch(/^livevqa: reading its table takes about 5000000\.0 GB of memory; this machine has .* GB/);
    expect(written.length).toBe(2);
  });
});
