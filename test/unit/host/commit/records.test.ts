import { describe, expect, it } from 'vitest';
import { CommitGoneError, describeCommit } from '../../../../src/host/commit/commit-problems.ts';
import { parseLockHolder, parseRecord } from '../../../../src/host/commit/record.ts';
import { checkpointOf } from '../../../../src/host/confirmed-commit.ts';
import type { HostChange } from '../../../../src/host/plan/change.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { fieldsNotInForce, fieldsToShow } from '../../../../src/kubelet/diff/diff-configs.ts';

const reason = 'a test';
const reader = { minor: 36, catalogue: await loadCatalogue() };
const yaml = (...lines: readonly string[]): string =>
  ['apiVersion: kubelet.config.k8s.io/v1beta1', 'kind: KubeletConfiguration', ...lines, ''].join('\n');

describe('checkpointOf', () => {
  it('lists each path and unit to save once', () => {
    const file = { mode: 0o644, owner: 'root:root', reason };
    const changes: readonly HostChange[] = [
      { kind: 'make-directory', path: '/d', ...file },
      { kind: 'write-file', path: '/d/f', action: 'create', content: 'x\n', before: null, ...file },
      { kind: 'write-file', path: '/d/f', action: 'create', content: 'y\n', before: null, ...file },
      { kind: 'move-file', path: '/a', to: '/b', reason },
      { kind: 'remove-file', path: '/c', before: null, reason },
      { kind: 'daemon-reload', reason },
      { kind: 'enable-unit', unit: 'kubelet', reason },
      { kind: 'restart-unit', unit: 'kubelet', reason },
    ];
    expect(checkpointOf(changes)).toEqual({ paths: ['/d', '/d/f', '/a', '/b', '/c'], units: ['kubelet'], reload: true });
  });

  it.each<HostChange>([
    { kind: 'empty-directory', path: '/d', reason },
    { kind: 'unmount-below', path: '/d', flags: [], reason },
    { kind: 'remove-pods', criSocket: 'unix:///x', reason },
    { kind: 'remove-file', path: '/a\n/b', before: null, reason },
  ])('is null for %j', (change) => {
    expect(checkpointOf([change])).toBeNull();
  });
});

describe('records printed by a host', () => {
  const RECORD = 'id 0a\nowner al\u001b[31mice\u0007\narmed 1893456000\ntimeout 300\nboot b\n';

  it('are parsed without terminal control characters', () => {
    const record = parseRecord(`state commit\n${RECORD}`);
    expect(record).toEqual({
      state: 'armed',
      id: '0a',
      owner: 'al [31mice',
      armedAt: 1_893_456_000,
      timeoutSeconds: 300,
      why: null,
      revertedAt: null,
      issue: null,
    });
    expect(describeCommit(record)).toBe(
      'the change pending on the host was made by al [31mice at 2030-01-01T00:00:00Z; without a confirmation, the host rolls back this change at 2030-01-01T00:05:00Z',
    );
    const gone = parseRecord(
      `state reverted\n${RECORD}why the host was restarted\nat 1893456060\ntrouble systemctl could not restore the state of kubelet\n`,
    );
    expect(describeCommit(gone)).toBe(
      'the change made by al [31mice at 2030-01-01T00:00:00Z was rolled back at 2030-01-01T00:01:00Z: the host was restarted; systemctl could not restore the state of kubelet',
    );
    expect(parseLockHolder('id x\nowner bob@desk\nprocess 9\nmachine m/1\nsince 5\nleft 60\n')).toEqual({
      id: 'x',
      name: 'bob@desk',
      processId: 9,
      machine: 'm/1',
      since: 5,
      secondsLeft: 60,
    });
  });

  it.each(['', 'state none\n', 'state wild\nowner x\n', '\0\0', 'id\n'])('are null for an invalid record: %j', (text) => {
    expect([parseRecord(text), parseLockHolder(text)]).toEqual([null, null]);
  });

  it.each(['armed 99999999999999999999\n', 'armed -1\n', 'armed x\n', 'armed 999999999999999\n'])(
    'do not crash on an invalid time: %j',
    (line) => {
      expect(describeCommit(parseRecord(`state commit\nid 1\n${line}`))).toContain('without a confirmation');
      expect(new CommitGoneError('node1', parseRecord(`state reverted\nid 1\n${line}`), 'x').message).toContain('node1: x: ');
    },
  );
});

describe('the fields that configz has to show', () => {
  const OLD = yaml('maxPods: 110', 'syncFrequency: 60s', 'clusterDomain: a');

  it('are the fields whose effective value changes', () => {
    const desired = yaml(
      'maxPods: 50',
      'syncFrequency: 1m',
      'clusterDomain: a',
      'evictionHard: {memory.available: 5%}',
      'podPidsLimit: -1',
    );
    const fields = fieldsToShow(OLD, desired, reader);
    expect(fields).toContain('maxPods');
    expect(fields.some((field) => field.startsWith('evictionHard'))).toBe(true);
    expect(fields.filter((field) => /syncFrequency|clusterDomain|podPidsLimit/.test(field))).toEqual([]);
    const shown = { maxPods: 50, syncFrequency: '1m0s', clusterDomain: 'a', evictionHard: { 'memory.available': '5%' } };
    expect(fieldsNotInForce(shown, desired, fields, reader)).toEqual([]);
    expect(fieldsNotInForce({ ...shown, maxPods: 110 }, desired, fields, reader)).toEqual(['maxPods']);
  });

  it('exclude headers that configz masks', () => {
    expect(fieldsToShow(OLD, yaml('maxPods: 110', 'clusterDomain: a', 'staticPodURLHeader: {a: [b]}'), reader)).toEqual([]);
  });

  it('are empty when one of the files is unreadable', () => {
    expect(fieldsToShow('{', yaml('maxPods: 1'), reader)).toEqual([]);
    expect(fieldsToShow(null, yaml('maxPods: 1'), reader)).toEqual([]);
  });
});
