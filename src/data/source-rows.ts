// The rows of a source in its own order: tables one row group at a time, JSON records one by one.
import { stat } from 'node:fs/promises';
import { DataError } from '../errors.js';
import type { CellRow } from './cells.js';
import { sha256OfFile } from './hub/digest.js';
import { memoryPerGroupByte, openTable, type TableFile } from './parquet.js';
import { readRecords } from './records-file.js';
import type { DataSource, FileChoice, RecordContents, TableContents } from './source.js';
import type { SourceFiles } from './source-files.js';
import type { Place, SourceQuestion } from './source-question.js';

export interface DataFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}

export interface SourceRow {
  readonly place: Place;
  /** Null for a row that the filter leaves out. */
  readonly question: SourceQuestion | null;
}

export interface OpenSource {
  readonly rows: number;
  readonly files: readonly DataFile[];
  /** What the largest row group will need, above the process itself. */
  readonly memoryBytes: number;
  read(): AsyncGenerator<SourceRow>;
  close(): Promise<void>;
}

/** Finds and checks all data files (columns, readability) before a single picture is read. Throws DataError. */
export function openSource(source: DataSource, files: SourceFiles): Promise<OpenSource> {
  return source.contents.kind === 'table' ? openTables(source.contents, files) : openRecords(source.contents, files);
}

async function openTables(contents: TableContents, files: SourceFiles): Promise<OpenSource> {
  const tables: OpenTable[] = [];
  const dataFiles: DataFile[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(tables.map(({ table }) => table.close()));
  };
  try {
    for (const path of await chooseFiles(contents.files, files)) {
      const local = await locateRequired(path, files);
      const table = await openTable(local);
      tables.push({ path, table });
      checkColumns(contents, table, local);
      dataFiles.push(await describe(path, local));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    rows: tables.reduce((rows, { table }) => rows + table.rows, 0),
    files: dataFiles,
    memoryBytes: Math.max(...tables.map(({ table }) => table.largestGroupBytes)) * memoryPerGroupByte,
    async *read() {
      let row = 0;
      for (const { path, table } of tables) {
        const columns = columnsToRead(contents, table);
        for (let group = 0; group < table.groupCount; group++) {
          for (const values of await readGroup(table, group, columns, contents.columns.pictures)) {
            const place = { file: path, row: row++ };
            yield { place, question: contents.convert(values, place) };
          }
        }
      }
    },
    close,
  };
}

interface OpenTable {
  readonly path: string;
  readonly table: TableFile;
}

/** The pictures by themselves: read together with their neighbours, they would be copied once more. */
async function readGroup(table: TableFile, group: number, columns: readonly string[], pictures: string): Promise<CellRow[]> {
  const texts = await table.readGroup(
    group,
    columns.filter((name) => name !== pictures),
  );
  const images = await table.readGroup(group, [pictures]);
  return texts.map((row, i) => ({ ...row, ...images[i] }));
}

function checkColumns({ columns }: TableContents, table: TableFile, where: string): void {
  const present = new Set(table.columns.map(({ name }) => name));
  const missing = columns.required.filter((name) => !present.has(name));
  if (missing.length === 0) return;
  throw new DataError(`columns are missing: ${missing.join(', ')}`, {
    where,
    found: table.columns.map(({ description }) => description).join(', '),
    remedy: 'This is another file than expected, or the source has changed.',
  });
}

/** The declared columns that are there, and others that are cheap to keep. */
function columnsToRead({ columns }: TableContents, table: TableFile): string[] {
  const declared = [...columns.required, ...columns.optional];
  return table.columns.filter(({ name, plain }) => plain || declared.includes(name)).map(({ name }) => name);
}

async function openRecords(contents: RecordContents, files: SourceFiles): Promise<OpenSource> {
  // With the list at hand, each of the thousands of pictures takes one request instead of two.
  await files.list();
  const local = await locateRequired(contents.file, files);
  const rows = await readRecords(local);
  const dataFiles = [await describe(contents.file, local)];
  const details = new Map<unknown, CellRow>();
  const { details: companion } = contents;
  const companionPath = companion && (await files.locate(companion.file));
  if (companion && companionPath) {
    for (const record of await readRecords(companionPath)) details.set(record[companion.key], record);
    dataFiles.push(await describe(companion.file, companionPath));
  }
  return {
    rows: rows.length,
    files: dataFiles,
    memoryBytes: 0,
    async *read() {
      for (const [row, values] of rows.entries()) {
        const place = { file: contents.file, row };
        yield {
          place,
          question: contents.convert(values, place, companion ? (details.get(values[companion.key]) ?? null) : null),
        };
      }
    },
    close: async () => {},
  };
}

async function chooseFiles(choice: FileChoice, files: SourceFiles): Promise<readonly string[]> {
  if ('path' in choice) return [choice.path];
  const all = await files.list();
  const chosen = all.filter((path) => choice.matching.test(path) && !choice.except?.test(path)).sort();
  if (chosen.length > 0) return chosen;
  throw new DataError('no data file found', {
    where: files.description,
    expected: `files like ${choice.matching.source}`,
    found: all.length === 0 ? 'no files' : all.slice(0, 20).join(', '),
  });
}

async function locateRequired(path: string, files: SourceFiles): Promise<string> {
  const local = await files.locate(path);
  if (local !== null) return local;
  const all = await files.list().catch(() => []);
  throw new DataError('a data file is missing', {
    where: files.description,
    expected: path,
    found: all.length === 0 ? 'no such file' : all.slice(0, 20).join(', '),
    remedy: 'The source may have been rearranged; files that you already have can be given with --from.',
  });
}

async function describe(path: string, local: string): Promise<DataFile> {
  return { path, sizeBytes: (await stat(local)).size, sha256: await sha256OfFile(local) };
}
