// Makes the trainer's Python environment in scripts/trainer/.venv, once; safe to run again.
import { existsSync } from 'node:fs';
import { execa } from 'execa';

const venv = 'scripts/trainer/.venv';
const run = execa({ stdio: 'inherit' });

if (!existsSync(`${venv}/bin/python`)) await run`python3 -m venv ${venv}`;
// torch first and by itself: a range in another package's needs could choose a build with gigabytes of GPU libraries.
await run`${venv}/bin/python -m pip install --quiet torch==2.13.0`;
await run`${venv}/bin/python -m pip install --quiet -e benchmarks/micro -e scripts/trainer[test]`;
