// Python pickles read as plain data. Nothing in a pickle is executed: classes are names from a list, their instances inert records.
import { DataError } from '../../errors.js';
import { type ByteReader, createByteReader } from './byte-reader.js';

export type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | PickleValue[]
  | Map<PickleValue, PickleValue>
  | PickleClass
  | PickleObject;

/** A class or function that the pickle names. */
export class PickleClass {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** What Python would have built by calling the class; here only what it would have been called with. */
export class PickleObject {
  readonly className: string;
  readonly args: readonly PickleValue[];
  state: PickleValue = null;

  constructor(className: string, args: readonly PickleValue[]) {
    this.className = className;
    this.args = args;
  }
}

class Mark {}

interface Machine {
  readonly read: ByteReader;
  readonly allowed: ReadonlySet<string>;
  readonly memo: Map<number, PickleValue>;
  stack: (PickleValue | Mark)[];
}

/**
 * The pickle's value. `allowed` are names of classes, as "module name"; any other, and any instruction that a pickle of dictionaries,
 * lists, texts, bytes and numbers does not need, is refused with a DataError.
 */
export function readPickle(bytes: Uint8Array, allowed: readonly string[], where: string): PickleValue {
  const read = createByteReader(bytes, where);
  const machine: Machine = { read, allowed: new Set(allowed), memo: new Map(), stack: [] };
  for (;;) {
    const position = read.position();
    const code = read.uint8();
    if (code === stop) return pop(machine);
    const step = steps.get(code);
    if (step === undefined) {
      throw new DataError('an instruction that is not allowed in a pickle of data', {
        where: `${where}, byte ${position}`,
        found: `0x${code.toString(16).padStart(2, '0')}`,
      });
    }
    step(machine);
  }
}

const stop = '.'.charCodeAt(0);

type Step = (machine: Machine) => void;

const steps: ReadonlyMap<number, Step> = new Map<number, Step>([
  // Frame and protocol say nothing about the value.
  [0x80, ({ read }) => void read.uint8()],
  [0x95, ({ read }) => void read.bytes(8)],
  [op('('), ({ stack }) => void stack.push(new Mark())],
  [op('0'), (machine) => void machine.stack.pop()],
  [op('1'), (machine) => void popToMark(machine)],
  [op('2'), (machine) => push(machine, top(machine))],
  [op('N'), (machine) => push(machine, null)],
  [0x88, (machine) => push(machine, true)],
  [0x89, (machine) => push(machine, false)],
  [op('J'), (machine) => push(machine, machine.read.int32())],
  [op('K'), (machine) => push(machine, machine.read.uint8())],
  [op('M'), (machine) => push(machine, machine.read.uint16())],
  [0x8a, (machine) => push(machine, machine.read.long(machine.read.uint8()))],
  [0x8b, (machine) => push(machine, machine.read.long(machine.read.uint32()))],
  [op('G'), (machine) => push(machine, machine.read.float64())],
  [0x8c, (machine) => push(machine, machine.read.text(machine.read.uint8()))],
  [op('X'), (machine) => push(machine, machine.read.text(machine.read.uint32()))],
  [0x8d, (machine) => push(machine, machine.read.text(machine.read.uint64()))],
  [op('U'), (machine) => push(machine, machine.read.text(machine.read.uint8()))],
  [op('T'), (machine) => push(machine, machine.read.text(machine.read.uint32()))],
  [op('C'), (machine) => push(machine, machine.read.bytes(machine.read.uint8()))],
  [op('B'), (machine) => push(machine, machine.read.bytes(machine.read.uint32()))],
  [0x8e, (machine) => push(machine, machine.read.bytes(machine.read.uint64()))],
  [0x96, (machine) => push(machine, machine.read.bytes(machine.read.uint64()))],
  [op(']'), (machine) => push(machine, [])],
  [op(')'), (machine) => push(machine, [])],
  [op('}'), (machine) => push(machine, new Map())],
  [op('t'), (machine) => push(machine, popToMark(machine))],
  [op('l'), (machine) => push(machine, popToMark(machine))],
  [op('d'), (machine) => setItems(machine, popToMark(machine), push(machine, new Map()))],
  [0x85, (machine) => push(machine, [pop(machine)])],
  [0x86, (machine) => push(machine, popMany(machine, 2))],
  [0x87, (machine) => push(machine, popMany(machine, 3))],
  [op('a'), (machine) => append(machine, [pop(machine)])],
  [op('e'), (machine) => append(machine, popToMark(machine))],
  [op('s'), (machine) => setItems(machine, popMany(machine, 2), top(machine))],
  [op('u'), (machine) => setItems(machine, popToMark(machine), top(machine))],
  [0x94, (machine) => void machine.memo.set(machine.memo.size, top(machine))],
  [op('q'), (machine) => void machine.memo.set(machine.read.uint8(), top(machine))],
  [op('r'), (machine) => void machine.memo.set(machine.read.uint32(), top(machine))],
  [op('h'), (machine) => push(machine, recall(machine, machine.read.uint8()))],
  [op('j'), (machine) => push(machine, recall(machine, machine.read.uint32()))],
  [op('c'), (machine) => push(machine, classNamed(machine, machine.read.line(), machine.read.line()))],
  [0x93, (machine) => push(machine, classNamed(machine, ...(popMany(machine, 2) as [PickleValue, PickleValue])))],
  [op('R'), (machine) => push(machine, instantiate(machine, popMany(machine, 2)))],
  [0x81, (machine) => push(machine, instantiate(machine, popMany(machine, 2)))],
  [op('b'), (machine) => setState(machine, pop(machine))],
]);

function op(character: string): number {
  return character.charCodeAt(0);
}

function push<T extends PickleValue>({ stack }: Machine, value: T): T {
  stack.push(value);
  return value;
}

function pop(machine: Machine): PickleValue {
  const value = top(machine);
  machine.stack.pop();
  return value;
}

function top({ stack, read }: Machine): PickleValue {
  const value = stack.at(-1);
  if (value === undefined || value instanceof Mark) throw read.malformed('a value on the stack');
  return value;
}

function popMany(machine: Machine, count: number): PickleValue[] {
  const values = Array.from({ length: count }, () => pop(machine));
  return values.reverse();
}

function popToMark({ stack, read }: Machine): PickleValue[] {
  const mark = stack.findLastIndex((value) => value instanceof Mark);
  if (mark === -1) throw read.malformed('a mark on the stack');
  return stack.splice(mark).slice(1) as PickleValue[];
}

function append(machine: Machine, items: readonly PickleValue[]): void {
  const list = top(machine);
  if (!Array.isArray(list)) throw machine.read.malformed('a list to append to');
  for (const item of items) list.push(item);
}

function setItems(machine: Machine, items: readonly PickleValue[], target: PickleValue): void {
  if (!(target instanceof Map) || items.length % 2 !== 0) throw machine.read.malformed('a dictionary and pairs for it');
  for (let i = 0; i < items.length; i += 2) target.set(items[i] ?? null, items[i + 1] ?? null);
}

function recall({ memo, read }: Machine, index: number): PickleValue {
  const value = memo.get(index);
  if (value === undefined) throw read.malformed('a remembered value');
  return value;
}

function classNamed({ allowed, read }: Machine, module: PickleValue, name: PickleValue): PickleClass {
  const found = `${module} ${name}`;
  if (typeof module === 'string' && typeof name === 'string' && allowed.has(found)) return new PickleClass(found);
  throw new DataError('the pickle names a class that is not allowed', {
    where: read.where,
    found,
    expected: `one of: ${[...allowed].join(', ')}`,
    remedy: 'Nothing of it was executed. Convert the file with the program that wrote it.',
  });
}

function instantiate({ read }: Machine, [target, args]: readonly PickleValue[]): PickleObject {
  if (!(target instanceof PickleClass) || !Array.isArray(args)) throw read.malformed('a class and its arguments');
  return new PickleObject(target.name, args);
}

function setState(machine: Machine, state: PickleValue): void {
  const object = top(machine);
  if (!(object instanceof PickleObject)) throw machine.read.malformed('an object to fill');
  object.state = state;
}
