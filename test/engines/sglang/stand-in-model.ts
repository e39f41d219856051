// The stand-in's model: an Engine behind SGLang's view of prompts (unexpanded ids and pictures in, expanded positions out), with
// a prefix cache that counts as the real one does.
import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { imageTokenCount } from '../../../src/media/geometry.js';
import type { Engine, EngineInfo, Generation, Image, Sampling, TokenContext, TokenLogprob } from '../../../src/types.js';

export interface Prompt {
  readonly trajectory: string;
  readonly ids: readonly number[];
  readonly images: readonly Image[];
}

/** One expanded position: its id, and which sent id it came from. */
interface Position {
  readonly id: number;
  readonly sent: number;
  readonly image: number | null;
}

export type Entry = [number | null, number, null];

export class StandInModel {
  readonly #engine: Engine;
  readonly #info: EngineInfo;
  readonly #imagePadId: number;

  constructor(engine: Engine, info: EngineInfo, imagePadId: number) {
    this.#engine = engine;
    this.#info = info;
    this.#imagePadId = imagePadId;
  }

  /** Surplus pictures are dropped; pads without any picture are ordinary tokens. */
  expand({ ids, images }: Prompt): Position[] {
    let next = 0;
    return ids.flatMap((id, sent): Position[] => {
      const image = id === this.#imagePadId ? images[next] : undefined;
      if (!image) return [{ id, sent, image: null }];
      const index = next++;
      return Array.from({ length: imageTokenCount(image.width, image.height, this.#info.geometry) }, () => ({
        id,
        sent,
        image: index,
      }));
    });
  }

  /** Entries of positions start … end; all rows whose text lies behind one common history are scored together. */
  async logprobs(prompts: readonly Prompt[], start: number, signal: AbortSignal): Promise<Entry[][]> {
    const rows = prompts.map((prompt) => this.expand(prompt));
    const first = prompts[0] as Prompt;
    const cut = rows[0]?.[start + 1]?.sent ?? first.ids.length;
    const together =
      rows.every((row) => row.slice(start + 1).every(({ image }) => image === null)) &&
      prompts.every(({ ids }) => sameHead(ids, first.ids, cut));
    if (together && start + 1 < (rows[0]?.length ?? 0)) {
      const scoring = await this.#engine.score(
        this.#context(first, cut),
        prompts.map(({ ids }) => ids.slice(cut)),
        { signal },
      );
      return scoring.rows.map((row, i) => [
        this.#entry(null, rows[i]?.[start]),
        ...row.map(({ logprob, id }): Entry => [logprob, this.#shown(id), null]),
      ]);
    }
    return Promise.all(prompts.map((prompt, i) => this.#separately(prompt, rows[i] ?? [], start, signal)));
  }

  async generate(
    prompt: Prompt,
    sampling: Sampling,
    signal: AbortSignal,
    onToken: (token: TokenLogprob) => void,
  ): Promise<Generation> {
    return this.#engine.generate(this.#context(prompt, prompt.ids.length), sampling, { signal, onToken });
  }

  async prefill(prompt: Prompt, signal: AbortSignal): Promise<void> {
    await this.#engine.prefill(this.#context(prompt, prompt.ids.length), { signal });
  }

  /** Cache keys per position: pictures count by content. */
  keys(prompt: Prompt): string[] {
    return this.expand(prompt).map(({ id, image }) => (image === null ? String(id) : `${prompt.images[image]?.sha256}`));
  }

  /** Run by run of text; picture positions have some number that nobody may use. */
  async #separately(prompt: Prompt, row: readonly Position[], start: number, signal: AbortSignal): Promise<Entry[]> {
    const entries: Entry[] = row.length > start ? [this.#entry(null, row[start])] : [];
    for (let from = start + 1; from < row.length; ) {
      let end = from;
      while (end < row.length && row[end]?.image === null) end++;
      if (end === from) {
        entries.push(this.#entry(-1, row[from++]));
        continue;
      }
      const [first, last] = [row[from]?.sent ?? 0, row[end - 1]?.sent ?? 0];
      const { rows } = await this.#engine.score(this.#context(prompt, first), [prompt.ids.slice(first, last + 1)], { signal });
      for (const { logprob, id } of rows[0] ?? []) entries.push([logprob, this.#shown(id), null]);
      from = end;
    }
    return entries;
  }

  #context(prompt: Prompt, cut: number): TokenContext {
    const ids = prompt.ids.slice(0, cut);
    const pads = ids.filter((id) => id === this.#imagePadId).length;
    const images = prompt.images.slice(0, pads);
    return { trajectory: prompt.trajectory, ids, images, length: this.expand({ ...prompt, ids, images }).length };
  }

  #entry(logprob: number | null, position: Position | undefined): Entry {
    return [logprob, position?.image === null ? this.#shown(position.id) : 0, null];
  }

  /** The server shows ids from the vocabulary's last on as 0, where its picture hashes begin. */
  #shown(id: number): number {
    return id < this.#info.vocabularySize - 1 ? id : 0;
  }
}

/** Which prefixes have been computed, per namespace: a set of prefix hashes that is closed under shortening. */
export class PrefixCache {
  readonly #known = new Map<string, Set<number>>();

  match(namespace: string, keys: readonly string[]): number {
    const known = this.#known.get(namespace);
    if (!known) return 0;
    const at = prefixHashes(keys).findIndex((hash) => !known.has(hash));
    return at === -1 ? keys.length : at;
  }

  insert(namespace: string, keys: readonly string[]): void {
    const known = this.#known.get(namespace) ?? new Set<number>();
    this.#known.set(namespace, known);
    for (const hash of prefixHashes(keys)) known.add(hash);
  }

  clear(): void {
    this.#known.clear();
  }
}

/** A picture from a data URI, named by its pixels as the real cache names it by its features. */
export async function decodeImage(item: string): Promise<Image> {
  const bytes = Buffer.from(item.slice(item.indexOf(',') + 1), 'base64');
  const { width, height } = await sharp(bytes).metadata();
  return {
    sha256: createHash('sha256').update(bytes).digest('hex'),
    bytes,
    mediaType: 'image/png',
    width: width ?? 0,
    height: height ?? 0,
  };
}

function sameHead(a: readonly number[], b: readonly number[], length: number): boolean {
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function prefixHashes(keys: readonly string[]): number[] {
  let [high, low] = [0x811c9dc5, 0x1b873593];
  return keys.map((key) => {
    for (let i = 0; i < key.length; i++) {
      high = Math.imul(high ^ key.charCodeAt(i), 0x01000193);
      low = Math.imul(low ^ key.charCodeAt(i), 0x85ebca6b);
    }
    high = Math.imul(high ^ 31, 0x01000193);
    low = Math.imul(low ^ 17, 0xc2b2ae35) ^ (low >>> 15);
    return (high & 0x1fffff) * 2 ** 32 + (low >>> 0);
  });
}
