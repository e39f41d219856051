import { Command } from 'commander';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { addPowerCommand } from '../../src/cli/commands/power.js';
import { mcNemarPower, questionsNeeded } from '../../src/evaluation/paired-power.js';

describe('the power of the exact McNemar test', () => {
  // Summed with scipy.stats.binom and binomtest of SciPy 1.17.1
  it.each([
    [100, 0.2, 0.1, 0.5444454279351761],
    [400, 0.1, 0.05, 0.8739896099244431],
    [200, 0.3, 0.1, 0.7034035327062698],
    [50, 0.5, 0, 0.02958625228093339],
  ])('for %d questions, %d discordant, difference %d is SciPy’s', (n, discordant, difference, power) => {
    expect(mcNemarPower(n, { discordant, difference })).toBeCloseTo(power, 9);
  });

  it('is reached by the n it asks for and not by one less', () => {
    const options = { discordant: 0.1, difference: 0.05 };
    const n = questionsNeeded(0.8, options)!;
    expect(mcNemarPower(n, options)).toBeGreaterThanOrEqual(0.8);
    expect(mcNemarPower(n - 1, options)).toBeLessThan(0.8);
  });

  it('is never had for no difference, and refuses shares that cannot be', () => {
    expect(questionsNeeded(0.8, { discordant: 0.01, difference: 0 })).toBeNull();
    expect(() => mcNemarPower(10, { discordant: 0.1, difference: 0.2 })).toThrow(RangeError);
  });
});

describe('ssr power', () => {
  afterEach(() => vi.restoreAllMocks());
  const run = (...argv: string[]): string => {
    let output = '';
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      output += String(text);
      return true;
    });
    const program = new Command('ssr').exitOverride();
    addPowerCommand(program);
    program.parse(['node', 'ssr', 'power', ...argv]);
    return output;
  };

  it('says how many questions a difference needs, and what a number of them can tell', () => {
    expect(run('--difference', '5', '--discordant', '10', '--questions', '400')).toBe(
      '400 questions find the difference with a power of 87.4%.\n',
    );
    expect(run('--difference', '2', '--discordant', '10')).toBe('2043 questions find the difference with a power of 80%.\n');
  });

  it('refuses a difference larger than the share of questions that differ', () => {
    expect(() => run('--difference', '12', '--discordant', '10')).toThrow('--difference');
  });
});
