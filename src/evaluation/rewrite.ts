// Records of a finished run with some of their fields changed, the file replaced in one step.
import { open, rename, rm } from 'node:fs/promises';
import { readEpisodes } from './episodes-file.js';
import type { Episode } from './records.js';

/** One record in memory at a time; whatever fails, the file stays as it was. Throws DataError for a line that is no episode. */
export async function rewriteEpisodes(path: string, change: (episode: Episode) => Episode): Promise<void> {
  const file = await open(`${path}.part`, 'w');
  try {
    for await (const episode of readEpisodes(path)) await file.appendFile(`${JSON.stringify(change(episode))}\n`);
    await file.sync();
    await file.close();
    await rename(`${path}.part`, path);
  } catch (error) {
    await file.close();
    await rm(`${path}.part`, { force: true });
    throw error;
  }
}
