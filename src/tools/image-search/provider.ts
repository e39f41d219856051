// Reverse image search by name: from its options to its provider.
import { UsageError } from '../../errors.js';
import type { Image } from '../../types.js';
import { fromImageSearch } from '../embedded.js';
import { hosted } from '../hosted.js';
import type { ImageSearchOptions } from '../options.js';
import type { Provider } from '../provider.js';
import { serpApiBaseUrl } from '../serpapi.js';
import { asksLive, type Workshop } from '../workshop.js';
import { createImageHost, type ImageHost } from './image-host.js';
import { createLens } from './lens.js';
import { createLocalImageSearch } from './local.js';
import { createManifestSearch } from './manifest.js';
import { readPictureFolder } from './picture-folder.js';
import { createPrecomputedSearch } from './precomputed.js';

/** Throws UsageError for a back end that cannot work. */
export async function imageProvider(options: ImageSearchOptions, workshop: Workshop): Promise<Provider<Image>> {
  const { results } = options;
  switch (options.provider) {
    case 'lens': {
      const host = imageHost(options.imageHost, workshop);
      const { counter, clock } = workshop;
      return createLens({ ...hosted(options, serpApiBaseUrl, 'lens', 'SERPAPI_API_KEY', workshop), host, counter, clock });
    }
    case 'precomputed':
      return createPrecomputedSearch(options.path, results);
    case 'manifest':
      return createManifestSearch(options.path, results);
    case 'local': {
      const { folder, thumbnails } = options;
      const { pictures, sha256 } = await readPictureFolder(folder);
      return fromImageSearch(createLocalImageSearch(pictures, { results, thumbnails }), sha256, { results, thumbnails });
    }
    case 'given':
      return fromImageSearch(options.search, options.version, { results });
  }
}

/** In a replay there is none, and nobody asks for it. */
function imageHost(template: string | undefined, workshop: Workshop): ImageHost | null {
  if (template !== undefined) return createImageHost(template, workshop);
  if (!asksLive(workshop)) return null;
  throw new UsageError('lens needs a public address for every picture', {
    where: '--image-host',
    expected: 'an upload command with {file}, or an http(s) address with {name} to PUT to',
    remedy: 'Give --image-host, or use --image-search local, precomputed or manifest.',
  });
}
