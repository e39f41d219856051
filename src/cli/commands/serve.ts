// `ssr serve`: an SGLang server with the flags that matter to selection, until Ctrl-C.
import type { Command } from 'commander';
import { serve } from '../../engines/sglang/serve.js';
import { EngineUnavailableError } from '../../errors.js';
import { engineKeys } from '../engine.js';

interface ServeFlags {
  readonly model: string;
  readonly port: string;
  readonly host: string;
  readonly python: string;
  readonly cpu?: boolean;
  readonly readyTimeout: string;
}

export function addServeCommand(program: Command): void {
  program
    .command('serve [flags...]')
    .description("start an SGLang server with the flags that matter; the server's own flags follow --")
    .requiredOption('--model <name>', 'checkpoint folder or hub name')
    .option('--port <n>', 'port', '30000')
    .option('--host <address>', 'address to listen at', '127.0.0.1')
    .option('--python <command>', 'Python interpreter that has SGLang', 'python3')
    .option('--cpu', 'run on the CPU')
    .option('--ready-timeout <seconds>', 'most time until the server computes', '900')
    .addHelpText(
      'after',
      '\nExample:\n  ssr serve --model Qwen/Qwen3-VL-4B-Instruct -- --tp 2\n\nKeys: SSR_ENGINE_API_KEY, SSR_ENGINE_ADMIN_KEY.',
    )
    .action(async (extraArguments: string[], flags: ServeFlags) => {
      const stop = new AbortController();
      const abort = (): void => stop.abort();
      process.once('SIGINT', abort).once('SIGTERM', abort);
      const server = await serve({
        model: flags.model,
        port: Number(flags.port),
        host: flags.host,
        python: flags.python,
        device: flags.cpu ? 'cpu' : 'gpu',
        extraArguments,
        readyTimeoutMs: 1000 * Number(flags.readyTimeout),
        onLine: (line) => void process.stderr.write(`${line}\n`),
        signal: stop.signal,
        ...engineKeys(process.env),
      });
      process.stdout.write(`Ready at ${server.url}. Ctrl-C stops it.\n`);
      stop.signal.addEventListener('abort', () => void server.stop(), { once: true });
      const { exitCode, lastLines } = await server.ended;
      if (!stop.signal.aborted) {
        throw new EngineUnavailableError('the server ended by itself', {
          found: `exit code ${exitCode}: ${lastLines.at(-1) ?? ''}`,
        });
      }
    });
}
