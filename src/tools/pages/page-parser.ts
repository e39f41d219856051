// Reading untrusted HTML off the main thread: a page built to be slow (a few thousand nested elements keep readability busy for a minute) or
// to be huge costs its own time limit, not the run's event loop.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import pLimit from 'p-limit';
import { ToolError } from '../../errors.js';
import type { MainText } from './main-text.js';
import type { ReadPage } from './worker.js';

export interface PageParser {
  /** Null where the page has no readable text; throws ToolError when reading takes too long, too much memory, or fails. */
  parse(html: string): Promise<MainText | null>;
  close(): Promise<void>;
}

const limits = { timeMs: 5_000, heapMegabytes: 512 };

/** One thread, started by the first page and again after one that had to be given up; pages wait for each other. */
export function createPageParser(timeLimitMs: number = limits.timeMs): PageParser {
  const queue = pLimit(1);
  let worker: Worker | undefined;
  const parse = async (html: string): Promise<MainText | null> => {
    worker ??= await startWorker();
    const current = worker;
    const timer = AbortSignal.timeout(timeLimitMs);
    // A run waits for a page that is being read, but not for an idle thread.
    current.ref();
    try {
      current.postMessage(html);
      const [reply] = (await once(current, 'message', { signal: timer })) as [ReadPage];
      current.unref();
      if ('error' in reply) throw new ToolError('the page cannot be read', { found: reply.error });
      return reply.page;
    } catch (error) {
      if (error instanceof ToolError) throw error;
      worker = undefined;
      await current.terminate();
      const found = timer.aborted ? undefined : error instanceof Error ? error.message : String(error);
      throw new ToolError('the page cannot be read', {
        expected: `${timeLimitMs} ms and ${limits.heapMegabytes} MB to do`,
        ...(found !== undefined && { found }),
      });
    }
  };
  return {
    parse: (html) => queue(parse, html),
    async close() {
      await worker?.terminate();
      worker = undefined;
    },
  };
}

/** Resolves once the thread runs, so that its start does not count against a page. */
async function startWorker(): Promise<Worker> {
  const worker = createWorker({ resourceLimits: { maxOldGenerationSizeMb: limits.heapMegabytes } });
  await once(worker, 'message');
  worker.unref();
  return worker;
}

/** Run from sources (tsx, vitest), the thread needs a loader for TypeScript first; compiled, it is a plain module. */
function createWorker(options: { resourceLimits: { maxOldGenerationSizeMb: number } }): Worker {
  if (!import.meta.url.endsWith('.ts')) return new Worker(new URL('./worker.js', import.meta.url), options);
  const module = JSON.stringify(new URL('./worker.ts', import.meta.url).href);
  const bootstrap = `import('tsx/esm/api').then(({ register }) => { register(); return import(${module}); });`;
  return new Worker(bootstrap, { ...options, eval: true });
}
