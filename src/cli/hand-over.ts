// How new weights reach the engine. Embedded, and an SGLang server of our own: a new one over the new folder, so that no cache can
// outlive its weights. SGLang servers that run already: an update from disk, checked with a picture.
import { updateWeights } from '../engines/sglang/weight-update.js';
import type { HandOver } from '../training/loop.js';
import { createVisionProbe } from '../training/vision-probe.js';
import type { Engine } from '../types.js';
import { engineKeys, openEngine } from './engine.js';
import type { Environment } from './judge.js';
import type { Settings } from './options.js';
import type { Parts } from './wire.js';

export function createHandOver(settings: Settings, parts: Parts, environment: Environment): HandOver {
  const { engine: name, engineUrl: urls } = settings;
  const probe = createVisionProbe(parts.tokenizer, parts.candidates);
  let engine: Engine | null = null;
  const close = async (): Promise<void> => {
    await engine?.close();
    engine = null;
  };
  return {
    async serve({ step, weights }) {
      await close();
      const running = name === 'sglang' && urls !== undefined;
      if (running) await updateWeights({ urls, folder: weights, version: `step-${step}`, ...engineKeys(environment) });
      // A new client has a new namespace in the servers' prefix caches.
      engine = await openEngine({ ...parts, settings, model: weights, environment, hooks: {} });
      if (running) await probe.check(engine);
      return engine;
    },
    close,
  };
}
