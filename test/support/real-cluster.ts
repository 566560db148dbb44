import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { adoptCluster } from './first-node.ts';
import { type LabHosts, startLabHosts } from './lab-hosts.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer } from './real-apiserver.ts';
import { runCommand } from './run-cli.ts';

/** A real control plane on the local host, and lab hosts with real kubelets that reach it. */
export interface RealCluster {
  readonly api: RealApiServer;
  readonly cluster: Cluster;
  readonly lab: LabHosts;
  close(): Promise<void>;
}

/**
 * @param hosts number of hosts; all are new
 * @param directory receives `admin.conf`, the kubeconfig of an administrator, and `init.yaml`
 * @param config content of `init.yaml`
 * @param options.reachesKubelets the API server has a route to the kubelets; otherwise they are as behind a firewall
 * @param options.flags additional flags of the API server
 * @throws Error when `whyNoKubelet` or `whyNoLabHosts` returns a reason
 */
export async function startRealCluster(
  hosts: number,
  directory: string,
  config: string,
  options: { readonly reachesKubelets?: boolean; readonly flags?: readonly string[] } = {},
): Promise<RealCluster> {
  const binaries = findRealBinaries();
  if (typeof binaries === 'string') throw new Error(binaries);
  const { kubelet } = binaries;
  if (kubelet === null) throw new Error('kubelet not found');
  const api = await startRealApiServer(binaries, { withControllerManager: true, ...options });
  const text = api.adminKubeconfig();
  writeFileSync(join(directory, 'admin.conf'), text, { mode: 0o600 });
  writeFileSync(join(directory, 'init.yaml'), config);
  let lab: LabHosts;
  try {
    lab = startLabHosts(hosts, kubelet);
    lab.expose(Number(new URL(api.url).port));
    if (options.reachesKubelets) lab.attach();
  } catch (error) {
    await api.close();
    throw error;
  }
  const cluster = kubeCluster({ kubeconfig: { text, file: 'admin.conf' } });
  return {
    api,
    cluster,
    lab,
    close: async () => {
      lab.close();
      await cluster.close();
      await api.close();
    },
  };
}

/** `init.yaml` for kubelets of 1.35 and later on hosts with cgroup v1. */
export const CGROUP_V1_CONFIG = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;

/** The program that agents are installed from. */
export const AGENT_BUNDLE = fileURLToPath(new URL('../../dist/kubeletadm.mjs', import.meta.url));

/** Joins hosts, with what `dynamic enable` needs there, and builds the program if it is not built. @param words further options of `join` */
export async function joinForAgents(
  lab: LabHosts,
  directory: string,
  hosts: readonly string[],
  ...words: readonly string[]
): Promise<void> {
  const where = hosts.flatMap((host) => ['--host', host]);
  const joined = await runCommand([...(await adoptCluster(directory)), '--ssh-config', lab.sshConfig, ...where, ...words]);
  expect(joined.code, joined.stderr).toBe(0);
  if (!existsSync(AGENT_BUNDLE)) execFileSync(process.execPath, [fileURLToPath(new URL('../../scripts/build.mjs', import.meta.url))]);
  for (const host of hosts) lab.put(host, '/usr/local/bin/node', readFileSync(process.execPath));
}
