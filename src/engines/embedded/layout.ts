// Where the sent ids of a context lie once its images are expanded, and the rotary position of each expanded token.
import { EngineError } from '../../errors.js';

export interface ImageGrid {
  readonly sha256: string;
  /** Image tokens per column and per row of the merged grid. */
  readonly rows: number;
  readonly columns: number;
}

export interface Layout {
  /** First expanded position of each sent id, and one more entry: the length. */
  readonly starts: Int32Array;
  /** Time, height and width position per expanded token. */
  readonly positions: Int32Array;
  /** Index of the image that sent id i shows, or -1. */
  readonly imageAt: Int32Array;
  readonly length: number;
  /** Rotary position of the token that would follow; after an image it is less than `length`. */
  readonly nextPosition: number;
}

/** Throws an EngineError when the number of image tokens differs from the number of images. */
export function layoutContext(ids: readonly number[], images: readonly ImageGrid[], imageTokenId: number): Layout {
  const pads = ids.reduce((total, id) => total + (id === imageTokenId ? 1 : 0), 0);
  if (pads !== images.length) {
    throw new EngineError('image tokens and images differ in number', {
      expected: `${images.length} image_pad ids`,
      found: `${pads}`,
    });
  }
  const length = ids.length - pads + images.reduce((total, grid) => total + grid.rows * grid.columns, 0);
  const starts = new Int32Array(ids.length + 1);
  const imageAt = new Int32Array(ids.length).fill(-1);
  const positions = new Int32Array(3 * length);
  let at = 0;
  let next = 0;
  let image = 0;
  ids.forEach((id, index) => {
    starts[index] = at;
    if (id !== imageTokenId) {
      positions.fill(next, 3 * at, 3 * at + 3);
      at += 1;
      next += 1;
      return;
    }
    imageAt[index] = image;
    const grid = images[image++] as ImageGrid;
    placeImage(positions, at, next, grid);
    at += grid.rows * grid.columns;
    next += Math.max(grid.rows, grid.columns);
  });
  starts[ids.length] = length;
  return { starts, positions, imageAt, length, nextPosition: next };
}

function placeImage(positions: Int32Array, at: number, start: number, grid: ImageGrid): void {
  for (let row = 0; row < grid.rows; row++) {
    for (let column = 0; column < grid.columns; column++) {
      const to = 3 * (at + row * grid.columns + column);
      positions[to] = start;
      positions[to + 1] = start + row;
      positions[to + 2] = start + column;
    }
  }
}

/** The part of one image that lies within a range of rows. */
export interface ImageSpan {
  readonly image: number;
  readonly from: number;
  readonly to: number;
  /** Which of the image's tokens row `from` shows. */
  readonly firstToken: number;
}

/** The parts of images that lie in rows row … end - 1. */
export function imagesWithin({ starts, imageAt }: Layout, row: number, end: number): ImageSpan[] {
  const spans: ImageSpan[] = [];
  imageAt.forEach((image, sent) => {
    const first = starts[sent] ?? 0;
    const from = Math.max(row, first);
    const to = Math.min(end, starts[sent + 1] ?? 0);
    if (image >= 0 && from < to) spans.push({ image, from, to, firstToken: from - first });
  });
  return spans;
}

/** How many sent ids lie wholly before an expanded position. */
export function idsBefore({ starts }: Layout, row: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= row) low = middle;
    else high = middle - 1;
  }
  return low;
}
