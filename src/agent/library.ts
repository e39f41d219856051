// The reasoning library R = {r_1..r_N}: reusable texts in scoring order, each tokenised alone and once.
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { UsageError } from '../errors.js';
import type { Candidate, Dialect, LibraryEntry, Tokenizer } from '../types.js';
import { topLevelKeys } from './json-keys.js';

export interface Library {
  readonly name: string;
  readonly version: string;
  readonly entries: readonly LibraryEntry[];
}

const ACTIONS = ['answer', 'image_search_tool', 'text_search_tool', 'image_zoom_in_tool'] as const;
/** Tags that delimit reasoning, tool calls or answers in any agent format; a candidate that holds one would forge an action. */
const FORBIDDEN = /<\/?\s*(?:thinking|think|reason|tool_call|tool_response|answer)\s*>|<\|[^|<>]*\|>/i;

const librarySchema = z.looseObject({
  name: z.string().min(1),
  version: z.union([z.string(), z.number()]).optional(),
  note: z.string().optional(),
  entries: z.record(
    z.string(),
    z.looseObject({
      text: z.string(),
      expected_actions: z.array(z.enum(ACTIONS)),
      created_at: z.string().nullish(),
    }),
  ),
});

/** Reads a library file; throws UsageError that says which entry is wrong and how. */
export async function loadLibrary(path: string): Promise<Library> {
  const source = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError('cannot read the library', {
      where: path,
      expected: 'a JSON file',
      found: error.code ?? error.message,
      cause: error,
    });
  });
  return parseLibrary(source.replace(/^\ufeff/, ''), path);
}

/** Parses and checks the text of a library file; `where` names it in errors. */
export function parseLibrary(source: string, where: string): Library {
  const fail = (summary: string, found?: string, remedy?: string): never => {
    throw new UsageError(summary, {
      where,
      ...(found === undefined ? {} : { found }),
      ...(remedy === undefined ? {} : { remedy }),
    });
  };
  let json: unknown;
  try {
    json = JSON.parse(source);
  } catch (error) {
    return fail('not JSON', error instanceof Error ? error.message : String(error));
  }
  const parsed = librarySchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return fail(`${issue?.path.join('.') || 'library'}: ${issue?.message ?? 'malformed'}`);
  }
  const { name, version, entries } = parsed.data;
  const keys = topLevelKeys(source, 'entries');
  const repeated = keys.find((key, i) => keys.indexOf(key) !== i);
  if (repeated !== undefined) fail(`entries.${repeated}: id occurs twice`, undefined, 'Give each entry its own id.');
  if (keys.length === 0) fail('entries: no entries', undefined, 'A library needs at least one.');
  const lost = keys.find((key) => !Object.hasOwn(entries, key));
  if (lost !== undefined)
    fail(`entries.${lost}: this id cannot be read`, undefined, 'Give the entry another id, and write "entries" once.');
  for (const [id, { text }] of Object.entries(entries)) {
    if (text.trim() === '') fail(`entries.${id}.text: blank`);
    const tag = FORBIDDEN.exec(text)?.[0];
    if (tag !== undefined) fail(`entries.${id}.text: forbidden tag`, tag, 'Write the bare text; the harness adds its own tags.');
  }
  return {
    name,
    version: String(version ?? ''),
    // In the file's order: JavaScript would put ids that look like integers first.
    entries: keys.map((id) => ({ id, text: entries[id]?.text ?? '', expectedActions: entries[id]?.expected_actions ?? [] })),
  };
}

/** Wraps and tokenises each entry alone, once; throws UsageError for a text that has no tokens. */
export function tokeniseLibrary(library: Library, dialect: Dialect, tokenizer: Tokenizer): Candidate[] {
  return library.entries.map((entry) => ({ ...entry, ids: tokenizer.encode(dialect.wrapReasoning(entry.text)) }));
}
