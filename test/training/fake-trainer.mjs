// Speaks as train_rl.py does, trains nothing: counts steps in RUN/trainer/step and names the same weights each time.
// FAKE_DIVERGE=n makes step n diverge. RUN/trainer/ended says that it came to its end.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

const settingsFile = process.argv.at(-1);
const { model } = JSON.parse(readFileSync(settingsFile, 'utf8'));
const state = join(dirname(settingsFile), 'trainer/step');
mkdirSync(dirname(state), { recursive: true });
let step = existsSync(state) ? Number(readFileSync(state, 'utf8')) : 0;

const say = (reply) => console.log(JSON.stringify(reply));
say({ ready: true, step, weights: model });
for await (const line of createInterface({ input: process.stdin })) {
  const [header, ...trajectories] = readFileSync(join(JSON.parse(line).minibatch, 'rollouts.jsonl'), 'utf8')
    .trim()
    .split('\n');
  if (JSON.parse(header).step !== step) throw new Error(`expected rollouts of step ${step}`);
  if (step === Number(process.env.FAKE_DIVERGE)) {
    say({ diverged: 'loss nan', step });
    break;
  }
  writeFileSync(state, String(++step));
  const metrics = { loss: -1, gradient_norm: 2, trajectories: trajectories.length, score_alarms: step === 1 ? 3 : 0 };
  say({ step, weights: model, metrics, seconds: { update: 0.5 } });
}
writeFileSync(join(dirname(state), 'ended'), '');
