// The accounting of a perfect prefix cache: per trajectory, whatever was computed once is never computed again.
import { EngineError } from '../errors.js';
import { imageTokenCount } from '../media/geometry.js';
import type { ImageGeometry, TokenContext, Usage } from '../types.js';

/** One sent id, or the picture that stands at an image_pad, with the expanded positions it takes. */
interface Step {
  readonly key: number | string;
  readonly positions: number;
}

interface Held {
  readonly path: readonly Step[];
  /** Continuations computed behind the whole path. */
  readonly branches: readonly (readonly number[])[];
}

const nothing: Held = { path: [], branches: [] };

export class PrefixCache {
  readonly #geometry: ImageGeometry;
  readonly #imagePadId: number;
  readonly #trajectories = new Map<string, Held>();
  #shared: readonly Step[] = [];

  constructor(geometry: ImageGeometry, imagePadId: number) {
    this.#geometry = geometry;
    this.#imagePadId = imagePadId;
  }

  /** The work of a call that reads `context` and computes `continuations` behind it; all of it is held afterwards. */
  use(context: TokenContext, continuations: readonly (readonly number[])[] = []): Usage {
    const path = this.#steps(context);
    const held = this.#trajectories.get(context.trajectory) ?? nothing;
    const known = Math.max(commonSteps(path, held), commonSteps(path, { path: this.#shared, branches: [] }));
    const unread = path.slice(known);
    const cachedTokens = context.length - positionsOf(unread);
    // A branch that the context does not take is forgotten, as an engine forgets the losing candidates.
    this.#trajectories.set(context.trajectory, { path, branches: continuations });
    return {
      promptTokens: context.length,
      cachedTokens,
      computedTokens: positionsOf(unread) + continuations.reduce((sum, ids) => sum + ids.length, 0),
      imagesEncoded: unread.filter(({ key }) => typeof key === 'string').length,
    };
  }

  /** Keeps a context for all trajectories. */
  share(context: TokenContext): void {
    this.#shared = this.#steps(context);
  }

  release(trajectory: string): void {
    this.#trajectories.delete(trajectory);
  }

  /** Throws EngineError for a context whose ids, pictures and length do not belong together. */
  #steps({ trajectory, ids, images, length }: TokenContext): Step[] {
    let next = 0;
    const steps = ids.map((id): Step => {
      if (id !== this.#imagePadId) return { key: id, positions: 1 };
      const image = images[next++];
      if (image === undefined) return { key: 'missing', positions: 0 };
      return { key: image.sha256, positions: imageTokenCount(image.width, image.height, this.#geometry) };
    });
    if (next !== images.length || positionsOf(steps) !== length) {
      throw new EngineError('the context contradicts itself', {
        where: trajectory,
        expected: `${images.length} image tokens and ${length} positions`,
        found: `${next} and ${positionsOf(steps)}`,
      });
    }
    return steps;
  }
}

/** How many of the steps are held: along the path and, from its end, along the best branch. */
function commonSteps(steps: readonly Step[], { path, branches }: Held): number {
  let common = 0;
  while (common < path.length && steps[common]?.key === path[common]?.key) common++;
  if (common < path.length) return common;
  const longest = branches.map((ids) => {
    let depth = 0;
    while (depth < ids.length && steps[common + depth]?.key === ids[depth]) depth++;
    return depth;
  });
  return common + Math.max(0, ...longest);
}

function positionsOf(steps: readonly Step[]): number {
  return steps.reduce((sum, { positions }) => sum + positions, 0);
}
