// Plays `python -m sglang.launch_server` for tests: a few log lines, then a server, a crash, or nothing.
import { createServer } from 'node:http';

const flags = process.argv.slice(2);
const flagValue = (flag) => flags[flags.indexOf(flag) + 1];
const behaviour = flagValue('--behaviour');
console.log(`launched with ${flags.join(' ')}`);
console.error(`retokenise: ${process.env.SGLANG_MM_AVOID_RETOKENIZE}`);

if (behaviour === 'crash') {
  for (let i = 0; i < 30; i++) console.error(`loading ${i}`);
  console.error('RuntimeError: no GPU');
  process.exit(3);
}
if (behaviour === 'serve' || behaviour === 'dead-scheduler') {
  const server = createServer((request, response) => {
    if (request.url === '/model_info') response.end('{"model_path":"m"}');
    else if (behaviour === 'serve') response.end('{"meta_info":{}}');
  });
  setTimeout(() => server.listen(Number(flagValue('--port')), '127.0.0.1'), 300);
}
if (behaviour === 'stubborn' || behaviour === 'silent') setInterval(() => undefined, 1000);
process.on('SIGTERM', () => {
  console.log('stopping');
  process.exit(0);
});
