// Several servers: a trajectory stays where its prefix cache lives; what a dead server held fails, and new work goes elsewhere.
import { EngineUnavailableError } from '../../errors.js';
import type { SglangServer } from './server.js';

/** Where a trajectory's cache lives. */
export interface Place {
  readonly server: SglangServer;
  /** Data-parallel replica within the server; null where there is only one. */
  readonly replica: number | null;
}

export class ServerPool {
  readonly servers: readonly SglangServer[];
  readonly #places: readonly Place[];
  readonly #assigned = new Map<string, Place>();
  readonly #load = new Map<Place, number>();

  constructor(servers: readonly SglangServer[]) {
    this.servers = servers;
    this.#places = servers.flatMap((server): Place[] =>
      server.facts.replicas === 1
        ? [{ server, replica: null }]
        : Array.from({ length: server.facts.replicas }, (_, replica) => ({ server, replica })),
    );
  }

  /** Every place that can hold a cache and is not known to be dead. */
  get live(): readonly Place[] {
    return this.#places.filter(({ server }) => server.breaker.state !== 'open');
  }

  /** The trajectory's place, chosen at its first call: the live one with the fewest trajectories. */
  async place(trajectory: string): Promise<Place> {
    const known = this.#assigned.get(trajectory);
    if (known) {
      if (known.server.breaker.state === 'closed' || (await revives(known))) return known;
      throw new EngineUnavailableError("the trajectory's server has died", {
        where: known.server.facts.url,
        found: known.server.breaker.lastFailure,
        remedy: 'The question can be started afresh on another server.',
      });
    }
    const byLoad = [...this.live].sort((a, b) => this.#loadOf(a) - this.#loadOf(b));
    for (const place of byLoad) {
      if (place.server.breaker.state === 'closed' || (await revives(place))) {
        this.#assigned.set(trajectory, place);
        this.#load.set(place, this.#loadOf(place) + 1);
        return place;
      }
    }
    throw new EngineUnavailableError('no server is left', {
      where: this.servers.map(({ facts }) => facts.url).join(', '),
      found: this.servers.map(({ breaker }) => breaker.lastFailure).join('; '),
      remedy: 'Restart the server and resume the run.',
    });
  }

  release(trajectory: string): void {
    const place = this.#assigned.get(trajectory);
    if (!place) return;
    this.#assigned.delete(trajectory);
    this.#load.set(place, this.#loadOf(place) - 1);
  }

  #loadOf(place: Place): number {
    return this.#load.get(place) ?? 0;
  }
}

/** One cheap question to a server whose breaker has cooled down. */
async function revives({ server }: Place): Promise<boolean> {
  if (server.breaker.state === 'open') return false;
  return server.probe().then(
    () => true,
    () => false,
  );
}
