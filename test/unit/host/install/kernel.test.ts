import { describe, expect, it } from 'vitest';
import { observe } from '../../../../src/host/access/observe.ts';
import type { FileFact } from '../../../../src/host/facts/query.ts';
import {
  MODULES_FILE,
  moduleFacts,
  planModules,
  planSwapOff,
  planSysctls,
  SYSCTLS_FILE,
  swapFacts,
  sysctlFacts,
  sysctlPath,
} from '../../../../src/host/install/kernel.ts';
import { describeDone } from '../../../../src/host/operation-kinds.ts';
import type { HostChange } from '../../../../src/host/plan/change.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const templates = await loadTemplates();
const file = (content: string): FileFact => ({ type: 'file', mode: 0o644, owner: 'root:root', content });
const shown = (changes: readonly unknown[]): readonly string[] => (changes as readonly HostChange[]).map(describeDone);

describe('kernel modules', () => {
  it('are loaded now and at each boot', () => {
    const { changes } = planModules(templates, ['overlay', 'br_netfilter'], { file: null, loaded: new Set(['overlay']) });
    expect(changes[0]).toMatchObject({ kind: 'write-file', path: MODULES_FILE, content: 'overlay\nbr_netfilter\n', mode: 0o644 });
    expect(shown(changes.slice(1))).toEqual(['loaded the kernel module br_netfilter']);
  });

  it('are not changed when they are loaded and configured', () => {
    expect(planModules(templates, ['overlay'], { file: file('overlay\n'), loaded: new Set(['overlay']) })).toEqual({
      changes: [],
      noop: 'overlay: loaded',
    });
  });

  it('of an earlier declaration go from the file when none is declared any more', () => {
    expect(shown(planModules(templates, [], { file: file('overlay\n'), loaded: new Set() }).changes)).toEqual([`removed ${MODULES_FILE}`]);
    expect(planModules(templates, [], { file: null, loaded: new Set() })).toEqual({ changes: [], noop: 'no kernel modules are declared' });
  });
});

describe('kernel parameters', () => {
  const declared = { 'net.ipv4.ip_forward': '1', 'net.ipv4.ip_local_port_range': '1024 65000', 'net.bridge.bridge-nf-call-iptables': '1' };

  it('are set now and at each boot, also those that come with a module', () => {
    const { changes } = planSysctls(templates, declared, {
      file: null,
      values: new Map([
        ['net.ipv4.ip_forward', '0\n'],
        ['net.ipv4.ip_local_port_range', '1024\t65000\n'],
        ['net.bridge.bridge-nf-call-iptables', null],
      ]),
    });
    expect(changes).toEqual([
      expect.objectContaining({
        path: SYSCTLS_FILE,
        content: 'net.ipv4.ip_forward = 1\nnet.ipv4.ip_local_port_range = 1024 65000\nnet.bridge.bridge-nf-call-iptables = 1\n',
      }),
      { kind: 'set-sysctl', name: 'net.ipv4.ip_forward', value: '1', reason: 'the current value is 0' },
      { kind: 'set-sysctl', name: 'net.bridge.bridge-nf-call-iptables', value: '1', reason: 'not set yet' },
    ]);
  });

  it.each([
    ['net.ipv4.ip_forward', '/proc/sys/net/ipv4/ip_forward'],
    ['net/ipv4/conf/eth0.100/forwarding', '/proc/sys/net/ipv4/conf/eth0.100/forwarding'],
    ['net.ipv4.conf.eth0/100.forwarding', '/proc/sys/net/ipv4/conf/eth0.100/forwarding'],
    ['vm.overcommit_memory', '/proc/sys/vm/overcommit_memory'],
  ])('%s is stored at %s', (name, path) => {
    expect(sysctlPath(name)).toBe(path);
  });
});

describe('swap', () => {
  const FSTAB = `# /etc/fstab
UUID=1 / ext4 defaults 0 1
/swap.img none swap sw 0 0
#/old none swap sw 0 0
\tLABEL=x  swap\tswap
/dev/sdb1 /swap ext4 defaults 0 2
`;

  it('is turned off immediately and in fstab', () => {
    const { changes, warnings } = planSwapOff({ fstab: file(FSTAB), active: ['/swap.img'] });
    expect(changes).toEqual([
      expect.objectContaining({
        path: '/etc/fstab',
        content: FSTAB.replace('/swap.img', '# /swap.img').replace('\tLABEL=x', '# \tLABEL=x'),
      }),
      { kind: 'turn-off-swap', reason: '/swap.img: active' },
    ]);
    expect(warnings).toBeUndefined();
  });

  it('from another source is reported', () => {
    const { changes, warnings } = planSwapOff({ fstab: file('UUID /  ext4\n'), active: ['/dev/zram0'] });
    expect(shown(changes)).toEqual(['turned swap off']);
    expect(warnings).toEqual([
      { code: 'SWAP_COMES_BACK', message: expect.stringContaining('swap on /dev/zram0 was not enabled by /etc/fstab') },
    ]);
  });

  it('is unchanged when no swap is active', () => {
    expect(planSwapOff({ fstab: null, active: [] })).toEqual({ changes: [], noop: 'swap is off' });
  });
});

describe('declared kernel settings on a host that has them', () => {
  const host = fakeHost({
    files: {
      [MODULES_FILE]: 'overlay\n',
      [SYSCTLS_FILE]: 'vm.max_map_count = 262144\n',
      '/proc/sys/vm/max_map_count': '262144\n',
      '/proc/swaps': 'Filename\tType\tSize\tUsed\tPriority\n',
      '/etc/fstab': 'UUID=1 / ext4 defaults 0 1\n',
    },
    commands: { sh: { stdout: 'overlay\n' } },
  });

  it('finds the modules up to date', async () => {
    expect(planModules(templates, ['overlay'], await observe(host, moduleFacts(['overlay']))).changes).toEqual([]);
  });

  it('are unchanged: parameters', async () => {
    const declared = { 'vm.max_map_count': '262144' };
    expect(planSysctls(templates, declared, await observe(host, sysctlFacts(Object.keys(declared)))).changes).toEqual([]);
  });

  it('are unchanged: no swap', async () => {
    expect(planSwapOff(await observe(host, swapFacts)).changes).toEqual([]);
  });
});
