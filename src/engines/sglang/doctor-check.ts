// What a check of the doctor is, and what it works with.
import type { Engine, TokenContext, Tokenizer } from '../../types.js';
import type { CallRecord } from './calls.js';
import type { Probe } from './doctor-probe.js';
import type { HttpClient } from './http.js';
import type { SglangOptions } from './options.js';
import type { ServerFacts } from './preflight.js';

export interface Check {
  readonly name: string;
  readonly status: 'pass' | 'warn' | 'fail';
  readonly detail: string;
  readonly remedy: string | null;
}

export interface DoctorOptions extends Omit<SglangOptions, 'urls' | 'isolationKey' | 'onCall' | 'prefill'> {
  readonly url: string;
  readonly tokenizer: Tokenizer;
  /** Namespace of the doctor's own cache entries; must differ from run to run. */
  readonly isolationKey: string;
  /** Margins of a finished run in nats: the share of them below the noise floor is told. */
  readonly margins?: readonly number[];
  /** Empties the server's cache for everybody who uses it. */
  readonly flush?: boolean;
  /**
   * A folder *on the server* with the same model but other vision weights, to see whether pictures are computed afresh
   * after an update. The first weights are loaded again afterwards.
   */
  readonly otherVisionWeights?: string;
}

/** What each check works with. */
export interface Patient {
  readonly options: DoctorOptions;
  readonly facts: ServerFacts;
  readonly http: HttpClient;
  readonly probe: Probe;
  /** The last call of the engine that `engine` returned last. */
  readonly lastCall: () => CallRecord;
  /** An engine whose cache entries nobody else shares, so that its first call is cold. */
  readonly engine: (name: string) => Promise<Engine>;
}

export type CheckRun = (patient: Patient) => Promise<Omit<Check, 'name'>>;

export function pass(detail: string): Omit<Check, 'name'> {
  return { status: 'pass', detail, remedy: null };
}

export function warn(detail: string, remedy: string): Omit<Check, 'name'> {
  return { status: 'warn', detail, remedy };
}

export function fail(detail: string, remedy: string): Omit<Check, 'name'> {
  return { status: 'fail', detail, remedy };
}

/** Log-probs as plain rows. */
export async function scoreRows(
  engine: Engine,
  context: TokenContext,
  continuations: readonly (readonly number[])[],
): Promise<number[][]> {
  const { rows } = await engine.score(context, continuations);
  return rows.map((row) => row.map(({ logprob }) => logprob));
}
