import { describe, expect, it } from 'vitest';
import { observe } from '../../../../src/host/access/observe.ts';
import { type DelayLimit, delayLimits, LOGIND, limitBelow, parseTimeSpan } from '../../../../src/host/systemd/logind.ts';
import { fakeHost } from '../../../support/fake-host.ts';

/** Of systemd 252 (Debian 12) with the package unattended-upgrades and a kubelet, shortened. */
const CAT_CONFIG = `# /etc/systemd/logind.conf
#  This file is part of systemd.

[Login]
#NAutoVTs=6
#InhibitDelayMaxSec=5

# /etc/systemd/logind.conf.d/99-kubelet.conf
# Kubelet logind override
[Login]
InhibitDelayMaxSec=60

# /usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf
[Login]
# delay
InhibitDelayMaxSec=30
[Other]
InhibitDelayMaxSec=7
`;
const UPGRADES = '/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf';

describe('the limits of the delay of a shutdown', () => {
  it('are read in the order of logind, without comments and other sections', () =>
    expect(delayLimits(CAT_CONFIG)).toEqual([
      { path: '/etc/systemd/logind.conf.d/99-kubelet.conf', value: '60', seconds: 60 },
      { path: UPGRADES, value: '30', seconds: 30 },
    ]));

  it('are the default after an empty value; an invalid value is ignored', () =>
    expect(delayLimits('# /etc/systemd/logind.conf\n[Login]\nInhibitDelayMaxSec=\nInhibitDelayMaxSec=soon\n')).toEqual([
      { path: '/etc/systemd/logind.conf', value: '', seconds: 5 },
    ]));

  it.each<[string, number | null]>([
    ['30', 30],
    ['1min 30s', 90],
    ['2h', 7200],
    ['1500ms', 1.5],
    ['1day 2 hours', 93_600],
    ['infinity', Number.POSITIVE_INFINITY],
    ['', null],
    ['ten', null],
    ['5 parsecs', null],
  ])('have the time span %j', (text, expected) => expect(parseTimeSpan(text)).toBe(expected));
});

describe('the limit that wins over the file of the kubelet', () => {
  const at = (path: string, seconds: number): DelayLimit => ({ path, value: String(seconds), seconds });
  const late = at(UPGRADES, 30);
  const early = at('/etc/systemd/logind.conf.d/10-site.conf', 30);
  const last = at('/run/systemd/logind.conf.d/zz.conf', 90);

  it.each<[string, readonly DelayLimit[], number, DelayLimit | null]>([
    ['a later name in another directory', [late], 60, late],
    ['an earlier name', [early], 60, null],
    ['the main file', [at('/etc/systemd/logind.conf', 30)], 60, null],
    ['a limit that suffices', [late], 30, null],
    ['a last file that suffices', [late, last], 60, null],
    ['a last file that does not', [late, last], 120, last],
    ['no file', [], 60, null],
  ])('is found: %s', (_, limits, seconds, expected) => expect(limitBelow(limits, seconds)).toEqual(expected));
});

describe('logind of a host', () => {
  it.each<[string, number, boolean | null]>([
    ['responds', 0, true],
    ['does not respond', 1, false],
    ['is unknown without busctl', 127, null],
  ])('%s', async (_, exitCode, expected) => {
    const host = fakeHost({ commands: { 'systemd-analyze': () => ({ stdout: CAT_CONFIG }), busctl: () => ({ exitCode }) } });
    const { isResponding, limits } = await observe(host, LOGIND);
    expect([isResponding, limits?.length]).toEqual([expected, 2]);
  });
});
