// A field of a run as an option of a command, with its group in the help and its default.
import { Option } from 'commander';
import { DEFAULTS, FIELDS, type FieldName, flagOf } from './options.js';

/** Headings of the help, each with the fields below it; the order is that of FIELDS. */
const GROUPS: readonly (readonly [heading: string, first: FieldName])[] = [
  ['Questions:', 'benchmark'],
  ['Engine:', 'engine'],
  ['Agent:', 'model'],
  ['Tools:', 'textResults'],
  ['Judge:', 'judge'],
  ['Run:', 'seed'],
];

/** `note` is added to the help text. */
export function fieldOption(name: FieldName, note = ''): Option {
  const { kind, placeholder, help } = FIELDS[name];
  const known = name in DEFAULTS ? ` (default: ${DEFAULTS[name as keyof typeof DEFAULTS]})` : '';
  const flags = kind === 'switch' ? flagOf(name) : `${flagOf(name)} <${placeholder}>`;
  return new Option(flags, `${help}${help.includes('default') ? '' : known}${note}`).helpGroup(groupOf(name));
}

function groupOf(name: FieldName): string {
  const order = Object.keys(FIELDS);
  const own = GROUPS.filter(([, first]) => order.indexOf(first) <= order.indexOf(name)).at(-1);
  return own?.[0] ?? 'Options:';
}
