import { expect, it } from 'vitest';
import { loadMicro, microToolbox } from '../../benchmarks/micro/index.js';
import type { Policy } from '../../src/engines/scripted.js';
import { runEpisode } from '../../src/evaluation/episode.js';
import { exactJudge } from '../../src/judges/exact.js';
import type { RecordingOptions } from '../../src/tools/options.js';
import type { ImageSearch, TextSearch } from '../../src/types.js';
import { testAgent } from '../support/agent.js';
import { tools } from './support/create.js';
import { temporaryFolder } from './support/pictures.js';

/** Every tool once, then an answer; the query differs by question. */
const acting =
  (word: string): Policy =>
  (trajectory, turn) =>
    [
      { candidate: 3, action: '<tool_call>{"name": "image_search_tool", "arguments": {}}</tool_call>' },
      {
        candidate: 4,
        action: `<tool_call>{"name": "text_search_tool", "arguments": {"query": "city ${word} ${trajectory}"}}</tool_call>`,
      },
      {
        candidate: 2,
        action:
          '<tool_call>{"name": "image_zoom_in_tool", "arguments": {"bbox_2d": [100, 100, 500, 600], "label": "a", "img_idx": 0}}</tool_call>',
      },
      { candidate: 5, action: '<answer> Oslo</answer>' },
    ][turn];

const absent = (name: string): TextSearch & ImageSearch => ({
  name,
  search: () => Promise.reject(new Error('a replay asks nobody')),
});

it('a recorded micro run is replayed without its searches, token for token; a changed question stops a strict one', async () => {
  const store = await temporaryFolder();
  const benchmark = await loadMicro('dev');
  const counts = { textResults: 2, imageResults: 2 };
  const live = await microToolbox('dev', counts);
  const version = benchmark.sha256;
  const run = async (
    recording: RecordingOptions,
    searches: { textSearch: TextSearch; imageSearch: ImageSearch },
    word = 'street',
  ) => {
    const { toolbox } = await tools({
      textSearch: { provider: 'given', search: searches.textSearch, version, results: counts.textResults },
      imageSearch: { provider: 'given', search: searches.imageSearch, version, results: counts.imageResults },
      crop: {},
      recording,
    });
    const agent = await testAgent({ script: acting(word), tools: toolbox });
    const outcomes = await Promise.all(
      benchmark.entries
        .slice(0, 5)
        .map((entry) => runEpisode(entry, { agent, benchmark, judge: exactJudge(), clock: () => 0, seed: 1 })),
    );
    return outcomes.map(({ episode }) => episode);
  };
  const gone = { textSearch: absent(live.textSearch.name), imageSearch: absent(live.imageSearch.name) };
  const recorded = await run({ mode: 'record', store }, live);
  expect(recorded.map(({ status, turns }) => [status, turns.length])).toEqual(Array(5).fill(['answer', 4]));
  expect(await run({ mode: 'strict', store }, gone)).toEqual(recorded);
  for (const { status, error } of await run({ mode: 'strict', store }, gone, 'river')) {
    expect(status).toBe('error');
    expect(error).toMatchObject({ kind: 'ToolStopError', message: expect.stringContaining('"city river') });
  }
  for (const { status, reason } of await run({ mode: 'replay', store }, gone, 'river')) {
    expect([status, reason]).toEqual(['tool-error', expect.stringMatching(/key [0-9a-f]{64}: not recorded/)]);
  }
});
