// One trajectory as text: per turn the candidates with their scores, the choice, the action, what came back, and the times.
import { styleText } from 'node:util';
import Table from 'cli-table3';
import type { Episode, EpisodeTurn } from '../evaluation/records.js';
import { safeText } from './safe-text.js';

export interface TrajectoryRenderOptions {
  /** Candidate ids in scoring order. */
  readonly candidates: readonly string[];
  readonly colours: boolean;
}

const MARK = { true: 'right', false: 'wrong', null: 'no verdict' } as const;

/** One line: id, type, verdict, status, turns, answer. */
export function renderEpisodeLine({ id, type, correct, status, turns, answer, answers }: Episode): string {
  const verdict = MARK[String(correct) as keyof typeof MARK];
  const given =
    answer === null ? '' : ` · ${JSON.stringify(answer)}${correct === false ? ` (gold ${JSON.stringify(answers[0])})` : ''}`;
  return safeText(`${id} · ${type} · ${verdict} · ${status} · ${turns.length} turns${given}`);
}

export function renderEpisode(episode: Episode, { candidates, colours }: TrajectoryRenderOptions): string {
  const bold = (text: string): string => (colours ? styleText('bold', text) : text);
  const { timingMs, turns } = episode;
  const model = turns.reduce(
    (sum, turn) => sum + turn.timingMs.prefill + turn.timingMs.reasoning + turn.timingMs.action,
    timingMs.system,
  );
  return [
    bold(renderEpisodeLine(episode)),
    ...(episode.reason === null ? [] : [`stopped: ${safeText(episode.reason)}`]),
    `seed ${episode.seed} · ${episode.ids.length} ids, ${episode.positions} positions, ${episode.images.length} pictures`,
    `model ${ms(model)} of ${ms(timingMs.total)} in all`,
    ...turns.flatMap((turn, t) => ['', bold(`Turn ${t}`), renderTurn(turn, candidates)]),
  ].join('\n');
}

function renderTurn(turn: EpisodeTurn, candidates: readonly string[]): string {
  const { reasoning, action, observation, timingMs } = turn;
  const { selection } = reasoning;
  const margin = selection?.margin == null ? '' : `margin ${selection.margin.toFixed(4)} nats · `;
  return [
    selection === null ? `reasoning written by the model: ${reasoning.length} tokens` : selectionTable(selection, candidates),
    `history ${turn.history.positions} positions · ${margin}computed ${turn.prefill.computedTokens} + ${reasoning.usage.computedTokens} + ${action.usage.computedTokens} tokens`,
    `action       ${safeText(action.text)}${action.parsed.kind === 'invalid' ? ` — invalid: ${safeText(action.parsed.reason)}` : ''}`,
    ...(observation === null ? [] : [`observation  ${safeText(describeResult(observation.result))}`]),
    `prefill ${ms(timingMs.prefill)} · reasoning ${ms(timingMs.reasoning)} · action ${ms(timingMs.action)} · tool ${ms(timingMs.tool)} · rest ${ms(timingMs.orchestration)}`,
  ].join('\n');
}

function selectionTable(selection: NonNullable<EpisodeTurn['reasoning']['selection']>, candidates: readonly string[]): string {
  const table = new Table({
    head: ['', 'candidate', 'K', 'score', 'q'],
    colAligns: ['left', 'left', 'right', 'right', 'right'],
    style: { head: [], border: [], compact: true },
  });
  selection.scores.forEach((score, i) => {
    const mark = i === selection.index ? '→' : '';
    const probability = selection.probabilities[i] ?? 0;
    const length = selection.tokenLogprobs[i]?.length ?? 0;
    table.push([mark, safeText(candidates[i] ?? String(i)), length, score.toFixed(4), probability.toFixed(3)]);
  });
  return table.toString();
}

function describeResult(result: NonNullable<EpisodeTurn['observation']>['result']): string {
  if (result.kind === 'image') return `picture ${result.image.slice(0, 12)}`;
  if (result.kind === 'error') return `error: ${result.message}`;
  if (result.results.length === 0) return 'no results';
  return result.results
    .map(({ title, text, url }) => [title, text, url].filter((part) => part !== undefined).join(' — '))
    .join(' | ');
}

function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}
