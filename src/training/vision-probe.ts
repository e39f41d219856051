// Finds vision features that outlive their weights. SGLang keeps a picture's features over an update, and neither its answer nor a flush
// tells (seen with 0.5.13 and 0.5.18). A picture that was scored before all updates is compared with a twin, one square and one level apart,
// that the server has never seen: fresh features give both the same scores, stale ones give the old picture those of older weights.
import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { Context } from '../agent/context.js';
import { EngineError } from '../errors.js';
import type { Candidate, Engine, Image, Tokenizer } from '../types.js';

export interface VisionProbe {
  /** Throws EngineError with the remedy when old features are served. */
  check(engine: Engine): Promise<void>;
}

const SIDE_PX = 256;
/** A square, because servers know pictures by their resized pixels, in which a single pixel would drown. */
const SQUARE_PX = 16;
/** Mean log-probs of a candidate differ by less for no reason, in nats. */
const NOISE_FLOOR = 0.05;
const VISION = '<|vision_start|><|image_pad|><|vision_end|>';

export function createVisionProbe(tokenizer: Tokenizer, candidates: readonly Candidate[], noiseFloor = NOISE_FLOOR): VisionProbe {
  const ids = tokenizer.encode(`<|im_start|>user\nWhat is it?\n${VISION}<|im_end|>\n<|im_start|>assistant\n`);
  let updates = 0;
  const scores = async (engine: Engine, name: string, image: Image): Promise<number[]> => {
    const { geometry } = await engine.describe();
    const context = new Context(`vision-probe-${name}-${updates}`, geometry, tokenizer.idOf('<|image_pad|>'));
    context.append(ids, [image]);
    const { rows } = await engine.score(
      context,
      candidates.map((candidate) => candidate.ids),
    );
    await engine.release(context.trajectory);
    return rows.map((row) => row.reduce((sum, { logprob }) => sum + logprob, 0) / row.length);
  };
  return {
    async check(engine) {
      const known = await scores(engine, 'known', await picture(0));
      const twin = await scores(engine, 'twin', await picture(++updates));
      const gap = Math.max(...known.map((value, i) => Math.abs(value - (twin[i] ?? Number.NaN))));
      if (gap < noiseFloor) return;
      throw new EngineError('the engine serves vision features of older weights', {
        expected: `the same scores for a picture and its twin, to ${noiseFloor} nats`,
        found: `${gap.toFixed(4)} nats apart`,
        remedy: 'Start the server with SGLANG_VLM_CACHE_SIZE_MB=0, restart it after each update, or freeze the vision tower.',
      });
    },
  };
}

/** A colour gradient; in picture `variant` > 0 a square of its own is one level brighter, after a full round two levels, and so on. */
async function picture(variant: number): Promise<Image> {
  const perRow = SIDE_PX / SQUARE_PX;
  const [square, level] = [variant % perRow ** 2, Math.ceil(variant / perRow ** 2)];
  const pixels = new Uint8Array(SIDE_PX * SIDE_PX * 3);
  for (let y = 0; y < SIDE_PX; y++) {
    for (let x = 0; x < SIDE_PX; x++) {
      const inside = Math.floor(y / SQUARE_PX) * perRow + Math.floor(x / SQUARE_PX) === square;
      pixels.set([x, y, ((x * y) % 251) + (inside ? level : 0)], 3 * (y * SIDE_PX + x));
    }
  }
  const bytes = await sharp(pixels, { raw: { width: SIDE_PX, height: SIDE_PX, channels: 3 } })
    .png()
    .toBuffer();
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { sha256, bytes, mediaType: 'image/png', width: SIDE_PX, height: SIDE_PX };
}
