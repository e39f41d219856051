// The doctor's checks of what a server must do besides scoring: repeat a seed, abort, flush, and forget old pictures.
import { EngineError } from '../../errors.js';
import type { Sampling } from '../../types.js';
import { jsonBody } from './body.js';
import { type CheckRun, type DoctorOptions, fail, type Patient, pass, scoreRows, warn } from './doctor-check.js';
import { distance, square } from './doctor-probe.js';
import { readJson, readText } from './http.js';
import { loadsSchema, oldLoadsSchema, updateWeightsSchema } from './protocol.js';
import { REAL_SURROUNDINGS } from './surroundings.js';

const ADMIN_TIMEOUT_MS = 10_000;
const UPDATE_TIMEOUT_MS = 300_000;
const ABORT_AFTER_MS = 300;
const IDLE_WITHIN_MS = 5_000;
const LONG = 1_000;

export function adminChecks({ flush, otherVisionWeights }: DoctorOptions): Record<string, CheckRun> {
  return {
    'seeded samples': seeds,
    abort,
    ...(flush === true && { flush: flushing }),
    ...(otherVisionWeights !== undefined && { 'fresh pictures after an update': freshPictures }),
  };
}

const seeds: CheckRun = async ({ engine, probe, facts, options }) => {
  const ours = await engine('seeds');
  const sampling = sampled(options, 16);
  const draw = async () => (await ours.generate(probe.text('seeds'), sampling)).tokens.map(({ id }) => id).join(' ');
  const [first, second] = [await draw(), await draw()];
  const same = first === second;
  if (same && facts.deterministic) return pass('two samples with one seed are equal');
  if (facts.deterministic)
    return fail(
      'two samples with one seed differ',
      'Deterministic inference is on and does not hold: see the attention backend.',
    );
  return warn(
    `the server does not promise to honour seeds (two samples with one seed were ${same ? 'equal' : 'different'})`,
    'Runs at temperature 0 are unaffected; otherwise start the server with --enable-deterministic-inference.',
  );
};

const abort: CheckRun = async (patient) => {
  const { engine, probe, options, facts } = patient;
  const { sleep, clock } = options.surroundings ?? REAL_SURROUNDINGS;
  const ours = await engine('abort');
  const history = probe.text('abort');
  const cancel = new AbortController();
  const generation = ours.generate(history, sampled(options, Math.min(LONG, facts.contextLength - history.length)), {
    signal: cancel.signal,
  });
  const ended = await Promise.race([
    generation.then(() => 'finished' as const),
    sleep(ABORT_AFTER_MS).then(() => 'running' as const),
  ]);
  if (ended === 'finished')
    return warn(`the generation ended within ${ABORT_AFTER_MS} ms, too soon to abort it`, 'Try with a larger model.');
  const started = clock();
  cancel.abort(new EngineError('cancelled by the doctor'));
  await generation.catch(() => undefined);
  while (clock() - started < IDLE_WITHIN_MS) {
    const running = await runningRequests(patient);
    if (running === null)
      return warn('the server does not tell what it runs, so nobody knows whether the abort arrived', 'Use a newer release.');
    if (running === 0) return pass(`a running generation was gone ${Math.round(clock() - started)} ms after its abort`);
    await sleep(100);
  }
  return fail(
    `something still ran ${IDLE_WITHIN_MS} ms after the abort`,
    'Aborts do not arrive (or others use this server): talk to the worker, not to a gateway, and give the admin key.',
  );
};

const flushing: CheckRun = async (patient) => {
  const { engine, probe, lastCall } = patient;
  const ours = await engine('flush');
  await ours.prefill(probe.text('flush'));
  if (!(await flushed(patient))) {
    return warn('the cache cannot be flushed while something runs or waits', 'Try again when the server is idle.');
  }
  await ours.prefill(probe.text('flush'));
  const { cachedTokens } = lastCall();
  return cachedTokens === 0
    ? pass('nothing was cached after a flush')
    : fail(`${cachedTokens} tokens were still cached after a flush`, 'Restart the server between arms of a comparison.');
};

/** A server that has just finished something may need a moment; false when it stays busy. */
async function flushed({ http, options }: Patient): Promise<boolean> {
  const { sleep, clock } = options.surroundings ?? REAL_SURROUNDINGS;
  const started = clock();
  const request = { method: 'POST', path: '/flush_cache', admin: true, timeoutMs: ADMIN_TIMEOUT_MS, idempotent: true } as const;
  for (;;) {
    const reply = await http.exchange(request, readText);
    if (reply.value !== null) return true;
    if (reply.status !== 400) throw http.refusal(request.path, reply);
    if (clock() - started > IDLE_WITHIN_MS) return false;
    await sleep(200);
  }
}

const freshPictures: CheckRun = async (patient) => {
  const { engine, probe, facts, options } = patient;
  const picture = await square(256, 256, 'purple');
  const score = async (name: string) => scoreRows(await engine(name), probe.pictured(name, [picture]), probe.candidates);
  const before = await score('fresh-before');
  await updateWeights(patient, options.otherVisionWeights as string, 'ssr-doctor');
  try {
    const apart = distance(before, await score('fresh-after'));
    const detail = `a picture seen before and after an update of the vision weights: ${apart.toFixed(4)} nat apart`;
    return apart > 1e-6
      ? pass(detail)
      : fail(
          detail,
          'Old vision features are served: start the server with SGLANG_VLM_CACHE_SIZE_MB=0, or restart it after each update.',
        );
  } finally {
    await updateWeights(patient, facts.model, facts.weights);
  }
};

async function updateWeights({ http }: Patient, model: string, version: string): Promise<void> {
  const path = '/update_weights_from_disk';
  const body = () => jsonBody({ model_path: model, weight_version: version, flush_cache: true, abort_all_requests: true });
  const reply = await http.exchange(
    { method: 'POST', path, admin: true, body, timeoutMs: UPDATE_TIMEOUT_MS, idempotent: false },
    readJson,
  );
  if (reply.value === null) throw http.refusal(path, reply);
  const { success, message } = updateWeightsSchema.parse(reply.value);
  if (!success) throw new EngineError('the weights were not updated', { where: `${http.url}${path}`, found: message });
}

/** Requests that run or wait, by the page of newer releases or that of older ones; null where neither answers. */
async function runningRequests({ http }: Patient): Promise<number | null> {
  const ask = async (path: string) =>
    (
      await http.exchange(
        { method: 'GET', path, timeoutMs: ADMIN_TIMEOUT_MS, idempotent: true, retryServerErrors: false },
        readJson,
      )
    ).value;
  const page = loadsSchema.safeParse(await ask('/v1/loads'));
  if (page.success) return page.data.loads.reduce((sum, load) => sum + load.num_running_reqs + load.num_waiting_reqs, 0);
  const old = oldLoadsSchema.safeParse(await ask('/get_load'));
  return old.success ? old.data.reduce((sum, load) => sum + load.num_reqs, 0) : null;
}

/** A sample that runs on: nothing stops it but its length. */
function sampled({ tokenizer }: DoctorOptions, maxNewTokens: number): Sampling {
  const ends = ['<|im_end|>', '<|endoftext|>'].filter((token) => tokenizer.addedTokens.includes(token));
  return {
    maxNewTokens,
    temperature: 1,
    topP: 1,
    topK: 0,
    seed: 11,
    stopIds: [],
    bannedIds: ends.map((token) => tokenizer.idOf(token)),
  };
}
