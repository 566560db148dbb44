import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import * as z from 'zod';
import { fleetJsonSchema } from '../../../src/fleet/file/json-schema.ts';
import { loadFleet } from '../../../src/fleet/file/load.ts';
import { starterFile } from '../../../src/fleet/imports/starter.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { NO_VALIDATOR, schemaErrors } from '../../support/json-schema-validator.ts';
import { HEADER } from './support.ts';

const EVERYTHING = `name: edge
kubernetesVersion: "1.36"
cluster: {kubeconfig: admin.conf, context: c, endpoint: "api:6443", caCertHashes: ["sha256:${'0'.repeat(64)}"], token: {file: token}}
baseline:
  variables: {a: x, b: 1, c: true, d: 1.5}
  address: "{{ name }}.lan"
  role: worker
  ssh: {user: core, port: "{{ b }}", identityFiles: [k], bastion: none, become: sudo, transport: openssh, connectTimeout: 10s, commandTimeout: 2m, hostKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl]}
  nodeIP: 10.0.0.{{ number }}
  criSocket: unix:///run/x.sock
  resolvConf: /etc/resolv.conf
  cgroupDriver: systemd
  labels: {a: b}
  taints: [{key: a, value: b, effect: NoExecute}]
  kubeletExtraArgs: [{name: v, value: "2"}]
  ignorePreflightErrors: [Swap]
  kubeletConfiguration:
    apiVersion: kubelet.config.k8s.io/v1beta1
    kind: KubeletConfiguration
    maxPods: "{{ b }}"
    evictionHard: {memory.available: 100Mi}
    featureGates: {NodeSwap: true}
    clusterDNS: [10.96.0.10]
    authentication: {anonymous: {enabled: false}}
groups: [{name: g, labels: {}}]
hosts: [{name: "n[1:2]", groups: [g], nodeName: "{{ name }}"}]
imports: [{ansibleInventory: hosts.ini, hosts: ["*"], groups: [g], role: worker}, {sshConfig: ~/.ssh/config}]
`;

describe('fleetJsonSchema', async () => {
  const schema = fleetJsonSchema(await loadCatalogue(), 36);
  const validator = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  const accepts = (body: string): boolean => validator.safeParse(parse(`${HEADER}${body}`)).success;
  const errors = (body: string): readonly string[] => loadFleet(`${HEADER}${body}`, 'f').problems.map(({ code }) => code);

  it('accepts a file with every field, as the reader does', () => {
    expect(errors(EVERYTHING)).toEqual([]);
    expect(validator.safeParse(parse(HEADER + EVERYTHING)).error?.issues ?? []).toEqual([]);
  });

  it('accepts the start file', () => {
    expect(validator.safeParse(parse(starterFile('1.36'))).error?.issues ?? []).toEqual([]);
  });

  it.skipIf(NO_VALIDATOR)('is a valid schema, with the same results in another validator', () => {
    const other = schemaErrors(schema);
    expect(other(parse(HEADER + EVERYTHING))).toEqual([]);
    expect(other(parse(starterFile('1.36')))).toEqual([]);
    expect(other(parse(`${HEADER}hosts: [{name: n1, role: wroker}]\n`))).not.toEqual([]);
    expect(other(parse(`${HEADER}baseline: {kubeletConfiguration: {maxPods: many}}\n`))).not.toEqual([]);
  });

  it.each([
    'hots: []\n',
    'hosts: n1\n',
    'hosts: [{address: x}]\n',
    'hosts: [{name: n1, role: wroker}]\n',
    'hosts: [{name: n1, ssh: {port: 70000}}]\n',
    'hosts: [{name: n1, ssh: {prot: 1}}]\n',
    'hosts: [{name: n1, groups: g}]\n',
    'hosts: [{name: n1, labels: [a]}]\n',
    'hosts: [{name: n1, taints: [{key: a, effect: Never}]}]\n',
    'hosts: [{name: n1, kubeletExtraArgs: {v: "2"}}]\n',
    'baseline: {variables: {a: [1]}}\n',
    'baseline: {kubeletConfiguration: [1]}\n',
    'cluster: {token: {value: x}}\n',
    'kubernetesVersion: 1.36\n',
  ])('refuses, as the reader does: %s', (body) => {
    expect([accepts(body), errors(body).length > 0]).toEqual([false, true]);
  });

  it.each(['maxPod: 1', 'maxPods: many', 'evictionHard: [a]', 'clusterDNS: 10.0.0.10'])('knows KubeletConfiguration: %s', (field) => {
    expect(accepts(`baseline: {kubeletConfiguration: {${field}}}\n`)).toBe(false);
  });

  it('describes its fields', () => {
    const { properties } = schema as unknown as { properties: { baseline: { properties: { nodeIP: unknown } } } };
    expect(properties.baseline.properties.nodeIP).toEqual({
      type: 'string',
      description: 'Node IP, or a subnet that contains exactly one address of the host (for dual-stack: two values, comma-separated)',
    });
    expect(JSON.stringify(schema)).not.toMatch(/"(?:part|hint|emptyIsAbsent)":/);
  });
});
