import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { Secret } from '../../src/base/text/secret.ts';
import { applyClusterDefaults, applyInitDefaults } from '../../src/kubeadm/config/defaults.ts';
import { loadConfig } from '../../src/kubeadm/config/load.ts';
import type { ControlPlaneNode } from '../../src/kubeadm/control-plane/model.ts';
import { CA_MOUNT_DIRS } from '../../src/kubeadm/control-plane/paths.ts';
import { planPatches } from '../../src/kubelet/layers/patch-files.ts';

/** The hosts on which the recordings were made. */
export const DEBIAN_CA_DIRECTORIES: readonly string[] = CA_MOUNT_DIRS.filter((path) => !path.startsWith('/etc/pki/'));

/**
 * The control-plane node of a configuration file, on a host of which only the CA directories matter.
 * @throws when the file has problems
 */
export function controlPlaneNode(input: string, changes: Partial<ControlPlaneNode> = {}): ControlPlaneNode {
  const loaded = loadConfig(input, 'input.yaml', {
    kinds: ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration', 'KubeProxyConfiguration'],
  });
  const errors = loaded.problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  const host = { hostname: 'host', criSockets: [], defaultRoute: { ipv4: '192.0.2.1' } };
  const init = applyInitDefaults(loaded.init ?? {}, host, [new Secret('abcdef.0123456789abcdef')]);
  return {
    cluster: applyClusterDefaults(loaded.cluster ?? {}, init.localAPIEndpoint.bindPort),
    nodeName: init.nodeRegistration.name,
    localAPIEndpoint: init.localAPIEndpoint,
    timeouts: init.timeouts,
    patches: readPatches(init.patches?.directory),
    caDirectories: DEBIAN_CA_DIRECTORIES,
    etcdMembers: null,
    externalCA: false,
    proxyEnvironment: [],
    kubeProxy: loaded.kubeProxy ?? null,
    ...changes,
  };
}

function readPatches(directory: string | undefined): ControlPlaneNode['patches'] {
  if (directory === undefined) return [];
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return planPatches(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return { path: relative(directory, path), text: readFileSync(path, 'utf8') };
    }),
  ).patches;
}
