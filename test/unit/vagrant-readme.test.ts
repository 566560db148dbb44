import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
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
});
