import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const ROOT = path.join(import.meta.dirname, '..', '..', '..');
const SCRIPT = path.join(ROOT, 'scripts', 'add-minor.mjs');

const TYPES = `package v1beta1

type KubeletConfiguration struct {
	metav1.TypeMeta \`json:""\`

	// maxPods limits Pods, as in net/* and */x.
	// Default: 110
	// +optional
	MaxPods int32 \`json:"maxPods,omitempty"\`
	// Default: nil
	Factor *float64 \`json:"factor,omitempty"\`
	Mode Mode \`json:"mode,omitempty"\`
	Inner Inner \`json:"inner"\`
	Sysctls map[string]string \`json:"sysctls,omitempty"\`
	Taints []v1.Taint \`json:"taints,omitempty"\`
}

type Mode string

type Inner struct {
	Period metav1.Duration \`json:"period,omitempty"\`
}
`;

const LIST = `- name: Old
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.36"}
  - {default: true, lockToDefault: false, preRelease: Beta, version: "1.37"}
- name: New
  versionedSpecs:
  - {default: true, lockToDefault: true, preRelease: GA, version: "1.37"}
- name: Later
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.38"}
`;

const gate = (name: string) => ({ name, versions: [{ from: 36, stage: 'ALPHA', default: false, lockToDefault: false }], removedIn: null });
const field = (name: string, type: string, more: object = {}) => ({
  path: name,
  type,
  pointer: false,
  omitempty: true,
  printedWhenUnset: false,
  minors: [36, 36],
  defaultByMinor: [{ from: 36, value: null }],
  flag: null,
  description: `${name}.`,
  liveChange: 'safe',
  liveChangeReason: 'none',
  danger: null,
  ...more,
});
const flag = (name: string) => ({
  flag: name,
  type: 'string',
  default: '',
  since: 36,
  removedIn: null,
  field: null,
  deprecated: false,
  deprecatedSince: null,
  group: 'kubelet',
});

const FIELDS = [
  field('kind', 'string'),
  field('apiVersion', 'string'),
  field('maxPods', 'int32', { defaultByMinor: [{ from: 36, value: 110 }] }),
  field('factor', 'float', { pointer: true, defaultByMinor: [{ from: 36, value: 0.9 }] }),
  field('mode', 'enum', { enumByMinor: [{ from: 36, values: ['a'] }] }),
  field('inner', 'object', { omitempty: false, printedWhenUnset: true, defaultByMinor: [] }),
  field('inner.period', 'duration', { printedWhenUnset: true }),
  field('gone', 'bool'),
  field('taints', 'array<object>', { defaultByMinor: [] }),
  field('taints[].key', 'string', { omitempty: false, defaultByMinor: [] }),
];
const NOTES = {
  fields: { sysctls: { description: 'Sysctls.', liveChange: 'new-pods-only', liveChangeReason: 'later Pods', danger: null } },
  flags: { removed: ['old-flag'] },
};

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'add-minor-'));
  put('data/fields.json', JSON.stringify(FIELDS));
  put('data/flags.json', JSON.stringify([flag('old-flag'), flag('kept-flag')]));
  put('data/gates.json', JSON.stringify([gate('AllAlpha'), gate('Old'), gate('Removed'), gate('WatchListClient')]));
  put('tree/config/v1beta1/types.go', TYPES);
  put('before/config/v1beta1/types.go', TYPES.replace('Default: nil', 'Default: 0.9'));
  put('tree/test/compatibility_lifecycle/reference/versioned_feature_list.yaml', LIST);
  put('notes.json', JSON.stringify(NOTES));
});
afterEach(() => {
  rmSync(dir, { recursive: true });
});

function put(name: string, text: string): void {
  const file = path.join(dir, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function run(...args: readonly string[]) {
  const given = [
    '--tree',
    path.join(dir, 'tree'),
    '--before',
    path.join(dir, 'before'),
    '--data',
    path.join(dir, 'data'),
    '--notes',
    path.join(dir, 'notes.json'),
  ];
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args, ...given], { encoding: 'utf8' });
  return { status, stdout, stderr: stderr.trim() };
}

const read = (kind: string) => JSON.parse(readFileSync(path.join(dir, 'data', `${kind}.json`), 'utf8'));

describe('add-minor', () => {
  it('adds the fields, defaults, flags and gates of a tree', () => {
    const { status, stdout, stderr } = run('1.37');
    expect([status, stderr]).toEqual([0, '']);
    const fields = new Map(read('fields').map((entry: { path: string }) => [entry.path, entry]));
    expect([...fields.keys()]).toEqual([...FIELDS.slice(0, 7).map(({ path: name }) => name), 'sysctls', 'gone', 'taints', 'taints[].key']);
    expect(fields.get('maxPods')).toEqual({ ...FIELDS[2], minors: [36, 37] });
    expect(fields.get('factor')).toMatchObject({
      defaultByMinor: [
        { from: 36, value: 0.9 },
        { from: 37, value: null },
      ],
    });
    expect(fields.get('gone')).toMatchObject({ minors: [36, 36] });
    expect(fields.get('taints[].key')).toMatchObject({ minors: [36, 37] });
    expect(fields.get('sysctls')).toEqual({
      ...field('sysctls', 'map<string,string>', { minors: [37, 37], defaultByMinor: [{ from: 37, value: null }] }),
      description: 'Sysctls.',
      liveChange: 'new-pods-only',
      liveChangeReason: 'later Pods',
    });
    expect(read('flags')).toMatchObject([{ removedIn: 37 }, { removedIn: null }]);
    expect(read('gates')).toEqual([
      gate('AllAlpha'),
      { name: 'New', versions: [{ from: 37, stage: 'GA', default: true, lockToDefault: true }], removedIn: null },
      { ...gate('Old'), versions: [...gate('Old').versions, { from: 37, stage: 'BETA', default: true, lockToDefault: false }] },
      { ...gate('Removed'), removedIn: 37 },
      gate('WatchListClient'),
    ]);
    expect(stdout).toContain('assumed: the members of taints are those of 1.36');
    expect(stdout).toContain('fields factor: defaultByMinor');
  });

  it('gives the same data a second time, and finds later changes with --check', () => {
    run('1.37');
    const first = read('gates');
    expect(run('1.37', '--check')).toMatchObject({ status: 0, stdout: expect.stringContaining('1.37: no differences') });
    expect(run('1.37').status).toBe(0);
    expect(read('gates')).toEqual(first);
    put('tree/config/v1beta1/types.go', TYPES.replace('MaxPods int32', 'MaxPods int64'));
    expect(run('1.37', '--check')).toMatchObject({ status: 1, stdout: expect.stringContaining('fields maxPods: typeByMinor') });
    expect(read('fields')[2].typeByMinor).toBeUndefined();
  });

  it('reads the gates of the documentation', () => {
    const page = (title: string, stages: string, more = '') => `---\ntitle: ${title}\nstages:\n${stages}${more}---\ntext\n`;
    const pages = 'website/content/en/docs/reference/command-line-tools-reference/feature-gates';
    put(`${pages}/Old.md`, page('Old', '  - {stage: beta, defaultValue: true, fromVersion: "1.37"}\n'));
    put(
      `${pages}/Removed.md`,
      page('Removed', '  - {stage: alpha, defaultValue: false, fromVersion: "1.36", toVersion: "1.36"}\n', 'removed: true\n'),
    );
    put(`${pages}/New.md`, page('New', '  - {stage: stable, defaultValue: true, locked: true, fromVersion: "1.37"}\n'));
    rmSync(path.join(dir, 'tree/test'), { recursive: true });
    cpSync(path.join(dir, 'data'), path.join(dir, 'expected'), { recursive: true });
    expect(run('1.37', '--website', path.join(dir, 'website')).status).toBe(0);
    expect(
      read('gates').map(({ name, removedIn, versions }: { name: string; removedIn: number | null; versions: readonly object[] }) => [
        name,
        removedIn,
        versions.length,
      ]),
    ).toEqual([
      ['AllAlpha', null, 1],
      ['New', null, 1],
      ['Old', null, 2],
      ['Removed', 37, 1],
      ['WatchListClient', null, 1],
    ]);
  });

  it.each<[string, string, string, string]>([
    ['a new field without notes', 'notes.json', '{"fields": {}}', 'field sysctls is new in 1.37: describe it in the notes'],
    [
      'notes without an effect',
      'notes.json',
      '{"fields": {"sysctls": {"description": "x"}}}',
      'notes of field sysctls: liveChange is missing',
    ],
    [
      'an unknown removed flag',
      'notes.json',
      JSON.stringify({ ...NOTES, flags: { removed: ['x'] } }),
      'flag x does not exist in the minor before',
    ],
  ])('ends with an error at %s and writes nothing', (_, name, text, message) => {
    put(name, text);
    const { status, stderr } = run('1.37');
    expect([status, stderr]).toEqual([1, expect.stringContaining(message)]);
    expect(read('fields')).toEqual(FIELDS);
  });

  it('reads the data of the repository by default', () => {
    put('tree/config/v1beta1/types.go', TYPES.replace(/\n\t\/\/ Default: nil[^}]*}/, '\n}'));
    const args = ['1.36', '--tree', path.join(dir, 'tree'), '--check'];
    const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([1, '']);
    expect(stdout).toMatch(/^fields address: minors: data .*\n(?:.*\n)*1\.36: \d+ differences$/m);
  });

  it('requires the minors in order', () => {
    expect(run('1.38').stderr).toBe('add-minor: 1.38: the newest minor of the data is 1.36; add the minors between first');
    expect(run('1.35').stderr).toBe('add-minor: 1.35: the data have later minors; only --check is possible');
  });
});
