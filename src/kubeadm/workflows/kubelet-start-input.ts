import type { DesiredFile } from '../../host/plan/diff-file.ts';
import { KUBELET_DIR, KUBERNETES_DIR } from '../../kube/well-known.ts';
import type { KubeletStartInput } from '../phases/kubelet-start.ts';
import type { NodeDesign } from '../render/node-design.ts';
import type { NodeOptions } from './node-options.ts';

/** The input of kubelet-start for an existing node. */
export function kubeletStartInput(design: NodeDesign, options: NodeOptions): KubeletStartInput {
  const { instanceConfig, configYaml, flagsEnv } = design.files;
  return {
    files: [...(instanceConfig === null ? [] : [instanceConfig]), configYaml, flagsEnv],
    unitFiles: design.unit.files,
    directories: [{ path: KUBELET_DIR, mode: 0o700 }],
    health: { url: design.healthzUrl, timeoutMs: options.kubeletHealthCheckMs },
    mayChown: !options.staged,
    proof: {
      nodeName: design.nodeName,
      minor: design.minor,
      catalogue: options.catalogue,
      flags: [...design.flags.map(({ name, value }) => `--${name}=${value}`), ...design.unit.extraArgs],
    },
  };
}

/**
 * The input of kubelet-start for a new node: /etc/kubernetes is created and the credentials are written first.
 * @param credentials credential files of the kubelet; empty if other phases write them
 */
export function newNodeStartInput(design: NodeDesign, options: NodeOptions, credentials: readonly DesiredFile[]): KubeletStartInput {
  const { files, directories, ...start } = kubeletStartInput(design, options);
  return { ...start, files: [...credentials, ...files], directories: [...directories, { path: KUBERNETES_DIR, mode: 0o755 }] };
}
