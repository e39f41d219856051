// The coordinate conventions of the agent formats, as pure functions into the one that crops use: thousandths of the picture's sides.
import { resizedSize, type Size } from '../media/geometry.js';
import type { ImageGeometry } from '../types.js';
import type { Box } from './box.js';

/** 0..1000 of the sides · 0..1 of the sides · pixels of the picture as the model saw it, resized by its image processor. */
export type Coordinates = 'thousandths' | 'fractions' | { readonly pixelsOf: ImageGeometry };

/** `image` is the picture's own size. Throws DataError for a picture that the image processor would refuse. */
export function toThousandths(box: Box, coordinates: Coordinates, image: Size): Box {
  if (coordinates === 'thousandths') return box;
  return coordinates === 'fractions' ? fromFractions(box) : fromResizedPixels(box, resizedSize(image, coordinates.pixelsOf));
}

export function fromFractions([x1, y1, x2, y2]: Box): Box {
  return [x1 * 1000, y1 * 1000, x2 * 1000, y2 * 1000];
}

/** `resized` is the size that the box's pixels count in. */
export function fromResizedPixels([x1, y1, x2, y2]: Box, { width, height }: Size): Box {
  return [(x1 * 1000) / width, (y1 * 1000) / height, (x2 * 1000) / width, (y2 * 1000) / height];
}
