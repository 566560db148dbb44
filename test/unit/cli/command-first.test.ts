import { Command, type Option } from 'commander';
import { describe, expect, it } from 'vitest';
import { wholeProgram } from '../../../scripts/reference/whole-program.ts';
import { commandFirst } from '../../../src/cli/command-first.ts';
import { ancestorsOf, commandsBelow, pathOf } from '../../../src/cli/command-line-error.ts';

const program = new Command('top').option('-v, --v <level>');
const token = program.command('token').option('--kubeconfig <file>').option('--dry-run');
token.command('create').option('--ttl <duration>').option('-f, --force').option('--no-print');
token.command('list').option('-o, --output <format>').option('--ttl');
program.command('join').argument('[address]').option('--wait [duration]').command('phase').argument('<name...>');

describe('the words of a command line', () => {
  it.each([
    ['--kubeconfig F token create', 'token create --kubeconfig F'],
    ['token --kubeconfig F create --ttl 1h a', 'token create --kubeconfig F --ttl 1h a'],
    ['--ttl 1h token create', 'token create --ttl 1h'],
    ['--ttl token list', 'token list --ttl'],
    ['-v 5 -f --kubeconfig=F token create', 'token create -v 5 -f --kubeconfig=F'],
    ['-fv 5 token create', 'token create -fv 5'],
    ['-ojson --v=5 token list', 'token list -ojson --v=5'],
    ['--print=false token --help create', 'token create --print=false --help'],
    ['--kubeconfig list token create', 'token create --kubeconfig list'],
    ['token create list', 'token create list'],
    ['--wait 5m join a:1', 'join --wait 5m a:1'],
    ['join --wait phase x -- y', 'join phase x --wait -- y'],
    ['join a:1 phase x', 'join a:1 phase x'],
    ['--kubeconfig -- token create', 'token create --kubeconfig --'],
    ['-v 5 -- token', '-v 5 -- token'],
    ['--output json token create', 'token create --output json'],
    ['--frob token create', 'token create --frob'],
    ['--kubeconfig F tokn create', 'tokn --kubeconfig F create'],
    ['-v 5 help token', 'help -v 5 token'],
    ['--kubeconfig F', '--kubeconfig F'],
    ['-', '-'],
  ])('%s', (line, expected) => {
    expect(commandFirst(line.split(' '), program).join(' ')).toBe(expected);
  });
});

describe('the options of every command', () => {
  it('may stand at any position between the words of the command', async () => {
    const { program: whole } = await wholeProgram('kubeadm');
    let lines = 0;
    const differing: string[] = [];
    for (const command of commandsBelow(whole)) {
      const names = pathOf(command).split(' ');
      const options = new Map(ancestorsOf(command).flatMap((each) => each.options.map((option) => [option.long ?? '', option] as const)));
      for (const option of options.values()) {
        const forms = spellings(option);
        // The many phases have the same options: one position each, in turn.
        const isPhase = names.length > 3;
        for (let at = isPhase ? lines % names.length : 0; at < names.length; at += isPhase ? names.length : 1) {
          const written = forms[lines++ % forms.length] ?? [];
          const words = [...names.toSpliced(at, 0, ...written), 'argument'];
          if (commandFirst(words, whole).join(' ') !== [...names, ...written, 'argument'].join(' ')) differing.push(words.join(' '));
        }
      }
    }
    expect(differing).toEqual([]);
    expect(lines).toBeGreaterThan(10_000);
  });
});

/** The forms of an option, as pflag reads them. Values are names of commands, where commands could be mistaken for them. */
function spellings({ long, short, required, optional }: Option): readonly (readonly string[])[] {
  const names = [long, short].filter((name) => name != null);
  if (optional) return [[`${long}=init`]];
  if (!required) return names.map((name) => [name]);
  return names.flatMap((name) => [[name, 'phase'], [`${name}=phase`], ...(name.startsWith('--') ? [] : [[`${name}phase`]])]);
}
