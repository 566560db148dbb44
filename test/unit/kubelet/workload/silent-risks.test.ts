import { expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../../../src/kubelet/defaults/effective-configuration.ts';
import { findPodRisks } from '../../../../src/kubelet/workload/pod-risks.ts';
import { readRiskFacts } from '../../../../src/kubelet/workload/risk-facts.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const catalogue = await loadCatalogue();
const V1 = { '/sys/fs/cgroup/cpu/tasks': '' };
const V2 = { '/sys/fs/cgroup/cgroup.controllers': 'cpu\n' };
const QOS = { featureGates: { MemoryQoS: true } };
const SWAP = { memorySwap: { swapBehavior: 'LimitedSwap' } };
const CGROUPS = { kubeReservedCgroup: '/kube.slice', kubeletCgroups: '/system.slice/kubelet.service' };
const TLS13 = { tlsMinVersion: 'VersionTLS13', tlsCipherSuites: ['TLS_AES_128_GCM_SHA256'] };

async function shown(files: Readonly<Record<string, string>>, after: JsonObject, before: JsonObject = {}, minor = 36) {
  const config = (own: JsonObject): JsonObject => effectiveConfiguration(own, { catalogue, minor });
  const change = { before: config(before), after: config(after) };
  const host = await readRiskFacts(fakeHost({ files }), { ...change, rootDir: '/var/lib/kubelet', given: {}, hidden: [] });
  const risks = findPodRisks({ ...change, nodeName: 'n', minor, catalogue, pods: null, node: null, dnsServices: null, host });
  return risks.map(({ severity, why }) => `${severity} ${why}`);
}

it.each<[string, Readonly<Record<string, string>>, JsonObject, string]>([
  ['MemoryQoS', V1, QOS, 'warning featureGates.MemoryQoS has no effect, because the host uses cgroup v1'],
  [
    'notifications',
    V2,
    { kernelMemcgNotification: true },
    'warning kernelMemcgNotification has no effect, because the host uses cgroup v2',
  ],
  [
    'files',
    { '/proc/sys/fs/nr_open': '1048576\n' },
    { maxOpenFiles: 2_000_000 },
    'warning maxOpenFiles 2000000 is above the limit 1048576 of the kernel (fs.nr_open): the kubelet would keep the limit of its unit',
  ],
  ['cipher suites', {}, TLS13, 'warning tlsCipherSuites has no effect with tlsMinVersion VersionTLS13'],
  [
    'cgroups',
    {},
    CGROUPS,
    'warning kubeletCgroups /system.slice/kubelet.service is not below kubeReservedCgroup /kube.slice: the reservation would not include the kubelet',
  ],
  ['swap', V1, SWAP, 'loss memorySwap.swapBehavior is LimitedSwap, but the host uses cgroup v1: the kubelet would exit'],
])('a value that is not in force is found: %s', async (_, files, after, text) => {
  expect(await shown(files, after)).toEqual([text]);
  expect(await shown(files, after, after)).toEqual([]);
});

it.each<[string, Readonly<Record<string, string>>, JsonObject]>([
  ['MemoryQoS with cgroup v2', V2, QOS],
  ['MemoryQoS with an unknown version', {}, QOS],
  ['notifications with cgroup v1', V1, { kernelMemcgNotification: true }],
  ['as many files as the kernel permits', { '/proc/sys/fs/nr_open': '1048576\n' }, { maxOpenFiles: 1_048_576 }],
  ['an unknown limit of files', {}, { maxOpenFiles: 2_000_000 }],
  ['cipher suites of TLS 1.2', {}, { ...TLS13, tlsMinVersion: 'VersionTLS12' }],
  ['cgroups below the reserved one', {}, { ...CGROUPS, kubeletCgroups: '/kube.slice/kubelet.slice' }],
  ['swap with cgroup v2', V2, SWAP],
])('a value that is in force is no finding: %s', async (_, files, after) => {
  expect(await shown(files, after)).toEqual([]);
});
