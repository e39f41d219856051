// manifest.json: what a run was made of, so that it can be repeated and compared.
import { createHash } from 'node:crypto';
import { cpus, platform, release, totalmem } from 'node:os';
import { execa } from 'execa';
import { packageRoot } from '../paths.js';
import type { Benchmark } from '../types.js';
import { judgePromptOf } from './judge.js';
import { identityOf, type Settings } from './options.js';
import { packageVersion } from './version.js';
import type { Wiring } from './wire.js';

/** `identity` is what a folder's run and a resumed one must share; the rest tells how and where it was made. */
export async function describeRun(settings: Settings, wiring: Wiring, plan: Benchmark['entries'], startedAt: Date) {
  const { agent, benchmark, library, candidates, systemPrompt, judge } = wiring;
  return {
    schema: 1,
    ssr: packageVersion(),
    commit: await gitCommit(),
    startedAt: startedAt.toISOString(),
    settings,
    identity: {
      settings: identityOf(settings),
      benchmark: { name: benchmark.name, split: benchmark.split, sha256: benchmark.sha256 },
      plan: sha256(JSON.stringify(plan)),
      engine: agent.info,
      tokenizer: agent.tokenizer.sha256,
      prompt: sha256(systemPrompt),
      library: sha256(JSON.stringify(library.entries)),
      judge: judge.name,
      ...judgePromptOf(judge),
    },
    plan: plan.map(({ id }) => id),
    prompt: { text: systemPrompt, tokens: agent.systemIds.length },
    library: { name: library.name, version: library.version, candidates },
    machine: {
      node: process.version,
      platform: `${platform()} ${release()}`,
      processor: cpus()[0]?.model ?? 'unknown',
      cores: cpus().length,
      memoryBytes: totalmem(),
    },
  };
}

/** The commit this code was built from, marked when files differ from it; null outside a git checkout. */
async function gitCommit(): Promise<string | null> {
  const git = execa({ cwd: packageRoot(), reject: false });
  const { stdout, exitCode } = await git`git rev-parse HEAD`;
  if (exitCode !== 0) return null;
  const { stdout: changes } = await git`git status --porcelain --untracked-files=no`;
  return changes === '' ? stdout : `${stdout}-dirty`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
