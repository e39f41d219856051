// The data sets that are known by name: seven benchmarks in the order of the published table, then the training sets.
import type { DataSource } from '../src/data/source.js';
import { UsageError } from '../src/errors.js';
import { deepeyes } from './deepeyes.js';
import { fvqaTest } from './fvqa-test.js';
import { fvqaTrain } from './fvqa-train.js';
import { hrMmsearch } from './hr-mmsearch.js';
import { infoseek } from './infoseek.js';
import { livevqa } from './livevqa.js';
import { matSearch } from './mat-search.js';
import { mmsearch } from './mmsearch.js';
import { simplevqa } from './simplevqa.js';
import { visualprobe } from './visualprobe.js';

export const benchmarks: readonly DataSource[] = [mmsearch, hrMmsearch, fvqaTest, simplevqa, livevqa, matSearch, infoseek];

export const trainingSets: readonly DataSource[] = [fvqaTrain, deepeyes, visualprobe];

export const dataSources: readonly DataSource[] = [...benchmarks, ...trainingSets];

/** Throws UsageError that lists the known names. */
export function dataSource(name: string): DataSource {
  const source = dataSources.find((known) => known.name === name);
  if (source !== undefined) return source;
  throw new UsageError('no such data set', {
    found: name,
    expected: `one of: ${dataSources.map((known) => known.name).join(', ')}`,
  });
}
