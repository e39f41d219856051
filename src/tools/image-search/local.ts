// Reverse image search over pictures on this machine: finds the same picture again, whole or cut, by the likeness of descriptors.
// It finds the same picture, not another picture of the same thing.
import pLimit from 'p-limit';
import type { Image, ImageSearch, SearchResult } from '../../types.js';
import { cosine, describePicture, descriptorLength, windows } from './descriptor.js';

export interface IndexedPicture {
  readonly title: string;
  /** Reads the picture; called once for the index, and again where it is shown as a thumbnail. */
  load(): Promise<Image>;
}

export interface LocalImageSearchOptions {
  /** Most results per picture. */
  readonly results: number;
  /** Whether results carry the pictures that were found; off unless said. */
  readonly thumbnails?: boolean;
}

/** Pictures decoded at once while the index is built. */
const loadsAtOnce = 4;

/** The index is built by the first search and kept; equal likenesses keep the pictures' order. */
export function createLocalImageSearch(pictures: readonly IndexedPicture[], options: LocalImageSearchOptions): ImageSearch {
  let index: Promise<Float32Array> | undefined;
  return {
    name: 'local-descriptor',
    async search(image, signal) {
      signal?.throwIfAborted();
      // No signal goes in: the index outlives the search that happens to need it first.
      index ??= buildIndex(pictures);
      const [descriptors, query] = await Promise.all([index, describePicture(image, 1)]);
      signal?.throwIfAborted();
      const found = rank(query, descriptors, pictures).slice(0, options.results);
      return Promise.all(found.map((picture) => toResult(picture, options.thumbnails ?? false)));
    },
  };
}

async function buildIndex(pictures: readonly IndexedPicture[]): Promise<Float32Array> {
  const descriptors = new Float32Array(pictures.length * windows.length * descriptorLength);
  const limit = pLimit(loadsAtOnce);
  await limit.map(pictures, async (picture, i) => {
    descriptors.set(await describePicture(await picture.load()), i * windows.length * descriptorLength);
  });
  return descriptors;
}

/** Pictures by their window that resembles the query most, best first. */
function rank(query: Float32Array, descriptors: Float32Array, pictures: readonly IndexedPicture[]): IndexedPicture[] {
  return pictures
    .map((picture, i) => ({ picture, likeness: bestWindow(query, descriptors, i) }))
    .sort((a, b) => b.likeness - a.likeness)
    .map(({ picture }) => picture);
}

function bestWindow(query: Float32Array, descriptors: Float32Array, picture: number): number {
  let best = -1;
  for (let window = 0; window < windows.length; window++) {
    const offset = (picture * windows.length + window) * descriptorLength;
    best = Math.max(best, cosine(query, 0, descriptors, offset));
  }
  return best;
}

async function toResult(picture: IndexedPicture, thumbnail: boolean): Promise<SearchResult> {
  return thumbnail ? { title: picture.title, thumbnail: await picture.load() } : { title: picture.title };
}
