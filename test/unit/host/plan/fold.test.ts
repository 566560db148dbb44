import { describe, expect, it } from 'vitest';
import { nameRanges } from '../../../../src/base/text/name-ranges.ts';
import { selectHosts } from '../../../../src/fleet/file/select.ts';
import type { HostPlan } from '../../../../src/host/plan/document.ts';
import { foldPlans } from '../../../../src/host/plan/fold.ts';
import { parseLabelSelector } from '../../../../src/kube/label-selector.ts';

function plan(name: string, content: string, own: Record<string, string> = {}): HostPlan {
  const change = {
    kind: 'write-file',
    path: '/x',
    mode: 0o644,
    owner: 'root:root',
    action: 'create',
    before: null,
    reason: 'does not exist',
  } as const;
  return { name, own: { node: name, ...own }, phases: [{ phase: 'p', plan: { changes: [{ ...change, content }] } }] };
}

const groups = (...plans: HostPlan[]) => foldPlans(plans).map(({ hosts }) => hosts);

describe('hosts with the same changes', () => {
  it('are grouped, with placeholders for their own names and addresses', () => {
    const [group] = foldPlans([
      plan('a1', 'name: a1\nip: 10.0.0.1\n', { 'node-ip': '10.0.0.1' }),
      plan('a2', 'name: a2\nip: 10.0.0.2\n', { 'node-ip': '10.0.0.2' }),
    ]);
    expect(group?.hosts).toEqual(['a1', 'a2']);
    expect(group?.changes[0]?.content).toBe('name: <node>\nip: <node-ip>\n');
  });

  it('keep their names when the group has one host', () => {
    expect(foldPlans([plan('a1', 'name: a1\n')])[0]?.changes[0]?.content).toBe('name: a1\n');
  });

  it.each([
    ['other content', plan('a1', 'maxPods: 1\n'), plan('a2', 'maxPods: 2\n')],
    ["another's name", plan('a1', 'name: a1\n'), plan('a2', 'name: a1\n')],
    ['a name inside another word', plan('a1', 'x: a1-b\n'), plan('a2', 'x: a2-b\n')],
    ['an address inside another', plan('a1', 'x: 10.0.0.11\n', { ip: '10.0.0.1' }), plan('a2', 'x: 10.0.0.21\n', { ip: '10.0.0.2' })],
  ])('does not group %s', (_, a, b) => {
    expect(groups(a, b)).toEqual([['a1'], ['a2']]);
  });

  it('replaces each occurrence of a name, but not in longer words', () => {
    const [group] = foldPlans([plan('a1', 'a1 xa1 a1. a1.b -a1 a1,a1'), plan('a2', 'a2 xa1 a2. a1.b -a1 a2,a2')]);
    expect(group?.changes[0]?.content).toBe('<node> xa1 <node>. a1.b -a1 <node>,<node>');
  });

  it('treats no name as a pattern', () => {
    expect(groups(plan('a.1', 'a.1'), plan('b+2', 'b+2'), plan('(c', '(c'), plan('d1', 'ax1'))).toEqual([['a.1', 'b+2', '(c'], ['d1']]);
  });
});

describe('name ranges', () => {
  it.each<[readonly string[], readonly string[]]>([
    [
      ['edge-001', 'edge-002', 'edge-003', 'edge-005'],
      ['edge-[001:003]', 'edge-005'],
    ],
    [['n9', 'n10', 'n11'], ['n[9:11]']],
    [['n09', 'n10', 'n11'], ['n[09:11]']],
    [
      ['n1', 'n2'],
      ['n1', 'n2'],
    ],
    [
      ['n1', 'n02', 'n3'],
      ['n1', 'n02', 'n3'],
    ],
    [['r1-a', 'r2-a', 'r3-a'], ['r[1:3]-a']],
    [
      ['alpha', 'beta'],
      ['alpha', 'beta'],
    ],
    [['10.0.0.1', '10.0.0.2', '10.0.0.3'], ['10.0.0.[1:3]']],
    [[], []],
  ])('%j', (names, expected) => {
    expect(nameRanges(names)).toEqual(expected);
  });
});

const host = (name: string, groups: readonly string[], labels: string | null) => ({
  name,
  groups,
  role: name.startsWith('core') ? ('control-plane' as const) : ('worker' as const),
  nodeRegistration: labels === null ? {} : { kubeletExtraArgs: [{ name: 'node-labels', value: labels }] },
});

describe('selected hosts', () => {
  const hosts = [
    host('edge-1', ['edge'], 'pool=edge,zone=a'),
    host('edge-2', ['edge', 'gpu'], 'pool=edge,zone=b,gpu='),
    host('core-1', ['core'], null),
  ];
  it.each<[readonly string[], readonly string[], readonly string[]]>([
    [[], [], ['edge-1', 'edge-2', 'core-1']],
    [['edge-*'], [], ['edge-1', 'edge-2']],
    [['core', 'edge-1'], [], ['edge-1', 'core-1']],
    [['!edge-1'], [], ['edge-2', 'core-1']],
    [['edge', '!gpu'], [], ['edge-1']],
    [[], ['gpu', 'core'], ['edge-2', 'core-1']],
    [['edge-[2:9]', 'c*-[1:2]'], [], ['edge-2', 'core-1']],
    [['!edge-[1:2]'], [], ['core-1']],
    [['*-1'], ['edge'], ['edge-1']],
    [['host/edge-1', '!host/core-1'], [], ['edge-1']],
  ])('--limit %j --group %j', (limit, groupNames, expected) => {
    expect(selectHosts(hosts, { limit, groups: groupNames }).map(({ name }) => name)).toEqual(expected);
  });

  it.each<[string, readonly string[], readonly string[]]>([
    ['pool=edge', [], ['edge-1', 'edge-2']],
    ['pool=edge,zone in (b,c)', [], ['edge-2']],
    ['!gpu', [], ['edge-1', 'core-1']],
    ['gpu', [], ['edge-2']],
    ['zone!=a', [], ['edge-2', 'core-1']],
    ['node-role.kubernetes.io/control-plane', [], ['core-1']],
    ['pool', ['*-1'], ['edge-1']],
  ])('--selector %j --limit %j', (selector, limit, expected) => {
    const selected = selectHosts(hosts, { limit, groups: [], selector: parseLabelSelector(selector) });
    expect(selected.map(({ name }) => name)).toEqual(expected);
  });

  it('names the selector that no host matches', () => {
    const selector = parseLabelSelector('pool=core');
    expect(() => selectHosts(hosts, { limit: [], groups: [], selector })).toThrow('no host has labels that match --selector pool=core');
    expect(() => selectHosts(hosts, { limit: ['edge'], groups: [], selector })).toThrow('no selected host has labels');
  });

  it.each([
    [['edge-9'], []],
    [['!unknown'], []],
    [['edge-[3:9]'], []],
    [['edge-[12]'], []],
    [['edge-['], []],
    [[], ['unknown']],
    [['core-1'], ['edge']],
  ])('rejects a selection that matches no host: %j %j', (limit, groupNames) => {
    expect(() => selectHosts(hosts, { limit, groups: groupNames })).toThrow(/USAGE/);
  });
});
