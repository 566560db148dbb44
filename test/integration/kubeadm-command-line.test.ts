import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command, Option } from 'commander';
import { describe, expect, it } from 'vitest';
import { RENEWABLE_NAMES } from '../../src/kubeadm/pki/renewable.ts';
import { allHelp } from '../support/help-texts.ts';
import { type KubeadmCommandLine, type KubeadmFlag, renderCommandLine, walkKubeadm } from '../support/kubeadm-command-line.ts';
import { kubeadmVersion } from '../support/real-kubeadm.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';
import { REPOSITORY } from '../support/source-files.ts';

const RECORDING = join(REPOSITORY, 'test/fixtures/kubeadm-1.36.2/command-line.json');
const kubeadm = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubeadm');
const absent = !existsSync(kubeadm)
  ? 'KUBEBUILDER_ASSETS has no kubeadm'
  : kubeadmVersion(kubeadm) === 'v1.36.2'
    ? null
    : `kubeadm is ${kubeadmVersion(kubeadm)}`;

const recorded = JSON.parse(readFileSync(RECORDING, 'utf8')) as KubeadmCommandLine;
const own = new Map((await allHelp(undefined, 'kubeadm')).map(({ path, command }) => [path, command]));

/** Names that are subcommands of kubeadm and arguments here. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = { 'certs renew': ['all', ...RENEWABLE_NAMES] };

/** The command that runs for a path of kubeadm. */
function commandAt(path: string): Command | undefined {
  const parent = path.slice(0, path.lastIndexOf(' '));
  const isArgument = ARGUMENTS[parent]?.includes(path.slice(parent.length + 1)) === true;
  return own.get(isArgument ? parent : path);
}

/** A flag is accepted before and after the names of subcommands: those of all parents count. */
function optionOf(command: Command | null | undefined, name: string): Option | undefined {
  if (command == null) return undefined;
  return command.options.find(({ long }) => long === `--${name}`) ?? optionOf(command.parent, name);
}

const isHelp = ({ name }: KubeadmFlag): boolean => name === 'help';
const entries = Object.entries(recorded).flatMap(([path, flags]) => flags.map((flag) => ({ path, flag })));
/** Run by the program itself, see `helpAsOption`. */
const lacksCommand = (path: string): boolean => path !== 'help' && commandAt(path) === undefined;
const lacking = [
  ...Object.keys(recorded).filter(lacksCommand),
  ...entries
    .filter(({ path, flag }) => !lacksCommand(path) && !isHelp(flag) && optionOf(commandAt(path), flag.name) === undefined)
    .map(({ path, flag }) => `${path} --${flag.name}`),
];

/** The rows of the table in docs/kubeadm.md: names in backquotes, `…` for everything below a command. */
function documented(): readonly string[] {
  const text = readFileSync(join(REPOSITORY, 'docs/kubeadm.md'), 'utf8');
  const [, table = ''] = text.split('<!-- lacking -->');
  return [...table.matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)].map(([, name = '']) => name);
}

const covers = (row: string, name: string): boolean => (row.endsWith(' …') ? name.startsWith(row.slice(0, -1).trim()) : row === name);

describe('the command line of kubeadm', () => {
  it.skipIf(requirement('the recording of the command line of kubeadm', absent))('is the recorded one', async () => {
    await expect(renderCommandLine(await walkKubeadm(kubeadm))).toMatchFileSnapshot(RECORDING);
  });

  it('is complete, except for the commands and flags in docs/kubeadm.md', () => {
    const rows = documented();
    expect(lacking.filter((name) => !rows.some((row) => covers(row, name)))).toEqual([]);
  });

  it('has each command and flag that docs/kubeadm.md does not list', () => {
    expect(documented().filter((row) => !lacking.some((name) => covers(row, name)))).toEqual([]);
  });

  it('has flags with and without a value as recorded, and the same shorthands', () => {
    const present = entries.flatMap(({ path, flag }) => {
      const option = optionOf(commandAt(path), flag.name);
      return option === undefined ? [] : [{ path, flag, option }];
    });
    const differing = present.filter(
      ({ flag, option }) =>
        option.isBoolean() !== (flag.type === 'bool') || (flag.shorthand !== undefined && option.short !== `-${flag.shorthand}`),
    );
    expect(present.length).toBeGreaterThan(400);
    expect(differing.map(({ path, flag }) => `${path} --${flag.name}`)).toEqual([]);
  });

  it('runs each single phase by its name, also if it is a group of phases here', () => {
    const paths = Object.keys(recorded);
    const single = paths.filter((path) => path.includes(' phase ') && !paths.some((other) => other.startsWith(`${path} `)));
    // Commander adds the command help to a command that only prints help.
    const onlyHelp = (command: Command): boolean =>
      command
        .createHelp()
        .visibleCommands(command)
        .some((below) => below.name() === 'help');
    expect(single.length).toBeGreaterThan(50);
    expect(single.filter((path) => commandAt(path) === undefined || onlyHelp(commandAt(path) as Command))).toEqual([]);
  });

  it('has the counted size', () => {
    const commands = Object.keys(recorded).length;
    const missingCommands = lacking.filter((name) => !name.includes(' --')).length;
    const flags = entries.filter(({ flag }) => !isHelp(flag)).length;
    const present = entries.filter(({ path, flag }) => !isHelp(flag) && !lacksCommand(path) && optionOf(commandAt(path), flag.name)).length;
    console.info(`${commands - missingCommands} of ${commands} commands, ${present} of ${flags} flags of kubeadm 1.36.2`);
    expect(present / flags).toBeGreaterThan(0.7);
  });
});

describe.each([['help'], ['help', 'init'], ['help', 'init', 'phase', 'certs', 'apiserver']])('kubeadm %s', (...words) => {
  it('prints help', async () => {
    const path = words.slice(1).join(' ');
    const { code, stdout } = await runCommand([...words], { env: { KUBELETADM_PROGRAM_NAME: 'kubeadm' } });
    expect(code).toBe(0);
    expect(stdout).toContain(`Usage: kubeadm ${path}`.trimEnd());
  });
});
