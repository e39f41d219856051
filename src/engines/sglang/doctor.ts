// A page of checks against a running server, as data: what works, what does not, and what to do about it.
import { SsrError } from '../../errors.js';
import type { CallRecord } from './calls.js';
import { adminChecks } from './doctor-admin.js';
import { type Check, type DoctorOptions, type Patient, pass, warn } from './doctor-check.js';
import { createProbe } from './doctor-probe.js';
import { scoringChecks } from './doctor-scoring.js';
import { createSglangEngine, type SglangEngine } from './engine.js';
import { HttpClient } from './http.js';
import type { ServerFacts } from './preflight.js';
import { REAL_SURROUNDINGS } from './surroundings.js';

/** Yields the checks as they end. A failed preflight is the only check then, since nothing else can work. */
export async function* diagnose(options: DoctorOptions): AsyncGenerator<Check> {
  const opened: SglangEngine[] = [];
  let lastCall: CallRecord | null = null;
  const engine = async (name: string): Promise<SglangEngine> => {
    const made = await createSglangEngine({
      ...options,
      urls: [options.url],
      prefill: 'on',
      isolationKey: `${options.isolationKey}-${name}`,
      onCall: (call) => {
        lastCall = call;
      },
    });
    opened.push(made);
    return made;
  };
  const { url, apiKey, adminKey, surroundings = REAL_SURROUNDINGS } = options;
  const http = new HttpClient({
    url,
    surroundings,
    ...(apiKey !== undefined && { apiKey }),
    ...(adminKey !== undefined && { adminKey }),
  });
  try {
    const first = await examine('preflight', async () => preflight((await engine('preflight')).servers[0] as ServerFacts));
    yield first;
    if (first.status === 'fail') return;
    const [known] = opened as [SglangEngine];
    const patient: Patient = {
      options,
      facts: known.servers[0] as ServerFacts,
      http,
      probe: createProbe(options.tokenizer, await known.describe()),
      engine,
      lastCall: () => lastCall as unknown as CallRecord,
    };
    for (const [name, run] of Object.entries({ ...scoringChecks, ...adminChecks(options) }))
      yield await examine(name, () => run(patient));
  } finally {
    await Promise.all([...opened.map((made) => made.close()), http.close()]);
  }
}

async function examine(name: string, run: () => Promise<Omit<Check, 'name'>>): Promise<Check> {
  try {
    return { name, ...(await run()) };
  } catch (error) {
    const remedy = error instanceof SsrError ? (error.facts.remedy ?? null) : null;
    const message = error instanceof Error ? error.message : String(error);
    return { name, status: 'fail', detail: remedy === null ? message : message.replace(`. ${remedy}`, ''), remedy };
  }
}

function preflight(facts: ServerFacts): Omit<Check, 'name'> {
  const { version, model, weights, pageSize, contextLength, attentionBackend, mmAttentionBackend, notices } = facts;
  const backends = [attentionBackend, mmAttentionBackend].filter((name) => name !== null).join(' and ') || 'unknown';
  const detail = `SGLang ${version} serves ${model} (weights ${weights}): page size ${pageSize}, ${contextLength} positions, attention by ${backends}`;
  return notices.length === 0
    ? pass(detail)
    : warn(`${detail}; ${notices.join('; ')}`, 'Nothing needs to be done; a newer release or other flags lift it.');
}
