// New weights for a running server: pause, wait until nothing runs, update from disk, check what is served, continue. An update that
// meets a running request has killed servers (SGLang issue 12099), hence the order.
import { EngineError } from '../../errors.js';
import { jsonBody } from './body.js';
import { HttpClient, readJson, readText, type Surroundings } from './http.js';
import { loadsSchema, modelInfoSchema, oldLoadsSchema, updateWeightsSchema } from './protocol.js';
import { REAL_SURROUNDINGS } from './surroundings.js';

export interface WeightUpdate {
  /** Servers with the same model. */
  readonly urls: readonly string[];
  /** Checkpoint folder, as the servers see it. */
  readonly folder: string;
  /** Named in every reply from then on. */
  readonly version: string;
  readonly apiKey?: string;
  readonly adminKey?: string;
  readonly idleWithinMs?: number;
  readonly surroundings?: Surroundings;
}

const ADMIN_TIMEOUT_MS = 10_000;
const UPDATE_TIMEOUT_MS = 600_000;
const IDLE_WITHIN_MS = 60_000;

/** Throws EngineError naming the server when it stays busy, refuses the folder, or serves another version afterwards. */
export async function updateWeights(update: WeightUpdate): Promise<void> {
  const { urls, apiKey, adminKey, surroundings = REAL_SURROUNDINGS } = update;
  const keys = { ...(apiKey !== undefined && { apiKey }), ...(adminKey !== undefined && { adminKey }) };
  await Promise.all(
    urls.map(async (url) => {
      const http = new HttpClient({ url, surroundings, ...keys });
      try {
        await updateServer(http, update, surroundings);
      } finally {
        await http.close();
      }
    }),
  );
}

async function updateServer(http: HttpClient, update: WeightUpdate, surroundings: Surroundings): Promise<void> {
  await command(http, '/pause_generation', { mode: 'abort' });
  try {
    await untilIdle(http, update.idleWithinMs ?? IDLE_WITHIN_MS, surroundings);
    const path = '/update_weights_from_disk';
    const reply = await http.exchange(
      {
        method: 'POST',
        path,
        admin: true,
        body: () => jsonBody({ model_path: update.folder, weight_version: update.version, flush_cache: true }),
        timeoutMs: UPDATE_TIMEOUT_MS,
        idempotent: false,
      },
      readJson,
    );
    if (reply.value === null) throw http.refusal(path, reply);
    const { success, message } = updateWeightsSchema.parse(reply.value);
    if (!success) throw new EngineError('the weights were not updated', { where: `${http.url}${path}`, found: message });
    await checkVersion(http, update.version);
  } finally {
    await command(http, '/continue_generation', {});
  }
}

async function checkVersion(http: HttpClient, expected: string): Promise<void> {
  const request = { method: 'GET', path: '/model_info', timeoutMs: ADMIN_TIMEOUT_MS, idempotent: true } as const;
  const { weight_version: found } = modelInfoSchema.parse(await http.fetch(request, readJson));
  if (String(found) === expected) return;
  throw new EngineError('the server serves other weights than it was given', { where: http.url, expected, found: String(found) });
}

async function untilIdle(http: HttpClient, withinMs: number, { clock, sleep }: Surroundings): Promise<void> {
  const started = clock();
  for (;;) {
    const running = await runningRequests(http);
    if (running === 0) return;
    if (clock() - started > withinMs) {
      throw new EngineError('the server does not become idle', {
        where: http.url,
        expected: `nothing running within ${withinMs / 1000} s`,
        found: running === null ? 'no page that tells its load' : `${running} requests`,
        remedy: 'A server that trains serves nobody else.',
      });
    }
    await sleep(100);
  }
}

/** Requests that run or wait, by the page of newer releases or that of older ones; null where neither answers. */
async function runningRequests(http: HttpClient): Promise<number | null> {
  const ask = async (path: string): Promise<unknown> => {
    const request = { method: 'GET', path, timeoutMs: ADMIN_TIMEOUT_MS, idempotent: true, retryServerErrors: false } as const;
    return (await http.exchange(request, readJson)).value;
  };
  const page = loadsSchema.safeParse(await ask('/v1/loads'));
  if (page.success) return page.data.loads.reduce((sum, load) => sum + load.num_running_reqs + load.num_waiting_reqs, 0);
  const old = oldLoadsSchema.safeParse(await ask('/get_load'));
  return old.success ? old.data.reduce((sum, load) => sum + load.num_reqs, 0) : null;
}

async function command(http: HttpClient, path: string, body: unknown): Promise<void> {
  const request = {
    method: 'POST',
    path,
    admin: true,
    body: () => jsonBody(body),
    timeoutMs: ADMIN_TIMEOUT_MS,
    idempotent: true,
  } as const;
  await http.fetch(request, readText);
}
