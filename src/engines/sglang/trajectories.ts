// What the client remembers of each trajectory between its calls, and which prefixes every place has been given.
import type { TokenContext } from '../../types.js';
import { IdsText } from './body.js';
import type { Place } from './pool.js';

export interface Trajectory {
  /** The history as text, extended as it grows. */
  readonly ids: IdsText;
  /** Positions that earlier calls left in the server's cache, unless it had to evict them. */
  cachedPositions: number;
  /** Pictures that a call has carried, and those for which the server's own ids have been compared. */
  imagesSeen: number;
  imagesEchoed: number;
  /** Weight version of the turn in progress. */
  weights: string | null;
}

/** Shared prefixes are few (one per prompt), so remembering some is enough. */
const MOST_SHARED = 16;

export class Trajectories {
  readonly #known = new Map<string, Trajectory>();
  readonly #shared = new Map<Place, Set<string>>();

  of(context: TokenContext): Trajectory {
    const known = this.#known.get(context.trajectory);
    if (known) return known;
    const made: Trajectory = { ids: new IdsText(), cachedPositions: 0, imagesSeen: 0, imagesEchoed: 0, weights: null };
    this.#known.set(context.trajectory, made);
    return made;
  }

  forget(trajectory: string): void {
    this.#known.delete(trajectory);
  }

  /** Remembers that a place holds exactly these ids, as the start of any trajectory. */
  share(context: TokenContext, place: Place): void {
    const known = this.#shared.get(place) ?? new Set<string>();
    this.#shared.set(place, known);
    known.add(this.#key(context));
    for (const oldest of known) {
      if (known.size <= MOST_SHARED) break;
      known.delete(oldest);
    }
  }

  isShared(context: TokenContext, place: Place): boolean {
    return context.images.length === 0 && (this.#shared.get(place)?.has(this.#key(context)) ?? false);
  }

  #key(context: TokenContext): string {
    return Buffer.from(this.of(context).ids.of(context.ids)).toString('latin1');
  }
}
