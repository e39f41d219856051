// The trainer as a long-lived process: one JSON line in per minibatch, one JSON line out per step (train_rl.py says which).
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { z } from 'zod';
import { parseJson } from '../data/json.js';
import { SsrError } from '../errors.js';

const position = { step: z.number().int(), weights: z.string() };
const replySchema = z.union([
  z.object({ ready: z.literal(true), ...position }),
  z.object({ diverged: z.string(), step: z.number().int() }),
  z.object({ ...position, metrics: z.record(z.string(), z.number()), seconds: z.record(z.string(), z.number()) }),
]);
type Reply = z.infer<typeof replySchema>;

/** Finished steps, and the folder of the weights after them. */
export interface Position {
  readonly step: number;
  readonly weights: string;
}

export type StepReply =
  | ({ readonly kind: 'stepped'; readonly metrics: Record<string, number>; readonly seconds: Record<string, number> } & Position)
  /** The weights of the step before are whole; the trainer has ended. */
  | { readonly kind: 'diverged'; readonly reason: string };

export interface TrainerCommand {
  readonly command: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly onLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** What is used of the child process. */
interface Child {
  readonly input: NodeJS.WritableStream;
  readonly replies: AsyncIterator<string>;
  readonly ended: Promise<{ readonly exitCode?: number | undefined; readonly signal?: string | undefined }>;
  /** Its last lines of stderr. */
  readonly tail: readonly string[];
}

/** Lines of stderr that an error quotes. */
const QUOTED_LINES = 12;

export class TrainerProcess {
  readonly start: Position;
  readonly #child: Child;

  private constructor(child: Child, start: Position) {
    this.#child = child;
    this.start = start;
  }

  /** Resolves once the policy is loaded, from the newest state of the run where there is one. Throws SsrError quoting the trainer. */
  static async launch({ command, arguments: words, environment, onLine, signal }: TrainerCommand): Promise<TrainerProcess> {
    const trainer = execa(command, [...words], {
      env: { ...environment },
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'pipe',
      buffer: false,
      reject: false,
      ...(signal && { cancelSignal: signal }),
    });
    const tail: string[] = [];
    createInterface({ input: trainer.stderr }).on('line', (line) => {
      onLine?.(line);
      tail.push(line);
      if (tail.length > QUOTED_LINES) tail.shift();
    });
    // A trainer that dies is told by its missing reply.
    trainer.stdin.on('error', () => undefined);
    const replies = createInterface({ input: trainer.stdout })[Symbol.asyncIterator]();
    const ended = trainer.then(({ exitCode, signal: killedBy }) => ({ exitCode, signal: killedBy }));
    const child = { input: trainer.stdin, replies, ended, tail };
    try {
      const ready = await nextReply(child);
      if ('ready' in ready) return new TrainerProcess(child, ready);
      throw new SsrError('the trainer spoke out of turn', { expected: 'ready', found: JSON.stringify(ready) });
    } catch (error) {
      trainer.kill(); // nobody will speak to it
      throw error;
    }
  }

  async step(folder: string): Promise<StepReply> {
    this.#child.input.write(`${JSON.stringify({ minibatch: folder })}\n`);
    const reply = await nextReply(this.#child);
    if ('diverged' in reply) return { kind: 'diverged', reason: reply.diverged };
    if ('metrics' in reply) return { kind: 'stepped', ...reply };
    throw new SsrError('the trainer spoke out of turn', { expected: 'a step', found: JSON.stringify(reply) });
  }

  /** Lets it end by itself: it has nothing more to read. */
  async close(): Promise<void> {
    this.#child.input.end();
    await this.#child.ended;
  }
}

async function nextReply({ replies, ended, tail }: Child): Promise<Reply> {
  const line = await replies.next();
  if (line.done !== true) return parseJson(line.value, replySchema, 'the trainer');
  const { exitCode, signal } = await ended;
  throw new SsrError('the trainer ended', {
    expected: 'an answer to each minibatch',
    found: `${signal ?? `exit code ${exitCode ?? '?'}`}: ${tail.join(' | ')}`,
    remedy: 'Finished steps are kept; the same command continues.',
  });
}
