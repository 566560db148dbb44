import { Command, Option } from 'commander';
import { describe, expect, it } from 'vitest';
import { helpAsOption, pflagArguments } from '../../../src/cli/pflag-arguments.ts';
import { runCommand } from '../../support/run-cli.ts';

const program = new Command('top').option('-v, --v <level>');
program
  .command('init')
  .option('--dry-run')
  .option('-f, --force')
  .option('--no-confirm')
  .option('--set <setting>')
  .option('-o, --output <format>')
  .addOption(new Option('--serve [address]').preset('free'));

const read = (line: string): string => pflagArguments(line.split(' '), program).join(' ');

describe('a command line in the syntax of pflag', () => {
  it.each([
    ['init --dry-run=true', 'init --dry-run'],
    ['init --dry-run=T --force=1', 'init --dry-run --force'],
    ['init --force=false', 'init'],
    ['init -f=true', 'init -f'],
    ['init -f --force=false', 'init'],
    ['init --force=false --force', 'init --force'],
    ['init --confirm=false', 'init --no-confirm'],
    ['init --confirm=true', 'init'],
    ['init --no-confirm=false', 'init'],
    ['init --no-confirm --confirm=true', 'init'],
    ['init -v=5 -o=json', 'init -v5 -ojson'],
    ['-v=5 init', '-v5 init'],
    ['init -fv=5', 'init -f -v5'],
    ['init -fv5', 'init -f -v5'],
    ['init -fv 5', 'init -f -v 5'],
    ['init -vf=5', 'init -vf=5'],
    ['init -fx', 'init -f -x'],
    ['init --v=5 --output=json', 'init --v=5 --output=json'],
    ['init --set --dry-run=true', 'init --set --dry-run=true'],
    ['init --set=--force=false', 'init --set=--force=false'],
    ['init --serve plan.json', 'init --serve=free plan.json'],
    ['init --serve=:8080 plan.json', 'init --serve=:8080 plan.json'],
    ['init -- --dry-run=true -v=5', 'init -- --dry-run=true -v=5'],
    ['init --unknown=true -x=1', 'init --unknown=true -x=1'],
    ['init a=b -', 'init a=b -'],
  ])('%s', (line, expected) => {
    expect(read(line)).toBe(expected);
  });

  it('refuses a boolean that is neither true nor false', () => {
    expect(() => read('init --dry-run=maybe')).toThrow('--dry-run="maybe" is not a boolean');
    expect(() => read('init --dry-run=')).toThrow('--dry-run="" is not a boolean');
  });

  it('accepts help as a command', () => {
    expect(helpAsOption(['help', 'token', 'create'])).toEqual(['token', 'create', '--help']);
    expect(helpAsOption(['help'])).toEqual(['--help']);
    expect(helpAsOption(['token', 'help'])).toEqual(['token', 'help']);
  });
});

describe('kubeletadm', () => {
  it('prints help for a command, and names an unknown command', async () => {
    expect(await runCommand(['help'])).toEqual(await runCommand(['--help']));
    expect(await runCommand(['help', 'token', 'create'])).toEqual(await runCommand(['token', 'create', '--help']));
    const { code, stderr } = await runCommand(['help', 'tokn']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('unknown command tokn. Did you mean token?')]);
  });

  it('accepts values of booleans and of short options', async () => {
    const generate = (...more: readonly string[]) => runCommand(['token', 'generate', ...more]);
    expect(await generate('-v=5')).toMatchObject({ code: 0, stderr: '' });
    for (const joined of [['-yv=5'], ['-yv5'], ['-yfv', '5']])
      expect((await runCommand(['upgrade', 'apply', ...joined, '--dry-run', 'v1'])).stderr).not.toContain('unknown option');
    const create = await runCommand(['token', 'create', '--print-join-command=maybe']);
    expect(create).toMatchObject({ code: 2, stderr: expect.stringContaining('--print-join-command="maybe" is not a boolean') });
  });
});
