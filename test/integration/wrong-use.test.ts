import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { interrupted } from '../../src/base/errors.ts';
import { runCommand } from '../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-wrong-'));
const fleet = join(directory, 'fleet.yaml');
writeFileSync(fleet, 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts: [{name: n1, address: 127.0.0.1}]\n');
const state = join(directory, 'state');
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const run = (...argv: readonly string[]) => runCommand(argv, { env: { HOME: directory, XDG_STATE_HOME: state } });

describe('commands of kubectl', () => {
  it.each<[readonly string[], string]>([
    [['get', 'nodes'], 'unknown command get: get is a command of kubectl. Use kubectl get for cluster objects.'],
    [['cordon', 'n1'], 'unknown command cordon: cordon is a command of kubectl. Use kubectl cordon for cluster objects.'],
  ])('%j', async (argv, line) => {
    expect(await run(...argv)).toEqual({ code: 2, stdout: '', stderr: `${line} [USAGE]\n` });
  });
});

describe('an invalid command line', () => {
  it.each<[string, readonly string[], string]>([
    ['a misspelt command', ['tokn'], 'unknown command tokn. Did you mean token?'],
    ['a misspelt subcommand', ['token', 'creat'], 'unknown command token creat. Did you mean token create?'],
    ['a word similar to no command', ['frobnicate'], 'unknown command frobnicate. See kubeletadm --help.'],
    ['a short word with one typo', ['gent'], 'unknown command gent. Did you mean agent?'],
    ['a short word with two differences', ['gen'], 'unknown command gen. See kubeletadm --help.'],
    ['the name of subcommands', ['history'], 'unknown command history. Did you mean dynamic history, rollout history or fleet history?'],
    ['the name of one subcommand', ['drift'], 'unknown command drift. Did you mean fleet drift?'],
    ['a name of another program', ['rollback'], 'unknown command rollback. Did you mean undo, fleet revert or dynamic assign?'],
    [
      'a name of another program, and of subcommands',
      ['diff'],
      'unknown command diff. Did you mean plan, upgrade diff, config diff or rollout diff?',
    ],
    ['a fleet file as argument', ['plan', 'a/b'], 'plan: the fleet file a/b must be passed with -f. Run kubeletadm plan -f a/b.'],
    [
      'an inventory as argument',
      ['plan', 'hosts.ini'],
      'plan: the fleet file hosts.ini must be passed with -f. Run kubeletadm plan -f hosts.ini.',
    ],
    ['another word for a check', ['verify'], 'unknown command verify. Did you mean config validate or fleet validate?'],
    ['a word for a list', ['ls'], 'unknown command ls. Did you mean fleet inventory?'],
    [
      'a fleet file as argument of a subcommand',
      ['fleet', 'validate', 'fleet.yaml'],
      'fleet validate: the fleet file fleet.yaml must be passed with -f. Run kubeletadm fleet validate -f fleet.yaml.',
    ],
    [
      'apply as a dry run',
      ['apply', '--dry-run'],
      'unknown option --dry-run for apply. To show the changes without applying them, run kubeletadm plan -f FILE.',
    ],
    ['plan as a dry run', ['plan', '--dry-run'], 'unknown option --dry-run for plan. Omit the option: plan only shows the changes.'],
    ['a misspelt name of subcommands', ['statsu'], 'unknown command statsu. Did you mean status?'],
    ['a misspelt name of subcommands, with their option', ['statsu', '-f', 'a'], 'unknown command statsu. Did you mean status?'],
    ['a misspelt name of another program', ['rolback'], 'unknown command rolback. Did you mean undo, fleet revert or dynamic assign?'],
    ['a subcommand of another program', ['fleet', 'undo'], 'unknown command fleet undo. Did you mean undo or fleet revert?'],
    [
      'the same name in another group',
      ['dynamic', 'rollback'],
      'unknown command dynamic rollback. Did you mean dynamic undo or dynamic assign?',
    ],
    [
      'a subcommand of another program, with a command of its own',
      ['fleet', 'diff'],
      'unknown command fleet diff. Did you mean fleet plan?',
    ],
    ['a command as a subcommand', ['node', 'join'], 'unknown command node join. Did you mean join?'],
    [
      'a name that has no meaning in the group',
      ['upgrade', 'rollback'],
      'unknown command upgrade rollback. See kubeletadm upgrade --help.',
    ],
    ['a subcommand similar to none', ['fleet', 'frobnicate'], 'unknown command fleet frobnicate. See kubeletadm fleet --help.'],
    [
      'an option of a sibling command',
      ['fleet', 'plan', '--replan'],
      'unknown option --replan for fleet plan. Plan changes no host: pass --replan to kubeletadm apply.',
    ],
    [
      'hosts by address in place of a selection',
      ['fleet', 'plan', '--host', 'n1'],
      'unknown option --host for fleet plan. Select hosts of the fleet file with --limit. See kubeletadm fleet plan --help.',
    ],
    [
      'hosts by option where they are arguments',
      ['dynamic', 'enable', '--host', 'n1'],
      'unknown option --host for dynamic enable. Hosts are arguments of this command: kubeletadm dynamic enable HOST.',
    ],
    [
      'a host as an argument',
      ['reset', 'node3'],
      'reset: unexpected argument node3. If this is a host, run kubeletadm reset --host node3.',
    ],
    ['a misspelt subcommand of a command that runs', ['reset', 'phas'], 'unknown command reset phas. Did you mean reset phase?'],
    [
      'an approval of a command that does not ask',
      ['dynamic', 'reset', '-y'],
      'unknown option -y for dynamic reset. Omit the option: dynamic reset does not ask.',
    ],
    ['another name of the approval', ['reset', '--yes'], 'unknown option --yes for reset. Did you mean --force?'],
    [
      'a field of the kubelet for a fleet',
      ['plan', '--set', 'maxPods=3'],
      'unknown option --set for plan. Write the field below kubeletConfiguration in the fleet file, for a host, a group or the baseline.',
    ],
    ['a misspelt option', ['fleet', 'plan', '--limt', 'x'], 'unknown option --limt for fleet plan. Did you mean --limit?'],
    [
      'an option similar to none',
      ['fleet', 'plan', '--frobnicate'],
      'unknown option --frobnicate for fleet plan. See kubeletadm fleet plan --help.',
    ],
    [
      'the value of an unknown option is not repeated',
      ['init', '--tokne=abcdef.0123456789abcdef'],
      'unknown option --tokne for init. Did you mean --token?',
    ],
    ['an option of the program', ['--frobnicate'], 'unknown option --frobnicate. See kubeletadm --help.'],
    ['a missing argument', ['config', 'diff', 'a'], 'config diff: the argument <second> is missing. See kubeletadm config diff --help.'],
    ['too many arguments', ['version', 'x'], 'version: too many arguments: expected 0, got 1. See kubeletadm version --help.'],
    [
      'an option without its value',
      ['token', 'create', '--ttl'],
      'token create: option --ttl <duration> needs a value. See kubeletadm token create --help.',
    ],
    [
      'a value outside the choices',
      ['plan', '-o', 'wide'],
      'plan: option -o, --output <format>: invalid value "wide", must be one of text, json, yaml, markdown. See kubeletadm plan --help.',
    ],
  ])('%s', async (_, argv, line) => {
    expect(await run(...argv)).toEqual({ code: 2, stdout: '', stderr: `${line} [USAGE]\n` });
  });

  it('names three of the commands that have the option', async () => {
    const { code, stderr } = await run('version', '--connect-timeout', '3');
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(
        /^unknown option --connect-timeout for version: the option belongs to init, init phase, join and \d+ other commands\. See kubeletadm version --help\. \[USAGE\]\n$/,
      ),
    ]);
  });
});

describe('an interrupted command', () => {
  it.each<[readonly string[], string]>([
    [['fleet', 'inventory', '-f', fleet], ''],
    [['dynamic', 'inspect', '127.0.0.1'], ''],
    [['reset', '--host', '127.0.0.1:1', '--dry-run'], ''],
    [['reset', '--force', '--host', '127.0.0.1:1'], 'interrupted by SIGINT. Rerun the same command to resume. [INTERRUPTED]\n'],
  ])('%j', async (argv, text) => {
    const controller = new AbortController();
    controller.abort(interrupted('SIGINT'));
    const connectHost = async (): Promise<never> => controller.signal.throwIfAborted() as never;
    const readText = async (): Promise<never> => controller.signal.throwIfAborted() as never;
    const result = await runCommand(argv, {
      signal: controller.signal,
      services: ({ input }) => ({ connectHost, input: { ...input, readText } }),
    });
    expect(result).toEqual({ code: 130, stdout: '', stderr: text });
  });
});

describe('apply without an API server', () => {
  it('prints the error and exits', () => {
    const program = fileURLToPath(new URL('../../src/bin.ts', import.meta.url));
    const argv = ['--import', 'tsx', program, 'apply', '-f', fleet, '--yes'];
    const env = { PATH: process.env.PATH, HOME: directory, XDG_STATE_HOME: state };
    const { status, stderr } = spawnSync(process.execPath, argv, { env, encoding: 'utf8', timeout: 60_000, killSignal: 'SIGKILL' });
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(/^no API server is configured.*\[NO_API_SERVER\]\n$/) });
  }, 90_000);
});
