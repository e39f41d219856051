// A process of its own that fills a store: node --import tsx writer.ts FOLDER NAME COUNT. It prints each key once its entry is written.
import { type Entry, keyOf } from '../../../src/tools/recording/entry.js';
import { openStore } from '../../../src/tools/recording/store.js';

const [folder = '', name = '', count = '0'] = process.argv.slice(2);
const store = await openStore(folder, { create: true });
for (let i = 0; i < Number(count); i++) {
  const request = { kind: 'page' as const, provider: 'page', version: '1', subject: `https://example.org/${i}`, parameters: {} };
  const blob = await store.writeBlob(Buffer.alloc(100_000, `${name} ${i} `));
  const entry: Entry = {
    schema: 1,
    key: keyOf(request),
    request,
    status: i % 3 === 2 ? 'failed' : 'answered',
    results: [{ text: `by ${name} `.repeat(5_000) }],
    error: null,
    raw: [{ url: request.subject, status: 200, mediaType: 'text/html', sha256: blob }],
    latencyMs: 1,
    retrievedAt: '2026-01-01T00:00:00.000Z',
  };
  const held = await store.write(entry);
  process.stdout.write(`${entry.key} ${held.results[0]?.text?.slice(0, 4)}\n`);
}
