// Progress of preparing on stderr: one line that is written over on a terminal, a plain line now and then elsewhere.
import { totalmem } from 'node:os';
import type { DownloadProgress } from '../data/hub/options.js';
import type { PrepareReport } from './prepare-process.js';

export interface DataProgress {
  show(report: PrepareReport): void;
  stop(): void;
}

/** Plain lines come at most this often. */
const PLAIN_INTERVAL_MS = 10_000;
/** Files below this size come and go too fast to be read about. */
const LARGE_FILE_BYTES = 8 * 2 ** 20;
/** What any machine has to spare. */
const MEMORY_WORTH_A_WORD = 500 * 2 ** 20;

export function createDataProgress(name: string, stream: NodeJS.WriteStream, clock: () => number): DataProgress {
  let [rows, download] = ['', ''];
  let rowsSince: number | null = null;
  let written = false;
  let lastPlain = clock();

  function show(report: PrepareReport): void {
    if (report.kind === 'wait') note(`${name}: waiting for another process, which holds ${report.for}`);
    else if (report.kind === 'download') showDownload(report.progress);
    else if (report.kind === 'event') {
      // The first rows come only when a whole row group is read.
      rowsSince ??= clock();
      if (report.event.kind === 'rows') showRows(report.event, rowsSince);
      else if (report.event.estimatedBytes > MEMORY_WORTH_A_WORD) note(memoryNote(name, report.event.estimatedBytes));
    }
  }

  function showDownload(progress: DownloadProgress): void {
    const large = (progress.totalBytes ?? 0) >= LARGE_FILE_BYTES;
    // Beside rows, only a large file is worth a word; it is over when it is whole.
    download = rows === '' || (large && progress.receivedBytes !== progress.totalBytes) ? downloadText(progress) : '';
    refresh();
  }

  function showRows({ done, total, questions }: { done: number; total: number; questions: number }, since: number): void {
    const seconds = (clock() - since) / 1000;
    const rate = seconds > 0 ? done / seconds : 0;
    const left = rate > 0 ? ` · ${rate.toFixed(0)} rows/s · ${durationText((total - done) / rate)} left` : '';
    rows = `${done}/${total} rows · ${questions} questions${done < total ? left : ''}`;
    download = '';
    refresh();
  }

  function refresh(): void {
    const line = `${name}: ${[rows, download].filter((part) => part !== '').join(' · ')}`;
    if (stream.isTTY) {
      stream.write(`\r\u001b[2K${line.slice(0, (stream.columns || 80) - 1)}`);
      written = true;
    } else if (clock() - lastPlain >= PLAIN_INTERVAL_MS) {
      lastPlain = clock();
      stream.write(`${line}\n`);
    }
  }

  function note(text: string): void {
    stream.write(`${written ? '\n' : ''}${text}\n`);
    written = false;
  }

  return {
    show,
    stop() {
      if (written) stream.write('\r\u001b[2K');
      written = false;
    },
  };
}

export function downloadText({ file, receivedBytes, totalBytes, bytesPerSecond, secondsLeft }: DownloadProgress): string {
  const of = totalBytes === null ? '' : ` of ${sizeText(totalBytes)}`;
  const left = secondsLeft === null ? '' : ` · ${durationText(secondsLeft)} left`;
  return `${decodeURIComponent(file.split('/').at(-1) ?? file)} ${sizeText(receivedBytes)}${of} · ${sizeText(bytesPerSecond)}/s${left}`;
}

/** Decimal units, as downloads are advertised. */
export function sizeText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB'];
  let [value, unit] = [bytes, 0];
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${unit === 0 ? value.toFixed(0) : value.toFixed(1)} ${units[unit]}`;
}

export function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function memoryNote(name: string, bytes: number): string {
  const warning = bytes > totalmem() ? `; this machine has ${sizeText(totalmem())}, so it will probably not fit` : '';
  return `${name}: reading its table takes about ${sizeText(bytes)} of memory${warning}`;
}
