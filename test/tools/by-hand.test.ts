import { expect, it } from 'vitest';
import { ToolError } from '../../src/errors.js';
import { recordOf, tryTool } from '../../src/tools/by-hand.js';
import { tools } from './support/create.js';
import { picture } from './support/pictures.js';

it('gives what the model would get, and a record without picture bytes', async () => {
  const image = await picture('red', 64);
  const search = { name: 'given', search: async () => [{ title: 'Red', thumbnail: image }] };
  const { toolbox } = await tools({ imageSearch: { provider: 'given', search, version: '1', results: 1 }, crop: {} });
  const found = await tryTool(toolbox, { kind: 'image', image });
  const { sha256, mediaType } = image;
  expect(recordOf(found)).toEqual({
    kind: 'results',
    results: [{ title: 'Red', thumbnail: { sha256, mediaType, width: 64, height: 64 } }],
  });
  const cut = await tryTool(toolbox, { kind: 'crop', image, box: [0, 0, 500, 1000] });
  expect(recordOf(cut)).toMatchObject({ kind: 'image', image: { width: 32, height: 64, mediaType: 'image/png' } });
  const mistake = await tryTool(toolbox, { kind: 'crop', image, box: [500, 0, 500, 1000] });
  expect(recordOf(mistake)).toEqual({ kind: 'error', message: expect.stringContaining('The box is empty') });
  await expect(tryTool(toolbox, { kind: 'text', query: 'x' })).rejects.toThrow('there is no text search');
});

it('tells the model about a blank query, and lets a failure through', async () => {
  const search = { name: 'given', search: () => Promise.reject(new ToolError('down')) };
  const { toolbox } = await tools({ textSearch: { provider: 'given', search, version: '1', results: 1 } });
  expect(await tryTool(toolbox, { kind: 'text', query: ' \n' })).toMatchObject({
    kind: 'error',
    message: expect.stringContaining('blank'),
  });
  await expect(tryTool(toolbox, { kind: 'text', query: 'x' })).rejects.toThrow('down');
});
