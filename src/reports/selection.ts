// What was selected, whether the action fits the selected entry, and where the choice differs from the benchmark's.
import type { Episode } from '../evaluation/records.js';
import { type Distribution, describeDistribution } from '../evaluation/statistics.js';
import type { LibraryEntry } from '../types.js';

/** A share of turns. It has no interval: turns of one question are not independent. */
export interface TurnShare {
  readonly turns: number;
  readonly n: number;
  readonly share: number | null;
}

export interface SelectionSummary {
  /** Finished turns that count here. */
  readonly turns: number;
  /** In library order. */
  readonly candidates: readonly (TurnShare & { readonly candidate: string })[];
  /** Best score minus second best, in nats per turn. */
  readonly margin: Distribution;
  /** Turns whose action is among the expected actions of the selected entry. */
  readonly actionAgreement: TurnShare;
  /** Turns on the benchmark's reference path: every earlier turn chose as expected. */
  readonly expected: TurnShare & {
    /** Turns by expected and chosen candidate, both in library order. */
    readonly confusion: Readonly<Record<string, Readonly<Record<string, number>>>>;
  };
}

export function createSelection(entries: readonly Pick<LibraryEntry, 'id' | 'expectedActions'>[]) {
  const fitting = new Map(entries.map(({ id, expectedActions }) => [id, new Set(expectedActions)]));
  const chosen = new Map(entries.map(({ id }) => [id, 0]));
  const confusion = new Map(entries.map(({ id }) => [id, new Map(entries.map((entry) => [entry.id, 0]))]));
  const margins: number[] = [];
  let turns = 0;
  let agreeing = 0;
  let withExpectation = 0;

  function addTurn({ reasoning, action }: Episode['turns'][number]): void {
    const { selection } = reasoning;
    if (selection === null) return;
    turns++;
    increase(chosen, selection.candidate);
    if (selection.margin !== null) margins.push(selection.margin);
    const expectedActions = fitting.get(selection.candidate);
    if (expectedActions === undefined || expectedActions.size === 0) return;
    withExpectation++;
    if (expectedActions.has(action.parsed.kind)) agreeing++;
  }

  /** Counts the turns up to and including the first that leaves the reference path. */
  function addPath(episode: Episode): void {
    for (const [t, wanted] of (episode.expected ?? []).entries()) {
      const candidate = episode.turns[t]?.reasoning.selection?.candidate;
      if (candidate === undefined) return;
      const row = confusion.get(wanted) ?? new Map<string, number>();
      confusion.set(wanted, row);
      increase(row, candidate);
      if (candidate !== wanted) return;
    }
  }

  return {
    add(episode: Episode): void {
      episode.turns.forEach(addTurn);
      addPath(episode);
    },
    result(): SelectionSummary {
      const onPath = [...confusion.values()].reduce((sum, row) => sum + total(row), 0);
      const asExpected = [...confusion].reduce((sum, [wanted, row]) => sum + (row.get(wanted) ?? 0), 0);
      return {
        turns,
        candidates: [...chosen].map(([candidate, count]) => ({ candidate, ...share(count, turns) })),
        margin: describeDistribution(margins),
        actionAgreement: share(agreeing, withExpectation),
        expected: {
          ...share(asExpected, onPath),
          confusion: Object.fromEntries([...confusion].map(([wanted, row]) => [wanted, Object.fromEntries(row)])),
        },
      };
    },
  };
}

function share(turns: number, n: number): TurnShare {
  return { turns, n, share: n === 0 ? null : turns / n };
}

function increase(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function total(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}
