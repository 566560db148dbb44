import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { KUBERNETES_KEY_FINGERPRINT } from '../../src/host/operation/install-model.ts';
import { readCommandLine } from '../support/read-command-line.ts';
import { REPOSITORY } from '../support/source-files.ts';

const FOLDER = join(REPOSITORY, 'vagrant');
const textOf = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');
const README = textOf('README.md');
const VAGRANTFILE = textOf('Vagrantfile');

describe('vagrant/README.md', () => {
  it('lists the variables that the Vagrantfile and cluster.sh read, with their defaults', () => {
    const rows = [...README.matchAll(/^\| ((?:`[A-Z_0-9]+`(?:, )?)+) \| ([^|]*) \|/gm)];
    const documented = new Map(
      rows.flatMap(([, names = '', defaults = '']) => {
        const variables = [...names.matchAll(/`([A-Z_0-9]+)`/g)].map(([, name = '']) => name);
        const values = variables.length === defaults.split(', ').length ? defaults.split(', ') : variables.map(() => defaults);
        return variables.map((name, i) => [name, values[i]?.replaceAll('`', '')] as const);
      }),
    );
    const read = new Map(
      [...VAGRANTFILE.matchAll(/\b(?:text|count)\('([A-Z_]+)', '?([^',]*)/g)].map(([, name = '', value = '']) => [name, value]),
    );
    for (const [, name = ''] of VAGRANTFILE.matchAll(/\brelease\('([A-Z]+)'\)/g)) {
      const version = new RegExp(`\\b${name.toLowerCase()}=(\\d\\S+)`).exec(textOf('provision.sh'))?.[1] ?? '';
      read.set(`${name}_VERSION`, version).set(`${name}_SHA256`, version);
    }
    expect([...documented.keys()].toSorted()).toEqual([...read.keys(), 'KUBELETADM'].toSorted());
    // The other defaults depend on the VMs that exist, or on the provider.
    const computed = ['WORKERS', 'BOX'];
    const fixed = [...read].filter(([name]) => !computed.includes(name));
    expect(fixed.length).toBeGreaterThan(10);
    expect(fixed.map(([name]) => [name, documented.get(name)])).toEqual(fixed);
  });

  it('lists the default box of each provider', () => {
    const boxes = new Set([...VAGRANTFILE.matchAll(/vm\.box = (?:box\.empty\? \? )?'([^']+)'/g)].map(([, name]) => name));
    expect(boxes.size).toBe(3);
    for (const box of boxes) expect(README).toContain(`| \`${box}\``);
  });

  it('lists the values of CNI', () => {
    const values = /\|CNI[^\n]*|'CNI', 'routes', \/\\A\(([a-z|]+)\)/.exec(VAGRANTFILE)?.[1]?.split('|') ?? [];
    expect(values).toHaveLength(5);
    const row = /^\| `CNI` .*$/m.exec(README)?.[0] ?? '';
    expect(values.filter((value) => !row.includes(`\`${value}\``))).toEqual([]);
    const addOns = values.filter((value) => !['routes', 'none'].includes(value));
    expect(addOns.filter((value) => !textOf('network-add-on.sh').includes(`\n  ${value})\n`))).toEqual([]);
  });
});

describe('the command lines of vagrant/', () => {
  const readme = [...README.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) =>
    block.split('\n').flatMap((line) => /^ka (.*)$/.exec(line)?.[1] ?? /sudo kubeletadm ([^']*)'/.exec(line)?.[1] ?? []),
  );
  const prose = [...README.matchAll(/`ka ([^`]*)`/g)].map(([, line = '']) => line);
  const script = textOf('cluster.sh')
    .split('\n')
    .flatMap((line) => /\b(?:adm|sudo kubeletadm) ([a-z].*)/.exec(line)?.[1]?.replace(/(?: \|\|.*|["']\)?)$/, '') ?? []);

  it('are found', () => {
    expect([readme.length > 9, prose.length > 1, script.length]).toEqual([true, true, 3]);
  });

  it.each([...new Set([...readme, ...prose, ...script])])('kubeletadm %s is accepted', async (line) => {
    const words = line
      .replace(/ +#.*$/, '')
      .replace('$ssh', '--ssh-config .vagrant/ssh_config')
      .replace(' $pods', '')
      .replaceAll(/"?\$(?:\{[^}]*\}|\w+)"?/g, 'value')
      .split(/ +/)
      .filter((word) => word !== '');
    expect(await readCommandLine(words)).toBeDefined();
  });
});

describe('the scripts of vagrant/', () => {
  it('pin the SHA-256 of each download from github.com', () => {
    const scripts = readdirSync(FOLDER).filter((name) => name.endsWith('.sh'));
    const downloads = scripts.flatMap((name) =>
      textOf(name)
        .split('\n')
        .filter((line) => /github(?:usercontent)?\.com/.test(line)),
    );
    expect(downloads).toHaveLength(5);
    expect(downloads.filter((line) => !/^ *fetch "https:\/\/\S+" "\$\w+_sha256" /.test(line))).toEqual([]);
    const pins = scripts.flatMap((name) => [...textOf(name).matchAll(/\w+_sha256=([0-9a-f]+)/g)].map(([, sum = '']) => sum));
    expect(pins).toHaveLength(8);
    expect(new Set(pins.filter((sum) => sum.length === 64)).size).toBe(8);
  });

  /** Runs a part of a script with stand-ins for the programs that download and install. */
  const runPart = (script: string, { stubs, args = [] }: { readonly stubs: string; readonly args?: readonly string[] }) =>
    spawnSync('sh', ['-c', `set -eu\n${stubs}\n${script}`, 'sh', ...args], { encoding: 'utf8' });

  it('accept the packages only with the signing key of Kubernetes', () => {
    const provision = textOf('provision.sh');
    expect(provision).toContain(`\nfingerprint=${KUBERNETES_KEY_FINGERPRINT}\n`);
    const part = /^fingerprint=.*?^rm -f "\$release"$/ms.exec(provision)?.[0] ?? 'exit 99';
    const run = (shown: string) =>
      runPart(part, {
        stubs: `repository=https://packages.test\ncurl() { :; }\ninstall() { echo installed; }\ngpg() { printf '${shown}'; }`,
      });
    const [known, other] = [KUBERNETES_KEY_FINGERPRINT, '1B2F41208366FFA1AB29264A993911C9808C95AA'];
    const listed = (fingerprint: string): string =>
      `pub:-:4096:1:\\nfpr:::::::::${fingerprint}:\\nsub:-:\\nfpr:::::::::${'0'.repeat(40)}:\\n`;
    expect(run(listed(known))).toMatchObject({ status: 0, stdout: 'installed\n' });
    for (const shown of [listed(other), listed(known) + listed(other), ''])
      expect(run(shown)).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining(`not ${known}`) });
  });

  it('install the package of kubeletadm only with the checksum of the local file', () => {
    const install = /<<~'SH'\n(.*?)^SH$/ms.exec(VAGRANTFILE)?.[1] ?? 'exit 99';
    const directory = mkdtempSync(join(tmpdir(), 'ka-vagrant-'));
    try {
      const uploaded = join(directory, 'kubeletadm.deb');
      const script = install.replaceAll('/tmp/kubeletadm.deb', uploaded);
      const run = (sum: string) => runPart(script, { stubs: 'dpkg() { cat "$2"; }', args: [sum] });
      writeFileSync(uploaded, 'package');
      expect(run(createHash('sha256').update('other').digest('hex'))).toMatchObject({
        status: 1,
        stdout: expect.stringContaining('FAILED'),
      });
      expect(run(createHash('sha256').update('package').digest('hex'))).toMatchObject({ status: 0, stdout: 'package' });
      expect(VAGRANTFILE).not.toContain('dpkg -i /tmp');
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
