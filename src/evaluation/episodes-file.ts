// Reading episodes.jsonl back, one line in memory at a time: what a crash may have torn is told apart from what is whole.
import { createReadStream } from 'node:fs';
import { DataError } from '../errors.js';
import { type Episode, episodeSchema } from './records.js';

export interface EpisodeLine {
  /** The line as it stands in the file, newline included where it has one. */
  readonly bytes: Buffer;
  /** Null for a line that is torn or not an episode. */
  readonly episode: Episode | null;
}

const NEWLINE = 0x0a;

/** All lines in file order. A last line without newline is torn: its episode is null. Throws DataError when unreadable. */
export async function* readEpisodeLines(path: string): AsyncGenerator<EpisodeLine> {
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let start = 0;
      for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE, start)) {
        const bytes = rest.subarray(start, end + 1);
        yield { bytes, episode: parseEpisode(bytes) };
        start = end + 1;
      }
      rest = rest.subarray(start);
    }
  } catch (cause) {
    throw new DataError('cannot be read', { where: path, found: cause instanceof Error ? cause.message : String(cause), cause });
  }
  if (rest.length > 0) yield { bytes: rest, episode: null };
}

/** The whole episodes of a finished run; throws DataError at the first line that is none. */
export async function* readEpisodes(path: string): AsyncGenerator<Episode> {
  let line = 0;
  for await (const { episode } of readEpisodeLines(path)) {
    line++;
    if (episode === null) {
      throw new DataError('not a whole episode', { where: `${path}:${line}`, remedy: 'Resume the run to mend it.' });
    }
    yield episode;
  }
}

function parseEpisode(bytes: Buffer): Episode | null {
  try {
    const parsed = episodeSchema.safeParse(JSON.parse(bytes.toString('utf8')));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
