// How new weights reach the engine. Embedded: a new one over the new folder, so that no cache can outlive its weights.
import type { HandOver } from '../training/loop.js';
import type { Engine } from '../types.js';
import { openEngine } from './engine.js';
import type { Environment } from './judge.js';
import type { Settings } from './options.js';
import type { Parts } from './wire.js';

export function reopeningHandOver(settings: Settings, parts: Parts, environment: Environment): HandOver {
  let engine: Engine | null = null;
  const close = async (): Promise<void> => {
    await engine?.close();
    engine = null;
  };
  return {
    async serve({ weights }) {
      await close();
      engine = await openEngine({ ...parts, settings, model: weights, environment, hooks: {} });
      return engine;
    },
    close,
  };
}
