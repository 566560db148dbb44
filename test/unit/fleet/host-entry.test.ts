import { describe, expect, it } from 'vitest';
import { hostEntryText } from '../../../src/fleet/file/host-entry.ts';

const FILE = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
hosts:
  # rack 1
  - name: edge-[1:3]   # three
    kubeletConfiguration:
      # few pods
      maxPods: 60

  # rack 2
  - name: worker-7
    groups: [a]
groups:
  - name: a
`;

const entryOf = (file: string, host: string) => {
  const entry = hostEntryText(file, host);
  if (entry === null || entry === 'flow') throw new Error('no entry');
  return entry;
};

describe('the entry of a host', () => {
  it('has the comments inside it, and not those of its neighbours', () => {
    expect(entryOf(FILE, 'edge-2')).toMatchObject({
      hosts: ['edge-1', 'edge-2', 'edge-3'],
      text: '- name: edge-[1:3]   # three\n  kubeletConfiguration:\n    # few pods\n    maxPods: 60\n',
      linesBefore: 4,
      indentation: 2,
    });
    expect(entryOf(FILE, 'worker-7')).toMatchObject({ text: '- name: worker-7\n  groups: [a]\n' });
  });

  it('is replaced in the file, whose other lines stay', () => {
    const { text, replace } = entryOf(FILE, 'edge-1');
    expect(replace(text)).toBe(FILE);
    expect(replace(text.replace('60', '50\n    podPidsLimit: 9'))).toBe(FILE.replace('60', '50\n      podPidsLimit: 9'));
  });

  it('keeps a file without a newline at its end, and a list without indentation', () => {
    const file = FILE.replace(/\ngroups:[\s\S]*/, '').replace(/^ {2}/gm, '');
    const { text, replace } = entryOf(file, 'worker-7');
    expect([text, replace(`${text}\n  address: a`)]).toEqual(['- name: worker-7\n  groups: [a]', `${file}\n  address: a`]);
  });

  it.each([
    ['an unknown host', FILE, 'x', null],
    ['a list in flow style', 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts: [{name: a}, {name: b}]\n', 'a', 'flow'],
  ])('does not exist for %s', (_, file, host, expected) => expect(hostEntryText(file, host)).toBe(expected));
});
