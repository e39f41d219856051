import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { loadLibrary, tokeniseLibrary } from '../../../src/agent/library.js';
import { indexCandidates, indexReasoner } from '../../../src/agent/reasoning/index-only.js';
import { editDistance, nearestEntry } from '../../../src/agent/reasoning/match.js';
import { endpointSource, likeliestOpening } from '../../../src/agent/reasoning/opening.js';
import { firstDivergent, lengthNormalised, priorCorrected, priorLogprobs } from '../../../src/agent/reasoning/scorers.js';
import { selectionReasoner } from '../../../src/agent/reasoning/selection.js';
import { EngineError } from '../../../src/errors.js';
import type { TokenContext } from '../../../src/types.js';
import { testAgent } from '../../support/agent.js';

const script = (candidate: number) => ({ '*': [{ candidate, action: '<answer>x</answer>' }] });
const agent = await testAgent({ script: script(3) });
const library = tokeniseLibrary(await loadLibrary('configs/libraries/default.json'), agent.dialect, agent.tokenizer);
const context: TokenContext = { trajectory: 'q', ids: agent.systemIds, images: [], length: agent.systemIds.length };

describe('scorers', () => {
  it('by length: mean, sum and between', () => {
    const rows = [[-1, -2, -3, -2]];
    expect([1, 0, 0.5].map((alpha) => lengthNormalised(alpha)(rows)[0])).toEqual([-2, -8, -4]);
  });

  it('by the first divergent token: from where any two differ to where one differs from all', () => {
    // 1 2 | 3 4 | 7 …   1 2 | 3 5 …   1 2 | 6 …: the shared start says nothing, the tails follow from the choice.
    const scorer = firstDivergent([{ ids: [1, 2, 3, 4, 7] }, { ids: [1, 2, 3, 5, 7] }, { ids: [1, 2, 6, 7] }]);
    const scores = scorer([
      [-9, -9, -0.5, -0.25, -9],
      [-9, -9, -0.5, -1.5, -9],
      [-9, -9, -2, -9],
    ]);
    expect(scores).toEqual([-0.75, -2, -2]);
  });

  it('by the first divergent token: a library of one, and an entry that another one begins with', () => {
    expect(firstDivergent([{ ids: [1, 2] }])([[-1, -2]])).toHaveLength(1);
    expect(
      firstDivergent([{ ids: [1, 2] }, { ids: [1, 2, 3] }])([
        [-1, -2],
        [-1, -2, -0.5],
      ]),
    ).toEqual([0, -0.5]);
  });

  it('by what the question adds: conditional minus unconditional', () => {
    const scores = priorCorrected(
      [
        [-1, -1],
        [-4, -4, -4],
      ],
      1,
    )([
      [-1, -3],
      [-2, -2, -2],
    ]);
    expect(scores).toEqual([-1, 2]);
    expect(() => priorCorrected([[-1]], 1)([[-1, -3]])).toThrow('the prior is of another library');
  });

  it('take their prior from one call, whose cache is given back', async () => {
    const released: string[] = [];
    const engine = { ...agent.engine, release: async (name: string) => void released.push(name) };
    const prior = await priorLogprobs(engine, { ...context, trajectory: 'prior' }, library);
    expect(prior.map((row) => row.length)).toEqual(library.map(({ ids }) => ids.length));
    expect(released).toEqual(['prior']);
  });

  it('replace alpha in the selection, which records the log-probs all the same', async () => {
    const reversed = selectionReasoner(agent.engine, library, { alpha: 1, tau: 0, scorer: (rows) => rows.map((_, i) => i) });
    const { selection } = await reversed.reason(context, agent.sampling, () => 0);
    expect(selection).toMatchObject({ index: 5, scores: [0, 1, 2, 3, 4, 5], margin: 1 });
    expect(selection?.tokenLogprobs.map((row) => row.length)).toEqual(library.map(({ ids }) => ids.length));
  });
});

describe('selection by index', () => {
  const numbers = indexCandidates(library, agent.dialect, agent.tokenizer);

  it('scores the number that the prompt gave the candidate, not its place in the library', () => {
    // Sorted by id: ANSWER_FROM_EVIDENCE, ANSWER_FROM_IMAGE, GENERAL_KNOW, IDENTIFY_BY_IMAGE, LOOKUP_FACT, ZOOM_DETAIL.
    const texts = numbers.map(({ ids }) => agent.tokenizer.decode(ids));
    expect(texts).toEqual([2, 1, 5, 3, 4, 0].map((i) => `<thinking>[${i}]`));
  });

  it('inserts the same full text as selection does', async () => {
    const reasoner = indexReasoner(agent.engine, library, numbers, { alpha: 1, tau: 0 });
    const { ids, selection, usage } = await reasoner.reason(context, agent.sampling, () => 0);
    expect(selection?.candidate).toBe('r_IDENTIFY_BY_IMAGE');
    expect(ids).toEqual(library[3]?.ids);
    expect(usage.computedTokens).toBeLessThan(library.reduce((sum, candidate) => sum + candidate.ids.length, 0) / 2);
  });
});

describe('edit distance', () => {
  it.each([
    ['kitten', 'sitting', 3],
    ['', 'abc', 3],
    ['abc', '', 3],
    ['flaw', 'lawn', 2],
    ['same', 'same', 0],
  ])('of %j and %j is %d', (a, b, distance) => {
    expect(editDistance(a, b)).toBe(distance);
  });

  it('finds the nearest entry, white space aside, the first of equals', () => {
    const entries = [
      { id: 'a', text: 'one two' },
      { id: 'b', text: 'one  two' },
      { id: 'c', text: 'three' },
    ];
    expect(nearestEntry(' one\ntwo ', entries)).toEqual({ candidate: 'a', distance: 0 });
    expect(nearestEntry('thre', entries)).toEqual({ candidate: 'c', distance: 1 });
  });
});

describe('a probe that answers over HTTP', () => {
  const serve = async (status: number, body: string, use: (url: string, seen: string[]) => Promise<void>): Promise<void> => {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      request.setEncoding('utf8').on('data', (chunk: string) => seen.push(chunk));
      request.on('end', () => response.writeHead(status, { 'content-type': 'application/json' }).end(body));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, seen);
    server.close();
  };
  const source = (url: string) => endpointSource({ url, tokenizer: agent.tokenizer, fetch, timeoutMs: 2000 });

  it('is asked with the question and fixes the first words', async () => {
    await serve(200, '{"opening": "I see"}', async (url, seen) => {
      expect(await source(url)(context)).toBe('I see');
      expect(JSON.parse(seen.join(''))).toEqual({ id: 'q', text: agent.tokenizer.decode(context.ids) });
    });
  });

  it.each([
    [500, '{}', 'status 500'],
    [200, '{"words": "I see"}', 'another reply'],
    [200, 'no json', 'another reply'],
  ])('is an engine error with status %d and body %s', async (status, body, found) => {
    await serve(status, body, async (url) => {
      await expect(source(url)(context)).rejects.toThrow(EngineError);
      await expect(source(url)(context)).rejects.toThrow(found);
    });
  });

  it('that cannot be reached is named', async () => {
    await expect(source('http://127.0.0.1:9/')(context)).rejects.toThrow('http://127.0.0.1:9/: the probe gave no opening');
  });
});

describe('the likeliest opening', () => {
  it('is the one with the best mean log-prob, tag included', async () => {
    const openings = ['I know', 'I must search', 'Let me zoom', 'The picture'];
    const opening = likeliestOpening(agent.engine, openings, agent.tokenizer, { open: '<thinking>', close: '</thinking>' });
    expect(agent.tokenizer.decode(await opening(context))).toBe('<thinking>The picture');
  });
});
