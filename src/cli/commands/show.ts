// `ssr show`: a run's questions as a list, or one trajectory turn by turn.
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { DataError, UsageError } from '../../errors.js';
import { readEpisodes } from '../../evaluation/episodes-file.js';
import type { Episode } from '../../evaluation/records.js';
import { renderEpisode, renderEpisodeLine } from '../../reports/trajectory.js';

interface ShowFlags {
  readonly wrong?: boolean;
  readonly json?: boolean;
}

export function addShowCommand(program: Command): void {
  program
    .command('show <run> [id]')
    .description('list the questions of a run, or show one trajectory: scores, choice, action, observation, times')
    .option('--wrong', 'list only questions that were not answered right')
    .option('--json', 'print the records as they are')
    .addHelpText('after', '\nExamples:\n  ssr show results/try --wrong\n  ssr show results/try micro-plain-0003')
    .action(async (run: string, id: string | undefined, { wrong, json }: ShowFlags) => {
      const folder = resolve(run);
      const candidates = await readCandidates(folder);
      let shown = 0;
      for await (const episode of readEpisodes(join(folder, 'episodes.jsonl'))) {
        if ((id !== undefined && episode.id !== id) || (wrong && episode.correct === true)) continue;
        shown++;
        process.stdout.write(`${json ? escapedJson(episode) : render(episode, id, candidates)}\n`);
      }
      if (shown === 0 && id !== undefined) throw new UsageError('the run has no such question', { where: run, found: id });
    });
}

function render(episode: Episode, id: string | undefined, candidates: readonly string[]): string {
  if (id === undefined) return renderEpisodeLine(episode);
  return renderEpisode(episode, { candidates, colours: process.stdout.isTTY === true });
}

/** C1 control characters too, which JSON leaves as they are and terminals obey. */
function escapedJson(value: unknown): string {
  return JSON.stringify(value).replace(/[\u007f-\u009f]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
}

/** Candidate ids in scoring order, from the run's manifest. */
async function readCandidates(folder: string): Promise<string[]> {
  const path = join(folder, 'manifest.json');
  try {
    const { library } = JSON.parse(await readFile(path, 'utf8')) as { library: { candidates: { id: string }[] } };
    return library.candidates.map(({ id }) => id);
  } catch (cause) {
    throw new DataError('not a run', { where: path, expected: 'the manifest of a results folder', cause });
  }
}
