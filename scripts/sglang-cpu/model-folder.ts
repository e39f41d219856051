// A copy of a checkpoint folder with the two files that SGLang's processor wants and the engines of this project do not.
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Only so that the processor can be built: no video is ever sent. */
const VIDEO_PREPROCESSOR = {
  video_processor_type: 'Qwen3VLVideoProcessor',
  patch_size: 16,
  temporal_patch_size: 2,
  merge_size: 2,
  size: { shortest_edge: 16384, longest_edge: 16384 },
  image_mean: [0.5, 0.5, 0.5],
  image_std: [0.5, 0.5, 0.5],
};

/** Never rendered: prompts are sent as ids. */
const CHAT_TEMPLATE =
  "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}";

export async function servableCopy(model: string, target: string): Promise<string> {
  await mkdir(target, { recursive: true });
  await cp(model, target, { recursive: true });
  await writeFile(join(target, 'video_preprocessor_config.json'), JSON.stringify(VIDEO_PREPROCESSOR, null, 2));
  await writeFile(join(target, 'chat_template.jinja'), CHAT_TEMPLATE);
  return target;
}

/** The same weights with room for longer histories, which they were never trained on, and no token that ends a text by itself. */
export async function longContextCopy(model: string, target: string, positions: number): Promise<string> {
  await servableCopy(model, target);
  await edit(join(target, 'config.json'), (config) => {
    const text = config.text_config as Record<string, unknown>;
    Object.assign(text, { max_position_embeddings: positions, eos_token_id: config.video_token_id });
  });
  await edit(join(target, 'generation_config.json'), (config) => {
    config.eos_token_id = null;
  });
  await edit(join(target, 'tokenizer_config.json'), (config) => {
    Object.assign(config, { eos_token: '<|video_pad|>', model_max_length: positions });
  });
  return target;
}

async function edit(file: string, change: (config: Record<string, unknown>) => void): Promise<void> {
  const config = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
  change(config);
  await writeFile(file, JSON.stringify(config, null, 2));
}
