// Compiles the embedded engine's kernels to kernels.wasm, both beside the sources (tsx, vitest) and beside the compiled JavaScript.
// The output depends on the sources and the pinned compiler alone.
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = 'src/engines/embedded/kernels.wasm';

const { error, stderr } = await asc.main([
  'src/engines/embedded/assembly/index.ts',
  ...['--baseDir', root],
  ...['--outFile', target],
  ...['--runtime', 'stub'],
  ...['--enable', 'simd'],
  ...['--optimizeLevel', '3'],
  ...['--shrinkLevel', '0'],
  '--noAssert',
  ...['--use', 'abort='],
]);
if (error) {
  process.stderr.write(`${stderr.toString()}${error.message}\n`);
  process.exitCode = 1;
} else {
  const compiled = join(root, 'dist', target);
  await mkdir(dirname(compiled), { recursive: true });
  await copyFile(join(root, target), compiled);
}
