import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { type JoinTarget, joinPreflightFindings } from '../../../../src/kubeadm/workflows/join-preflight-findings.ts';
import type { ObservedNode } from '../../../../src/kubeadm/workflows/node/observe-node.ts';
import type { ClientIdentity } from '../../../../src/kubelet/facts/kubelet-identity.ts';

const TARGET: JoinTarget = {
  server: 'https://a:6443',
  caPem: 'PEM\n',
  caCertPath: '/etc/kubernetes/pki/ca.crt',
  nodeOfSameName: null,
  otherHost: 'its machine-id is another one',
  nameHint: 'name it',
  takeOver: false,
  mayBootstrap: true,
};
const identity = (server: string): ClientIdentity => ({
  state: 'usable',
  source: '/x.pem',
  commonName: 'system:node:w1',
  notAfter: null,
  server,
});

function node(found: ClientIdentity = { state: 'missing' }, ca?: string): ObservedNode {
  const file = { type: 'file', mode: 0o644, owner: 'root:root', content: ca };
  const kubernetesFiles = new Map(ca === undefined ? [] : [[TARGET.caCertPath, file]]);
  return { facts: { identity: found, kubernetesFiles }, registration: { name: 'w1' } } as unknown as ObservedNode;
}

function nodeOfSameName(ready: string): KubeObject {
  const conditions = [
    { type: 'MemoryPressure', status: 'False' },
    { type: 'Ready', status: ready },
  ];
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'w1' }, status: { conditions } };
}

describe('joinFindings', () => {
  it.each<[string, ObservedNode, Partial<JoinTarget>, readonly string[]]>([
    ['a new host', node(), {}, []],
    ['a host that has joined before', node(identity('https://A:6443/'), 'PEM'), {}, []],
    ['credentials of another cluster', node(identity('https://b:6443')), {}, ['FileAvailable--etc-kubernetes-kubelet.conf']],
    ['the CA of another cluster', node(undefined, 'OTHER'), {}, ['FileAvailable--etc-kubernetes-pki-ca.crt']],
    ['credentials that may not request a certificate', node(), { mayBootstrap: false }, ['BootstrapRBAC']],
    ['the same, with a certificate', node(identity('https://a:6443')), { mayBootstrap: false }, []],
    ['a clone of a Ready node', node(), { nodeOfSameName: nodeOfSameName('True') }, ['NodeExists']],
    ['a clone of a Ready node, with take-over', node(), { nodeOfSameName: nodeOfSameName('True'), takeOver: true }, ['NodeExists']],
    ['the successor of a dead node', node(), { nodeOfSameName: nodeOfSameName('Unknown') }, ['NodeExists']],
    ['the successor of a dead node, with take-over', node(), { nodeOfSameName: nodeOfSameName('Unknown'), takeOver: true }, []],
    [
      'a Node that never reported its status',
      node(),
      { nodeOfSameName: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'w1' } } },
      ['NodeExists'],
    ],
    ['a Ready node after reset', node(), { nodeOfSameName: nodeOfSameName('True'), otherHost: null }, []],
    ['a node after reset', node(), { nodeOfSameName: nodeOfSameName('Unknown'), otherHost: null }, []],
    [
      'the host of the Node, with an expired certificate',
      node({ state: 'unusable', why: 'expired', commonName: 'system:node:w1' }),
      { nodeOfSameName: nodeOfSameName('True'), otherHost: null },
      ['NodeExists'],
    ],
    ['the Ready node itself', node(identity('https://a:6443')), { nodeOfSameName: nodeOfSameName('True') }, []],
  ])('%s', (_, found, change, ids) => {
    expect(joinPreflightFindings(found, { ...TARGET, ...change }).map(({ id }) => id)).toEqual(ids);
  });

  it('suggests certs renew-kubelet only to the node whose certificate has expired', () => {
    const why = 'the client certificate in /x.pem expired on Jan  1 00:00:00 2026 GMT';
    const hint = (name: string, ready: string) =>
      joinPreflightFindings(node({ state: 'unusable', why, commonName: `system:node:${name}` }), {
        ...TARGET,
        nodeOfSameName: nodeOfSameName(ready),
      })[0]?.hint;
    for (const ready of ['True', 'Unknown']) {
      expect(hint('w1', ready)).toMatch(/^the client certificate .*\. Renew the certificate with kubeletadm certs renew-kubelet\. /);
      expect(hint('w2', ready)).not.toContain('renew-kubelet');
    }
  });

  it('shows why the Node is of another host, and how to name the host', () => {
    const [finding] = joinPreflightFindings(node(), { ...TARGET, nodeOfSameName: nodeOfSameName('True') });
    expect(finding?.message).toBe('Node w1 already exists and is Ready: its machine-id is another one');
    expect(finding?.hint).toBe('Name it. If the host of the Node no longer exists, run kubectl delete node w1');
  });
});
