// The history h_t of one trajectory: ids and pictures that only ever grow, with the length in sent ids and in expanded positions.
import { EngineError } from '../errors.js';
import { imageTokenCount } from '../media/geometry.js';
import type { Image, ImageGeometry, TokenContext } from '../types.js';

/** Append-only, so that every turn of a record is a span of the final ids and an engine's prefix cache always matches. */
export class Context implements TokenContext {
  readonly trajectory: string;
  readonly #geometry: ImageGeometry;
  readonly #imagePadId: number;
  readonly #ids: number[] = [];
  readonly #images: Image[] = [];
  #positions = 0;

  constructor(trajectory: string, geometry: ImageGeometry, imagePadId: number) {
    this.trajectory = trajectory;
    this.#geometry = geometry;
    this.#imagePadId = imagePadId;
  }

  get ids(): readonly number[] {
    return this.#ids;
  }

  get images(): readonly Image[] {
    return this.#images;
  }

  /** L: one position per text token, (H/32)(W/32) per picture for Qwen3-VL's geometry. */
  get length(): number {
    return this.#positions;
  }

  /** Appends ids that hold exactly one image_pad per picture; throws EngineError otherwise, before anything changes. */
  append(ids: readonly number[], images: readonly Image[] = []): void {
    const pads = ids.reduce((count, id) => count + (id === this.#imagePadId ? 1 : 0), 0);
    if (pads !== images.length) {
      throw new EngineError('image tokens and pictures differ in number', {
        where: this.trajectory,
        expected: `${images.length} image_pad ids`,
        found: String(pads),
      });
    }
    let positions = ids.length - pads;
    for (const image of images) positions += imageTokenCount(image.width, image.height, this.#geometry);
    // One by one: as arguments of one call, a very long text would overflow the stack.
    for (const id of ids) this.#ids.push(id);
    for (const image of images) this.#images.push(image);
    this.#positions += positions;
  }
}
