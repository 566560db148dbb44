import { describe, expect, it } from 'vitest';
import { HEADINGS } from '../../../src/cli/help-layout.ts';
import { allHelp, type CommandHelp } from '../../support/help-texts.ts';
import { rejectedIdioms } from '../../support/rejected-idioms.ts';
import { runCommand } from '../../support/run-cli.ts';

const WIDE = '10000';

/** The lines of one section of a help text. */
function section(text: string, heading: string): readonly string[] {
  const lines = text.split('\n');
  const start = lines.indexOf(heading);
  if (start < 0) return [];
  const rest = lines.slice(start + 1);
  const end = rest.indexOf('');
  return end < 0 ? rest : rest.slice(0, end);
}

/** The lines above the examples, which are printed as they are. */
function withoutExamples(text: string): readonly string[] {
  const lines = text.split('\n');
  const start = lines.indexOf('Examples:');
  return start < 0 ? lines : lines.slice(0, start);
}

async function helpOf(path: string, columns?: string): Promise<CommandHelp> {
  return (await allHelp(columns)).find((one) => one.path === path) as CommandHelp;
}

describe('rejected idioms', () => {
  it.each([
    ['merge the fields anew', '"anew": write again; the verb alone'],
    ['a whole number of hosts', '"whole number": write integer'],
    ['5x is no duration', '"is no duration": write is not a valid'],
  ])('finds the idiom in "%s"', (text, found) => {
    expect(rejectedIdioms(text)).toContain(found);
  });

  it('ignores words that contain one', () => {
    expect(rejectedIdioms('Restore the whole group, otherwise report and commend')).toEqual([]);
  });
});

describe('help texts', () => {
  it('use no rejected idiom', async () => {
    const found = (await allHelp(WIDE)).flatMap(({ path, text }) =>
      text.split('\n').flatMap((line) => rejectedIdioms(line).map((idiom) => `${path}: ${line.trim()}: ${idiom}`)),
    );
    expect([...new Set(found)]).toEqual([]);
  });

  it('describe each command with a capital, without a full stop', async () => {
    const descriptions = (await allHelp()).map(({ path, command }) => ({ path, description: command.description() }));
    expect(descriptions.filter(({ description }) => !/^[A-Z].*[^.]$/.test(description))).toEqual([]);
  });

  it("describe each subcommand with a capital, commander's help command too", async () => {
    const lines = (await allHelp(WIDE)).flatMap(({ text }) => section(text, 'Commands:'));
    const descriptions = lines
      .map((line) => /^ {2}\S.*? {2,}(.*)$|^ {3,}(\S.*)$/.exec(line))
      .flatMap((match) => match?.[1] ?? match?.[2] ?? []);
    expect(descriptions.length).toBeGreaterThan(50);
    expect(descriptions.filter((description) => !/^[A-Z]/.test(description))).toEqual([]);
  });

  it('describe each option and argument in lower case, without a full stop', async () => {
    const isTerm =
      /^(?:[a-z'[(/]|IP |TTL |CRI |DNS |SSH |Ansible |OpenSSH |KubeletConfiguration |InitConfiguration |ClusterConfiguration |ResetConfiguration |UpgradeConfiguration |ConfigMap ).*[^.]$/;
    const texts = (await allHelp()).flatMap(({ path, command }) =>
      [...command.options, ...command.registeredArguments].map(({ description }) => ({ path, description })),
    );
    expect(texts.filter(({ description }) => !isTerm.test(description))).toEqual([]);
  });

  it('mention the fleet file only for commands that read one', async () => {
    const mentioning = (await allHelp()).filter(({ command }) =>
      command.options.some(({ description }) => description.includes('ssh.commandTimeout of the fleet file')),
    );
    expect(mentioning.length).toBeGreaterThan(5);
    expect(mentioning.filter(({ command }) => !command.options.some(({ long }) => long === '--file')).map(({ path }) => path)).toEqual([]);
  });

  it.each([
    ['reset', ['--show-origin']],
    ['config render', ['--upload-certs', '--certificate-key', '--force-upload', '--token', '--token-ttl', '--skip-token-print']],
  ])('of %s list no option without an effect', async (path, flags) => {
    const { text } = await helpOf(path, WIDE);
    expect(flags.filter((flag) => new RegExp(`^ +${flag}\\b`, 'm').test(text))).toEqual([]);
  });

  it('name no exit code as a bare number', async () => {
    const texts = (await allHelp(WIDE)).map(({ text }) => text).join('\n');
    expect(texts).not.toMatch(/exit with \d/);
  });
});

describe('the layout of help', () => {
  it.each(['60', '80', '120', '200'])('fits into COLUMNS=%s, except usage lines, examples and words that are wider', async (columns) => {
    const width = Number(columns);
    const tooWide = (await allHelp(columns)).flatMap(({ path, text }) =>
      withoutExamples(text)
        .filter((line) => line.length > width && / /.test(line.trim()) && !line.startsWith('Usage: '))
        .map((line) => `${path}: ${line}`),
    );
    expect(tooWide).toEqual([]);
  });

  it('reads COLUMNS from the environment of the process', async () => {
    const { code, stdout } = await runCommand(['help', 'init', '--all'], { env: { COLUMNS: '60' } });
    expect([code, stdout]).toEqual([0, (await helpOf('init', '60')).text]);
  });

  it('uses the available columns', async () => {
    const [narrow, wide] = [await helpOf('init', '60'), await helpOf('init', '200')];
    const rows = (text: string): number => text.split('\n').length;
    expect(rows(narrow.text)).toBeGreaterThan(rows(wide.text) * 1.5);
    expect(Math.max(...withoutExamples(wide.text).map((line) => line.length))).toBeGreaterThan(120);
  });

  it.each([undefined, '', '0', 'wide', '-5', '80.5'])('has 80 columns with COLUMNS=%s and without a terminal', async (columns) => {
    expect((await helpOf('init', columns)).text).toBe((await helpOf('init', '80')).text);
  });

  it('stays readable with very few columns', async () => {
    expect((await helpOf('init', '5')).text).toBe((await helpOf('init', '40')).text);
  });

  it('wraps notes and phase lists too', async () => {
    const { text } = await helpOf('upgrade node', '60');
    expect(text).toContain(
      '\nThe overlays, the patches of the KubeletConfiguration and\nthe settings of init and join are stored on the host and\n',
    );
    expect(section(text, 'Phases:').length).toBeGreaterThan(5);
  });

  it('puts wide options on a line of their own, and the description below', async () => {
    expect(section((await helpOf('join')).text, HEADINGS.discovery)).toEqual(
      expect.arrayContaining([
        '  --discovery-token-unsafe-skip-ca-verification',
        '                                  skip CA pinning: anyone who knows the token',
      ]),
    );
  });

  it('lists the options of init under headings', async () => {
    const { text } = await helpOf('init');
    const headings = text.split('\n').filter((line) => /^[A-Z][A-Za-z ]+:$/.test(line));
    expect(headings).toEqual([
      HEADINGS.output,
      HEADINGS.phases,
      HEADINGS.node,
      HEADINGS.rollout,
      HEADINGS.cluster,
      HEADINGS.controlPlane,
      HEADINGS.token,
      HEADINGS.host,
      HEADINGS.ssh,
      HEADINGS.rollback,
      HEADINGS.global,
      'Commands:',
      'Phases:',
      'Examples:',
    ]);
  });

  it.each([
    ['--host', HEADINGS.host],
    ['--ssh-config', HEADINGS.ssh],
    ['--become', HEADINGS.ssh],
    ['--output', HEADINGS.output],
    ['--context', HEADINGS.cluster],
    ['--kube-api-qps', HEADINGS.cluster],
    ['--break-lock', HEADINGS.rollback],
  ])('has %s under one heading in every command', async (long, expected) => {
    const used = (await allHelp()).flatMap(({ path, command }) =>
      command.options.filter((option) => option.long === long).map(({ helpGroupHeading }) => ({ path, helpGroupHeading })),
    );
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter(({ path, helpGroupHeading }) => path !== 'fleet inventory' && helpGroupHeading !== expected)).toEqual([]);
  });

  it('keeps the options of one heading below 20', async () => {
    const long = (await allHelp()).flatMap(({ path, command }) => {
      const counts = new Map<string, number>();
      for (const { helpGroupHeading = 'Options:' } of command.options)
        counts.set(helpGroupHeading, (counts.get(helpGroupHeading) ?? 0) + 1);
      return [...counts].filter(([, count]) => count >= 20).map(([heading, count]) => `${path}: ${heading} ${count}`);
    });
    expect(long).toEqual([]);
  });

  it('lists the global options of every command, and no others', async () => {
    const others = (await allHelp())
      .map(({ path, text }) => ({
        path,
        names: section(text, HEADINGS.global).flatMap((line) => /^ {2}(-\w, --\w+)/.exec(line)?.[1] ?? []),
      }))
      .filter(({ names }) => names.join(' ') !== '-v, --v -h, --help');
    expect(others).toEqual([]);
  });
});

describe('the short help', () => {
  const MAX_LINES = 120;
  const short = (path: string): Promise<string> => shortHelp.then((all) => all.find((one) => one.path === path)?.text ?? '');
  const shortHelp = allHelp('80', 'kubeletadm', false);

  it(`has at most ${MAX_LINES} lines for every command`, async () => {
    const lines = (await shortHelp).map(({ path, text }) => ({ path, lines: text.trimEnd().split('\n').length }));
    expect(lines.length).toBeGreaterThan(150);
    expect(lines.filter(({ lines: count }) => count > MAX_LINES)).toEqual([]);
  });

  it('names each option of the complete help that is not for SSH', async () => {
    const complete = await allHelp('80');
    const missing = (await shortHelp).flatMap(({ path, command, text }) => {
      const all = complete.find((one) => one.path === path)?.text ?? '';
      return command.options.flatMap(({ long, hidden, helpGroupHeading }) =>
        long == null || hidden || helpGroupHeading === HEADINGS.ssh || !all.includes(long) || text.includes(long)
          ? []
          : [`${path} ${long}`],
      );
    });
    expect(missing).toEqual([]);
  });

  it('names the options for SSH, the other options and the phases in one line each', async () => {
    const init = await short('init');
    expect(init).toContain('\nSSH options: kubeletadm init --help --all\nMore options, see kubeletadm init --help --all: ');
    expect(init).toContain('\nPhases: kubeletadm init --help --all lists all ');
    expect(init).not.toContain('--ssh-config');
    expect(section(init, 'Phases:')).toEqual([]);
  });

  it('of the program lists the commands of daily use first, and names the others', async () => {
    const text = await short('');
    const listed = section(text, 'Commands:').flatMap((line) => /^ {2}(\S+)/.exec(line)?.[1] ?? []);
    expect(listed.length).toBeLessThanOrEqual(12);
    expect(listed.slice(0, 3)).toEqual(['init', 'join', 'reset']);
    expect(text.indexOf('Commands:')).toBeLessThan(text.indexOf('Options:'));
    expect(text.trimEnd().split('\n\n').at(-1)).toMatch(/^More commands, see kubeletadm --help --all: .*\blab\b/s);
  });

  it('is printed by --help, and the complete help with --all', async () => {
    const complete = await allHelp('80');
    const completeOf = (path: string): string => complete.find((one) => one.path === path)?.text ?? '';
    const env = { COLUMNS: '80' };
    const lines: readonly (readonly [readonly string[], string])[] = [
      [['join', '--help'], await short('join')],
      [['help', 'join'], await short('join')],
      [['join', '--help', '--all'], completeOf('join')],
      [['help', '--all', 'join'], completeOf('join')],
      [['csr', 'list', '--help', '--all'], completeOf('csr list')],
    ];
    for (const [argv, text] of lines) expect([argv, (await runCommand(argv, { env })).stdout]).toEqual([argv, text]);
    expect(section((await runCommand(['help', '--all'], { env })).stdout, 'Commands:').length).toBeGreaterThan(20);
  });

  it('does not exist under the name kubeadm', async () => {
    const env = { COLUMNS: '80', KUBELETADM_PROGRAM_NAME: 'kubeadm' };
    const { stdout } = await runCommand(['init', '--help'], { env });
    expect(stdout).toContain('--ssh-config');
    expect(section(stdout, 'Phases:').length).toBeGreaterThan(12);
  });
});
