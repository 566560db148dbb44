import { describe, expect, it } from 'vitest';
import { type ObservedStore, planStoreRepair, reportStore } from '../../../src/dynamic/native/native-report.ts';
import { renderMetaFile } from '../../../src/dynamic/native/native-store.ts';
import type { FileFact } from '../../../src/host/facts/query.ts';
import type { UnitState } from '../../../src/host/facts/unit.ts';

const NOW = 1_900_000_000;
const identity = (name: string) => ({
  namespace: 'kube-system',
  name,
  uid: `uid-${name}`,
  resourceVersion: '7',
  kubeletConfigKey: 'kubelet',
});
const meta = (content: string, ageSeconds = 30): FileFact => ({
  type: 'file',
  mode: 0o600,
  owner: 'root:root',
  content,
  modifiedAt: NOW - ageSeconds,
});
const of = (name: string, ageSeconds?: number) => meta(renderMetaFile(identity(name)), ageSeconds);
const REFUSED = [{ code: 'X', path: 'maxPods', message: 'must not be negative' }];

const UNIT = { activeState: 'active', subState: 'running', restarts: 1, restartPolicy: 'always', startedAt: NOW - 20 } as UnitState;
const LOOPING = { ...UNIT, activeState: 'activating', subState: 'auto-restart', restarts: 11, startedAt: null };

function reading(change: Partial<ObservedStore>): ObservedStore {
  return {
    directory: '/var/lib/kubelet/dynamic',
    now: NOW,
    unit: UNIT,
    files: { assigned: meta(''), lastKnownGood: meta('') },
    payloads: { assigned: [], lastKnownGood: [] },
    comparisons: { assigned: { kind: 'equal' }, lastKnownGood: { kind: 'equal' } },
    checkpoints: [],
    leftovers: [],
    recentFailures: change.unit === LOOPING ? 11 : 0,
    failure: null,
    ...change,
  };
}

const codesOf = (change: Partial<ObservedStore>) => reportStore(reading(change)).findings.map(({ code }) => code);

describe('reportStore', () => {
  it.each<[string, Partial<ObservedStore>, string, readonly string[]]>([
    ['nothing assigned', {}, 'local', []],
    ['a store that does not exist yet', { files: { assigned: null, lastKnownGood: null } }, 'local', []],
    ['a complete checkpoint', { files: { assigned: of('a'), lastKnownGood: meta('') } }, 'assigned', []],
    [
      'a refused checkpoint, without a last known good',
      { files: { assigned: of('a'), lastKnownGood: meta('') }, payloads: { assigned: REFUSED, lastKnownGood: [] } },
      'local',
      ['DYNAMIC_PAYLOAD_REFUSED'],
    ],
    [
      'a missing checkpoint, with a last known good',
      { files: { assigned: of('a'), lastKnownGood: of('b') }, payloads: { assigned: null, lastKnownGood: [] } },
      'lastKnownGood',
      ['DYNAMIC_CHECKPOINT_MISSING'],
    ],
    [
      'both checkpoints damaged',
      { files: { assigned: of('a'), lastKnownGood: of('b') }, payloads: { assigned: null, lastKnownGood: REFUSED } },
      'nothing',
      ['DYNAMIC_CHECKPOINT_MISSING', 'DYNAMIC_PAYLOAD_REFUSED', 'DYNAMIC_NOTHING_LEFT'],
    ],
    ['garbage', { files: { assigned: meta('x: ['), lastKnownGood: of('b') } }, 'nothing', ['DYNAMIC_META_CORRUPT']],
    [
      'a directory in place of a meta file',
      { files: { assigned: { type: 'directory', mode: 0o755, owner: 'root:root' }, lastKnownGood: meta('') } },
      'nothing',
      ['DYNAMIC_META_CORRUPT'],
    ],
  ])('%s', (_, change, starts, codes) => {
    expect(reportStore(reading(change)).starts).toBe(starts);
    expect(codesOf(change)).toEqual(codes);
  });

  it('names a crash loop with its cause and the time of its promotion', () => {
    const failure = { cause: '/nonexistent/tls.crt is missing', hint: 'Create the file', fatal: true };
    const { findings, isLooping } = reportStore(
      reading({ unit: LOOPING, failure, files: { assigned: of('c', 75), lastKnownGood: of('a') } }),
    );
    expect(isLooping).toBe(true);
    expect(findings.map(({ message }) => message)).toEqual([
      'the kubelet is in a crash loop: 11 failures in two minutes: /nonexistent/tls.crt is missing',
      'the configuration that crashes the kubelet becomes the last known good one in 8m45s',
    ]);
    expect(codesOf({ unit: LOOPING, files: { assigned: of('c', 700), lastKnownGood: of('c') } })).toEqual([
      'DYNAMIC_CRASH_LOOP',
      'DYNAMIC_LOOP_PROMOTED',
    ]);
  });

  it('omits earlier causes and the promotion if the store cannot be read', () => {
    const failure = { cause: '/nonexistent/tls.crt is missing', hint: 'Create the file', fatal: true };
    const { findings } = reportStore(reading({ unit: LOOPING, failure, files: { assigned: of('c'), lastKnownGood: meta('x: [') } }));
    expect(findings.map(({ code }) => code)).toEqual(['DYNAMIC_META_CORRUPT', 'DYNAMIC_CRASH_LOOP']);
    expect(findings[1]?.message).not.toContain('tls.crt');
  });

  it('does not report a crash loop for a planned restart, or after the loop ended', () => {
    expect(codesOf({ unit: { ...LOOPING, restarts: 1 }, recentFailures: 0 })).toEqual([]);
    expect(codesOf({ unit: { ...UNIT, restarts: 117 }, recentFailures: 1 })).toEqual([]);
    expect(codesOf({ unit: { ...UNIT, restarts: 3 }, recentFailures: 3 })).toEqual(['DYNAMIC_CRASH_LOOP']);
    // The kubelet was started manually since: earlier failures were repaired.
    expect(codesOf({ unit: { ...UNIT, restarts: 0 }, recentFailures: 11 })).toEqual([]);
    expect(codesOf({ unit: { ...UNIT, activeState: 'failed', subState: 'failed' } })).toEqual(['DYNAMIC_CRASH_LOOP']);
  });

  it('warns of a unit that stays down after a change', () => {
    expect(reportStore(reading({ unit: { ...UNIT, restartPolicy: 'on-failure' } })).findings).toMatchObject([
      { code: 'DYNAMIC_UNIT_STAYS_DOWN', severity: 'warning', message: expect.stringContaining('Restart=on-failure') },
    ]);
  });
});

describe('planStoreRepair', () => {
  const plan = (change: Partial<ObservedStore>) => {
    const whole = reading(change);
    return planStoreRepair(whole, reportStore(whole)).map((one) => [
      one.kind,
      'content' in one ? String(one.content) : 'to' in one ? one.to : '',
    ]);
  };
  const STOP = ['stop-unit', ''];
  const START = ['restart-unit', ''];

  it('changes nothing while the kubelet runs', () => {
    expect(plan({})).toEqual([]);
    expect(plan({ files: { assigned: of('a'), lastKnownGood: meta('') } })).toEqual([]);
    expect(plan({ files: { assigned: of('a'), lastKnownGood: of('b') }, payloads: { assigned: REFUSED, lastKnownGood: [] } })).toEqual([]);
  });
  it('rolls back to the last known good if that is complete and different', () => {
    expect(plan({ unit: LOOPING, files: { assigned: of('c'), lastKnownGood: of('a') } })).toEqual([
      STOP,
      ['write-file', renderMetaFile(identity('a'))],
      START,
    ]);
  });
  it.each<[string, Partial<ObservedStore>]>([
    ['the last known good is the failing configuration', { files: { assigned: of('c'), lastKnownGood: of('c') } }],
    ['its payload is gone', { files: { assigned: of('c'), lastKnownGood: of('a') }, payloads: { assigned: [], lastKnownGood: null } }],
    [
      'its payload is refused',
      { files: { assigned: of('c'), lastKnownGood: of('a') }, payloads: { assigned: [], lastKnownGood: REFUSED } },
    ],
  ])('switches to the local configuration if %s', (_, change) => {
    expect(plan({ unit: LOOPING, ...change })).toEqual([STOP, ['write-file', ''], ['write-file', ''], START]);
  });
  it('keeps a directory in place of a file, under another name', () => {
    expect(plan({ files: { assigned: { type: 'directory', mode: 0o755, owner: 'root:root' }, lastKnownGood: meta('') } })).toEqual([
      STOP,
      ['move-file', `/var/lib/kubelet/dynamic/store/meta/assigned.broken-${NOW}`],
      ['write-file', ''],
      START,
    ]);
  });
});

describe('the repair of a checkpoint', () => {
  const torn = { kind: 'torn', path: '/x/kubelet', why: 'differs' } as const;
  const equal = { kind: 'equal' } as const;
  const summary = (change: Partial<ObservedStore>): readonly string[] => {
    const read = reading(change);
    return planStoreRepair(read, reportStore(read)).map((step) => {
      if (step.kind === 'write-file') return `${step.path.split('/').at(-1)}: ${/name: (\w+)/.exec(String(step.content))?.[1] ?? 'local'}`;
      return step.kind === 'remove-directory' ? `remove ${step.path.split('/').slice(-2).join('/')}` : step.kind;
    });
  };

  it('starts the kubelet without it, so that its first sync downloads it again and restarts', () => {
    const change = { files: { assigned: of('a'), lastKnownGood: of('b') }, comparisons: { assigned: torn, lastKnownGood: equal } };
    expect(codesOf(change)).toEqual(['DYNAMIC_CHECKPOINT_TORN']);
    expect(summary(change)).toEqual(['stop-unit', 'assigned: b', 'remove uid-a/7', 'restart-unit']);
    const alone = { files: { assigned: of('a'), lastKnownGood: meta('') }, comparisons: { assigned: torn, lastKnownGood: equal } };
    expect(summary(alone)).toEqual(['stop-unit', 'assigned: local', 'remove uid-a/7', 'restart-unit']);
    const missing = { files: { assigned: of('a'), lastKnownGood: meta('') }, payloads: { assigned: null, lastKnownGood: [] } };
    expect(summary(missing)).toEqual(['stop-unit', 'assigned: local', 'restart-unit']);
  });

  it('clears a damaged last known good, and keeps the assigned configuration', () => {
    const change = { files: { assigned: of('a'), lastKnownGood: of('b') }, comparisons: { assigned: equal, lastKnownGood: torn } };
    expect(summary(change)).toEqual(['stop-unit', 'last-known-good: local', 'remove uid-b/7', 'restart-unit']);
    const same = { files: { assigned: of('a'), lastKnownGood: of('a') }, comparisons: { assigned: torn, lastKnownGood: torn } };
    expect(summary(same)).toEqual(['stop-unit', 'assigned: local', 'last-known-good: local', 'remove uid-a/7', 'restart-unit']);
  });

  it('does not use a damaged last known good for a kubelet in a crash loop', () => {
    const change = {
      unit: LOOPING,
      files: { assigned: of('a'), lastKnownGood: of('b') },
      comparisons: { assigned: equal, lastKnownGood: torn },
    };
    expect(summary(change)).toEqual(['stop-unit', 'assigned: local', 'last-known-good: local', 'remove uid-b/7', 'restart-unit']);
  });
});
