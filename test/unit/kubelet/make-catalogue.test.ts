import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const ROOT = path.join(import.meta.dirname, '..', '..', '..');
const SCRIPT = path.join(ROOT, 'scripts', 'make-catalogue.mjs');
const DATA = path.join(ROOT, 'src', 'kubelet', 'data', 'fields.json');

const FIELD = {
  path: 'maxPods',
  type: 'int32',
  pointer: false,
  minorsPresent: ['1.10', '1.36'],
  defaultByMinor: [{ from: '1.10', value: 110 }],
  flag: 'max-pods',
  description: 'Most pods.',
  liveChange: 'safe',
  liveChangeReason: 'none',
};

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'make-catalogue-'));
});
afterEach(() => {
  rmSync(dir, { recursive: true });
});

function run(fields: unknown): string {
  const before = readFileSync(DATA, 'utf8');
  writeFileSync(path.join(dir, 'kubelet-config-fields.json'), JSON.stringify(fields));
  const { status, stderr } = spawnSync(process.execPath, [SCRIPT, dir], { encoding: 'utf8' });
  expect(status).toBe(1);
  expect(readFileSync(DATA, 'utf8')).toBe(before);
  return stderr.trim();
}

describe('make-catalogue', () => {
  it.each<[string, unknown, string]>([
    ['an unknown member', [{ ...FIELD, since: '1.10' }], 'field maxPods: unknown member since'],
    ['a missing member', [{ ...FIELD, flag: undefined }], 'field maxPods: flag is missing'],
    ['an unknown type', [{ ...FIELD, type: 'int16' }], 'field maxPods: "int16" is none of string'],
    ['an unknown minor', [{ ...FIELD, minorsPresent: ['1.10', '1.37'] }], 'field maxPods: "1.37" is no minor from 1.10 to 1.36'],
    [
      'minors that are not ascending',
      [{ ...FIELD, defaultByMinor: [...FIELD.defaultByMinor, ...FIELD.defaultByMinor] }],
      'field maxPods: minors of value do not rise',
    ],
    ['an enumeration without values', [{ ...FIELD, type: 'enum' }], 'field maxPods: type enum and enumByMinor do not fit'],
    ['a field twice', [FIELD, FIELD], 'a path occurs twice'],
    ['a missing field', [FIELD], 'is missing'],
    ['a value that is not a list', { maxPods: FIELD }, 'fields: not a list'],
  ])('ends with an error at %s and writes nothing', (_, fields, message) => {
    const reported = run(fields);
    expect(reported).toMatch(/^make-catalogue: /);
    expect(reported).toContain(message);
  });

  it('requires a directory', () => {
    const { status, stderr } = spawnSync(process.execPath, [SCRIPT], { encoding: 'utf8' });
    expect([status, stderr.trim()]).toEqual([1, 'make-catalogue: usage: node scripts/make-catalogue.mjs DIR']);
  });
});
