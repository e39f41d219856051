import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { put } from '../../../scripts/fixtures/write.js';
import { hubOptionsFromEnvironment } from '../../../src/data/hub/options.js';
import { fileUrl } from '../../../src/data/hub/repository.js';
import { temporaryFolder } from '../support.js';

describe('settings of the hub', () => {
  it("are the Python client's", async () => {
    const options = await hubOptionsFromEnvironment(
      { HF_ENDPOINT: 'https://mirror.example/', HF_TOKEN: 'hf_a', HF_HOME: '/big/hf', XDG_CACHE_HOME: '/cache' },
      '/home/u',
    );
    expect(options).toMatchObject({
      endpoint: 'https://mirror.example',
      token: 'hf_a',
      cacheFolder: '/big/hf/hub',
      githubCacheFolder: '/cache/ssr/github',
    });
    expect((await hubOptionsFromEnvironment({ HF_HUB_CACHE: '/other', HF_HOME: '/big' }, '/home/u')).cacheFolder).toBe('/other');
  });

  it('are those of the home folder where nothing is set, with the token that was saved there', async () => {
    const home = await temporaryFolder();
    expect(await hubOptionsFromEnvironment({ HF_TOKEN: '' }, home)).not.toHaveProperty('token');
    await put(join(home, '.cache/huggingface/token'), 'hf_saved\n');
    expect(await hubOptionsFromEnvironment({}, home)).toMatchObject({
      endpoint: 'https://huggingface.co',
      token: 'hf_saved',
      cacheFolder: join(home, '.cache/huggingface/hub'),
    });
  });

  it('lead to addresses in which every part is quoted', async () => {
    const options = await hubOptionsFromEnvironment({}, '/home/u');
    expect(fileUrl({ host: 'huggingface', id: 'a/b', revision: 'main' }, 'refs/pr/1', 'x y/é#1.json', options)).toBe(
      'https://huggingface.co/datasets/a/b/resolve/refs%2Fpr%2F1/x%20y/%C3%A9%231.json',
    );
    expect(fileUrl({ host: 'github', id: 'a/b', revision: 'main' }, 'main', 'c/d.parquet', options)).toBe(
      'https://media.githubusercontent.com/media/a/b/main/c/d.parquet',
    );
  });
});
