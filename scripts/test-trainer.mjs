// Runs the trainer's and the micro world's Python tests where `npm run setup:trainer` has made their environment.
import { existsSync } from 'node:fs';
import { execa } from 'execa';

const python = 'scripts/trainer/.venv/bin/python';

if (!existsSync(python)) {
  console.log('Python tests skipped: npm run setup:trainer makes their environment.');
} else {
  const { exitCode } = await execa({
    stdio: 'inherit',
    reject: false,
  })`${python} -m pytest -q scripts/trainer/tests benchmarks/micro/tests`;
  process.exitCode = exitCode ?? 1;
}
