import { describe, expect, it } from 'vitest';
import { parseUnitState, unitActive, unitState } from '../../../../src/host/facts/unit.ts';
import { commandFailure, commandOutput, parseFact } from '../../../support/answers.ts';
import { fixture } from '../../../support/fixture.ts';

const show = (name: string): string => fixture(import.meta.url, `fixtures/systemd-252/show-${name}.txt`);
const DROP_IN = '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf';
const UNIT = '/etc/systemd/system/kubelet.service';

describe('parseUnitState', () => {
  it.each([
    [
      'disabled-inactive',
      {
        loadState: 'loaded',
        activeState: 'inactive',
        subState: 'dead',
        unitFileState: 'disabled',
        fragmentPath: UNIT,
        dropInPaths: [DROP_IN],
        restarts: 0,
      },
    ],
    [
      'crash-loop',
      {
        activeState: 'activating',
        subState: 'auto-restart',
        result: 'exit-code',
        execMainCode: 1,
        execMainStatus: 1,
        restarts: 4,
        restartPolicy: 'always',
      },
    ],
    ['stopped-enabled', { activeState: 'inactive', unitFileState: 'enabled', restarts: 9, needsReload: false }],
    ['needs-reload', { needsReload: true }],
    ['exec-203', { execMainStatus: 203, activeState: 'activating' }],
    ['bad-setting', { loadState: 'bad-setting', activeState: 'inactive', dropInPaths: [] }],
    ['active', { activeState: 'active', subState: 'running', execMainStatus: 0, restartPolicy: 'no' }],
    ['failed-signal', { activeState: 'failed', result: 'signal', execMainCode: 2, execMainStatus: 9 }],
    ['masked', { loadState: 'masked', unitFileState: 'masked' }],
    ['not-found', { loadState: 'not-found', activeState: 'inactive', unitFileState: '', fragmentPath: null, dropInPaths: [] }],
  ])('%s', (name, expected) => {
    expect(parseUnitState(show(name))).toMatchObject(expected);
  });

  it.each([
    ['nothing', ''],
    ['an error message', "System has not been booted with systemd as init system (PID 1). Can't operate.\n"],
    ['properties of another kind', 'LoadState=loaded\n'],
    ['an empty state', 'ActiveState=\n'.repeat(3)],
  ])('returns null for %s', (_, output) => {
    expect(parseUnitState(output)).toBeNull();
  });

  it.each([
    ['active', 'Fri 2026-11-20 14:16:47 UTC', 1795184207],
    ['active', 'Fri 2026-11-20 09:16:47 EST', null],
    ['active', '', null],
    ['active', 'n/a', null],
    ['inactive', 'Fri 2026-11-20 14:16:47 UTC', null],
  ])('start time of a unit in state %s with ExecMainStartTimestamp %j: %s', (state, time, startedAt) => {
    expect(parseUnitState(`ActiveState=${state}\nExecMainStartTimestamp=${time}\n`)?.startedAt).toBe(startedAt);
  });

  it('keeps the text after a second equals sign', () => {
    expect(parseUnitState('ActiveState=active\nFragmentPath=/etc/a=b.service\n')?.fragmentPath).toBe('/etc/a=b.service');
  });

  it('lists several drop-ins', () => {
    expect(parseUnitState('ActiveState=active\nDropInPaths=/a.conf /b.conf\n')?.dropInPaths).toEqual(['/a.conf', '/b.conf']);
  });
});

describe('unitState', () => {
  it('queries the properties that it parses', () => {
    const { show: query } = unitState('kubelet').queries;
    expect(query).toMatchObject({ kind: 'command', argv: ['systemctl', 'show', 'kubelet', expect.stringContaining('NRestarts')] });
  });

  it('parses the output', () => {
    expect(parseFact(unitState('kubelet'), { show: commandOutput(show('active')) })?.activeState).toBe('active');
  });

  it('is null when systemd does not run', () => {
    expect(parseFact(unitState('kubelet'), { show: commandFailure(1, 'System has not been booted with systemd') })).toBeNull();
  });
});

describe('unitActive', () => {
  it.each([
    ['active', commandOutput('active\n'), true],
    ['inactive', { exitCode: 3, stdout: 'inactive\n', stderr: '' }, false],
    ['reloading', commandOutput('reloading\n'), false],
    ['no systemd', commandFailure(), false],
  ])('%s', (_, active, expected) => {
    expect(parseFact(unitActive('systemd-resolved'), { active })).toBe(expected);
  });
});
