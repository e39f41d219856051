// A circuit breaker: a server that has died is not asked again until some time has passed, so that nobody waits for it.

export interface BreakerPolicy {
  /** Failures in a row that open it; a server that cannot be reached at all opens it at once. */
  readonly failures: number;
  /** How long it stays open before one trial is allowed. */
  readonly coolDownMs: number;
}

export const DEFAULT_BREAKER: BreakerPolicy = { failures: 3, coolDownMs: 30_000 };

export class Breaker {
  readonly #policy: BreakerPolicy;
  readonly #clock: () => number;
  #failures = 0;
  #openedAt: number | null = null;
  /** The last failure, for whoever is turned away. */
  lastFailure = '';

  constructor(policy: BreakerPolicy, clock: () => number) {
    this.#policy = policy;
    this.#clock = clock;
  }

  /** `trial`: it was open long enough to be tried once. */
  get state(): 'closed' | 'open' | 'trial' {
    if (this.#openedAt === null) return 'closed';
    return this.#clock() - this.#openedAt >= this.#policy.coolDownMs ? 'trial' : 'open';
  }

  succeeded(): void {
    this.#failures = 0;
    this.#openedAt = null;
  }

  failed(message: string, fatal: boolean): void {
    this.lastFailure = message;
    this.#failures += 1;
    if (fatal || this.#failures >= this.#policy.failures || this.#openedAt !== null) this.#openedAt = this.#clock();
  }
}
