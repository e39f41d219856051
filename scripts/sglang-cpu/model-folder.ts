// A copy of a checkpoint folder with the two files that SGLang's processor wants and the engines of this project do not.
import { cp, mkdir, writeFile } from 'node:fs/promises';
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
